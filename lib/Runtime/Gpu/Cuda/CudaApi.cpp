//===- CudaApi.cpp - The CUDA driver's functions, opened at run time ------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CudaApi.h"

namespace tessera::runtime::gpu {

Status CudaApi::open() {
  TESSERA_RETURN_IF_ERROR(library.open(
      {"libcuda.so.1"}, "there is no CUDA driver, which comes with NVIDIA's kernel module"));
#define TESSERA_FIND(name, symbol, arguments) TESSERA_RETURN_IF_ERROR(library.find(name, symbol));
  TESSERA_CUDA_FUNCTIONS(TESSERA_FIND)
#undef TESSERA_FIND
  TESSERA_RETURN_IF_ERROR(check(init(0), "the CUDA driver does not start"));
  TESSERA_RETURN_IF_ERROR(check(driverGetVersion(&version), "the CUDA driver's version"));
  return check(deviceGetCount(&devices), "the number of GPUs");
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
