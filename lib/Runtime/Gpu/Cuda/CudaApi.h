//===- CudaApi.h - The CUDA driver's functions, at run time -----*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declared here, from the documentation of the CUDA driver API, so that neither the
// build nor the start needs CUDA.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_GPU_CUDA_CUDAAPI_H
#define TESSERA_LIB_RUNTIME_GPU_CUDA_CUDAAPI_H

#include "../../Execution/SharedLibrary.h"

#include <cstddef>
#include <cstdint>

namespace tessera::runtime::gpu {

using CuResult = int;
using CuDevice = int;
using CuPointer = unsigned long long;
using CuContext = struct CuContextObject *;
using CuStream = struct CuStreamObject *;
using CuEvent = struct CuEventObject *;
using CuModule = struct CuModuleObject *;
using CuFunction = struct CuFunctionObject *;
using CuGraph = struct CuGraphObject *;
using CuGraphExec = struct CuGraphExecObject *;
struct CuUuid {
  unsigned char bytes[16];
};

/// Each function with its symbol (the API version of the declaration).
#define TESSERA_CUDA_FUNCTIONS(F)                                                                  \
  F(init, "cuInit", (unsigned))                                                                    \
  F(driverGetVersion, "cuDriverGetVersion", (int *))                                               \
  F(deviceGetCount, "cuDeviceGetCount", (int *))                                                   \
  F(deviceGet, "cuDeviceGet", (CuDevice *, int))                                                   \
  F(deviceGetName, "cuDeviceGetName", (char *, int, CuDevice))                                     \
  F(deviceGetUuid, "cuDeviceGetUuid", (CuUuid *, CuDevice))                                        \
  F(deviceGetAttribute, "cuDeviceGetAttribute", (int *, int, CuDevice))                            \
  F(primaryCtxRetain, "cuDevicePrimaryCtxRetain", (CuContext *, CuDevice))                         \
  F(ctxSetCurrent, "cuCtxSetCurrent", (CuContext))                                                 \
  F(memAlloc, "cuMemAlloc_v2", (CuPointer *, size_t))                                              \
  F(memFree, "cuMemFree_v2", (CuPointer))                                                          \
  F(memGetInfo, "cuMemGetInfo_v2", (size_t *, size_t *))                                           \
  F(memsetD8, "cuMemsetD8_v2", (CuPointer, unsigned char, size_t))                                 \
  F(memsetD32Async, "cuMemsetD32Async", (CuPointer, unsigned, size_t, CuStream))                   \
  F(memcpyHtoD, "cuMemcpyHtoD_v2", (CuPointer, const void *, size_t))                              \
  F(memcpyDtoH, "cuMemcpyDtoH_v2", (void *, CuPointer, size_t))                                    \
  F(memcpyHtoDAsync, "cuMemcpyHtoDAsync_v2", (CuPointer, const void *, size_t, CuStream))          \
  F(memHostAlloc, "cuMemHostAlloc", (void **, size_t, unsigned))                                   \
  F(memFreeHost, "cuMemFreeHost", (void *))                                                        \
  F(memcpyDtoDAsync, "cuMemcpyDtoDAsync_v2", (CuPointer, CuPointer, size_t, CuStream))             \
  F(streamCreate, "cuStreamCreate", (CuStream *, unsigned))                                        \
  F(streamDestroy, "cuStreamDestroy_v2", (CuStream))                                               \
  F(streamQuery, "cuStreamQuery", (CuStream))                                                      \
  F(streamSynchronize, "cuStreamSynchronize", (CuStream))                                          \
  F(streamWaitEvent, "cuStreamWaitEvent", (CuStream, CuEvent, unsigned))                           \
  F(streamBeginCapture, "cuStreamBeginCapture_v2", (CuStream, int))                                \
  F(streamEndCapture, "cuStreamEndCapture", (CuStream, CuGraph *))                                 \
  F(graphInstantiate, "cuGraphInstantiateWithFlags", (CuGraphExec *, CuGraph, unsigned long long)) \
  F(graphLaunch, "cuGraphLaunch", (CuGraphExec, CuStream))                                         \
  F(graphDestroy, "cuGraphDestroy", (CuGraph))                                                     \
  F(graphExecDestroy, "cuGraphExecDestroy", (CuGraphExec))                                         \
  F(eventCreate, "cuEventCreate", (CuEvent *, unsigned))                                           \
  F(eventDestroy, "cuEventDestroy_v2", (CuEvent))                                                  \
  F(eventRecord, "cuEventRecord", (CuEvent, CuStream))                                             \
  F(eventQuery, "cuEventQuery", (CuEvent))                                                         \
  F(eventElapsedTime, "cuEventElapsedTime", (float *, CuEvent, CuEvent))                           \
  F(ctxSynchronize, "cuCtxSynchronize", ())                                                        \
  F(moduleLoadData, "cuModuleLoadData", (CuModule *, const void *))                                \
  F(moduleUnload, "cuModuleUnload", (CuModule))                                                    \
  F(moduleGetFunction, "cuModuleGetFunction", (CuFunction *, CuModule, const char *))              \
  F(funcSetAttribute, "cuFuncSetAttribute", (CuFunction, int, int))                                \
  F(launchKernel, "cuLaunchKernel",                                                                \
    (CuFunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CuStream,   \
     void **, void **))                                                                            \
  F(getErrorString, "cuGetErrorString", (CuResult, const char **))

/// The initialized driver.
struct CudaApi {
#define TESSERA_DECLARE(name, symbol, arguments) CuResult(*name) arguments = nullptr;
  TESSERA_CUDA_FUNCTIONS(TESSERA_DECLARE)
#undef TESSERA_DECLARE

  /// Opens libcuda.so.1 and initializes it. The error names the missing part.
  Status open();
  /// "WHAT: out of memory (CUDA error 2)".
  Status check(CuResult result, const std::string &what) const;

  int version = 0; ///< of the driver: 13000 for CUDA 13.0
  int devices = 0;

private:
  SharedLibrary library;
};

constexpr int kCuComputeCapabilityMajor = 75, kCuComputeCapabilityMinor = 76;
constexpr int kCuProcessors = 16;
constexpr int kCuMaxDynamicShared = 8; ///< attribute of a function
constexpr unsigned kCuStreamNonBlocking = 1;
constexpr unsigned kCuEventDisableTiming = 2;
constexpr int kCuCaptureThreadLocal = 1;
constexpr CuResult kCuNotReady = 600;
constexpr CuResult kCuInvalidImage = 200, kCuNoBinary = 209, kCuInvalidPtx = 218,
                   kCuNoCompiler = 221, kCuUnsupportedPtx = 222;

} // namespace tessera::runtime::gpu

#endif // TESSERA_LIB_RUNTIME_GPU_CUDA_CUDAAPI_H
