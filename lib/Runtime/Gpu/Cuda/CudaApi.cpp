//===- CudaApi.cpp - The CUDA driver's functions, opened at run time ------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CudaApi.h"

namespace tessera::runtime::gpu {

Status CudaApi::open() {
  TESSERA_RETURN_IF_ERROR(
      library.open({"libcuda.so.1"}, "there is no CUDA driver; install NVIDIA's driver"));
#define TESSERA_FIND(name, symbol, arguments) TESSERA_RETURN_IF_ERROR(library.find(name, symbol));
  TESSERA_CUDA_FUNCTIONS(TESSERA_FIND)
#undef TESSERA_FIND
  TESSERA_RETURN_IF_ERROR(check(init(0), "cannot initialize the CUDA driver"));
  TESSERA_RETURN_IF_ERROR(
      check(driverGetVersion(&version), "cannot get the version of the CUDA driver"));
  return check(deviceGetCount(&devices), "cannot get the number of GPUs");
}

Status CudaApi::check(CuResult result, const std::string &what) const {
  if (result == 0)
    return {};
  const char *text = nullptr;
  if (!getErrorString || getErrorString(result, &text) != 0 || !text)
    text = "unknown";
  return Status::error(what + ": " + text + " (CUDA error " + std::to_string(result) + ")");
}

} // namespace tessera::runtime::gpu
