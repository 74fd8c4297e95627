//===- StubKernelLibrary.cpp - Open the stub images -----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Emulator.h"
#include "StubApi.h"

namespace tessera::runtime {

Status StubKernelLibrary::open(const GpuModule &module) {
  bool launches = false, found = false;
  for (const GpuKernel &kernel : module.kernels)
    launches |= !kernel.launches.empty();
  for (const GpuImage &image : module.images) {
    if (image.arch != "stub")
      continue;
    found = true;
    std::vector<std::string> names = {"tessera_stub_version", "tessera_stub_bind"};
    names.insert(names.end(), image.symbols.begin(), image.symbols.end());
    auto library = std::make_unique<KernelLibrary>();
    TESSERA_RETURN_IF_ERROR(library->open(image.code, names));
    // Data symbols are found like functions.
    auto *version = reinterpret_cast<const uint32_t *>(library->kernel(0));
    if (*version != TESSERA_STUB_VERSION)
      return Status::error("kernels: the stub image has version " + std::to_string(*version) +
                           ", this program emulates version " +
                           std::to_string(TESSERA_STUB_VERSION));
    reinterpret_cast<tessera_stub_bind_fn>(library->kernel(1))(&stubApi());
    for (size_t i = 0; i < image.symbols.size(); ++i)
      kernels[image.symbols[i]] =
          reinterpret_cast<tessera_stub_kernel>(library->kernel(static_cast<int64_t>(i) + 2));
    opened.push_back(std::move(library));
  }
  if (launches && !found)
    return Status::error("kernels: the artifact has no code for architecture 'stub'; compile it "
                         "with --target=stub");
  return {};
}

tessera_stub_kernel StubKernelLibrary::find(const std::string &symbol) const {
  auto it = kernels.find(symbol);
  return it == kernels.end() ? nullptr : it->second;
}

} // namespace tessera::runtime
