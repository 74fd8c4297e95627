//===- GpuJitLink.cpp - Cubins by libnvJitLink ----------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GpuAssembler.h"

#include "llvm/ADT/ScopeExit.h"

#include <dlfcn.h>

using namespace llvm;

namespace tessera::codegen {

static constexpr int kPtxInput = 2; // NVJITLINK_INPUT_PTX

bool JitLink::open(const std::string &file, std::string &path, std::string &error) {
  void *opened = ::dlopen(file.c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (!opened) {
    error = ::dlerror();
    return false;
  }
  JitLink found;
  const char *missing = nullptr;
  auto find = [&](auto &function, const char *symbol) {
    function = reinterpret_cast<std::decay_t<decltype(function)>>(::dlsym(opened, symbol));
    if (!function && !missing)
      missing = symbol;
  };
  find(found.create, "nvJitLinkCreate");
  find(found.destroy, "nvJitLinkDestroy");
  find(found.addData, "nvJitLinkAddData");
  find(found.complete, "nvJitLinkComplete");
  find(found.cubinSize, "nvJitLinkGetLinkedCubinSize");
  find(found.cubin, "nvJitLinkGetLinkedCubin");
  find(found.infoSize, "nvJitLinkGetInfoLogSize");
  find(found.info, "nvJitLinkGetInfoLog");
  find(found.errorSize, "nvJitLinkGetErrorLogSize");
  find(found.errorText, "nvJitLinkGetErrorLog");
  find(found.getVersion, "nvJitLinkVersion");
  if (missing) {
    error = file + " has no '" + missing + "'; it is too old";
    ::dlclose(opened);
    return false;
  }
  *this = found;
  Dl_info where;
  path = ::dladdr(reinterpret_cast<void *>(create), &where) ? where.dli_fname : file;
  return true;
}

std::string JitLink::version() const {
  unsigned major = 0, minor = 0;
  if (getVersion(&major, &minor) != 0)
    return "";
  return std::to_string(major) + "." + std::to_string(minor);
}

/// Reads one of the two logs, without the zeros at its end.
static std::string read(JitLink::Handle handle, int (*size)(JitLink::Handle, size_t *),
                        int (*get)(JitLink::Handle, char *)) {
  size_t bytes = 0;
  if (size(handle, &bytes) != 0 || bytes == 0)
    return "";
  std::string text(bytes, '\0');
  if (get(handle, text.data()) != 0)
    return "";
  return text.substr(0, text.find('\0'));
}

mlir::FailureOr<std::string> JitLink::assemble(const std::string &ptx, StringRef arch,
                                               std::string &log, std::string &error) const {
  std::string target = ("-arch=" + arch).str();
  // Our own cache keeps the results, so the library's is disabled.
  const char *options[] = {target.c_str(), "-O3", "-verbose", "-no-cache"};
  Handle handle = nullptr;
  int status = create(&handle, std::size(options), options);
  if (status != 0) {
    error = "nvJitLinkCreate returned " + std::to_string(status) + " for " + target;
    return mlir::failure();
  }
  auto cleanup = make_scope_exit([&] { destroy(&handle); });
  // The terminating zero is included.
  size_t bytes = 0;
  std::string code;
  const char *call = "nvJitLinkAddData";
  status = addData(handle, kPtxInput, ptx.c_str(), ptx.size() + 1, "kernel");
  if (status == 0) {
    call = "nvJitLinkComplete";
    status = complete(handle);
  }
  if (status == 0) {
    call = "nvJitLinkGetLinkedCubin";
    status = cubinSize(handle, &bytes);
    code.resize(bytes);
    if (status == 0)
      status = cubin(handle, code.data());
  }
  if (status != 0 || code.empty()) {
    error = std::string(call) + " returned " + std::to_string(status);
    if (std::string said = read(handle, errorSize, errorText); !said.empty())
      error += ": " + StringRef(said).trim().str();
    return mlir::failure();
  }
  log = read(handle, infoSize, info);
  return code;
}

} // namespace tessera::codegen
