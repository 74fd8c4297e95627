//===- GpuCacheEntry.cpp - Cache entries of compiled kernels --------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GpuCacheEntry.h"

using namespace mlir;

namespace tessera::codegen {

llvm::json::Object cacheEntryJson(const GpuKernelInfo &info) {
  llvm::json::Array launches;
  for (const GpuLaunchInfo &launch : info.launches) {
    llvm::json::Array usage;
    for (const GpuUsage &one : launch.usage)
      usage.push_back(llvm::json::Object{{"arch", one.arch},
                                         {"registers", one.registers},
                                         {"spill", one.spillBytes},
                                         {"stack", one.stackBytes}});
    launches.push_back(llvm::json::Object{{"scheme", static_cast<int64_t>(launch.scheme)},
                                          {"tf32", launch.tf32},
                                          {"read", launch.readBytes},
                                          {"written", launch.writtenBytes},
                                          {"serial", launch.serialIterations},
                                          {"narrow", llvm::json::Array(launch.narrow)},
                                          {"usage", std::move(usage)}});
  }
  return llvm::json::Object{{"reason", llvm::json::fixUTF8(info.reason)},
                            {"workspace", info.workspaceBytes},
                            {"arguments", info.argumentBytes},
                            {"launches", std::move(launches)}};
}

std::string cacheEntryOf(const GpuUnit &unit, ArrayRef<std::string> archs) {
  runtime::GpuModule module;
  module.kernels.push_back(unit.kernel);
  for (auto [arch, code] : llvm::zip_equal(archs, unit.code)) {
    auto *bytes = reinterpret_cast<const std::byte *>(code.data());
    module.images.push_back({arch, {}, runtime::Bytes(bytes, bytes + code.size())});
  }
  runtime::Bytes bytes = runtime::serialize(module);
  return std::string(reinterpret_cast<const char *>(bytes.data()), bytes.size());
}

static bool readInfo(const llvm::json::Object &about, GpuKernelInfo &info) {
  info.reason = about.getString("reason").value_or("").str();
  info.workspaceBytes = about.getInteger("workspace").value_or(0);
  info.argumentBytes = about.getInteger("arguments").value_or(0);
  const llvm::json::Array *launches = about.getArray("launches");
  if (!launches)
    return false;
  for (const llvm::json::Value &value : *launches) {
    const llvm::json::Object *launch = value.getAsObject();
    if (!launch)
      return false;
    GpuLaunchInfo &read = info.launches.emplace_back();
    read.scheme = static_cast<GpuScheme>(launch->getInteger("scheme").value_or(0));
    read.tf32 = launch->getBoolean("tf32").value_or(false);
    read.readBytes = launch->getInteger("read").value_or(0);
    read.writtenBytes = launch->getInteger("written").value_or(0);
    read.serialIterations = launch->getInteger("serial").value_or(1);
    if (const llvm::json::Array *narrow = launch->getArray("narrow"))
      for (const llvm::json::Value &entry : *narrow)
        read.narrow.push_back(entry.getAsString().value_or("").str());
    if (const llvm::json::Array *usage = launch->getArray("usage"))
      for (const llvm::json::Value &entry : *usage)
        if (const llvm::json::Object *one = entry.getAsObject())
          read.usage.push_back(
              {one->getString("arch").value_or("").str(), one->getInteger("registers").value_or(0),
               one->getInteger("spill").value_or(0), one->getInteger("stack").value_or(0)});
  }
  info.cached = true;
  return true;
}

static bool readCode(const std::string &entry, ArrayRef<std::string> archs, GpuUnit &unit) {
  auto module =
      runtime::parseGpuModule(reinterpret_cast<const std::byte *>(entry.data()), entry.size());
  if (!module || module->kernels.size() != 1 || module->images.size() != archs.size())
    return false;
  unit.kernel = std::move(module->kernels[0]);
  for (const runtime::GpuImage &image : module->images)
    unit.code.emplace_back(reinterpret_cast<const char *>(image.code.data()), image.code.size());
  return true;
}

bool readCacheEntry(const std::string &entry, const llvm::json::Object &about,
                    ArrayRef<std::string> archs, GpuUnit &unit) {
  return readInfo(about, unit.info) && readCode(entry, archs, unit);
}

} // namespace tessera::codegen
