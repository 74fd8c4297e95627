//===- CudaTrace.h - Times of operations on a GPU ---------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_GPU_CUDA_CUDATRACE_H
#define TESSERA_LIB_RUNTIME_GPU_CUDA_CUDATRACE_H

#include "../../Execution/Recorder.h"
#include "../Driver.h"
#include "CudaApi.h"

namespace tessera::runtime::gpu {

/// Records two events around each operation for a trace. Events within graphs have no times, so a
/// traced program is issued without graphs.
class CudaTrace {
public:
  static constexpr size_t kMaxOperations = 1 << 16; ///< then it stops, with a warning

  explicit CudaTrace(const CudaApi &api) : api(api) {}
  CudaTrace(const CudaTrace &) = delete;
  CudaTrace &operator=(const CudaTrace &) = delete;
  ~CudaTrace();
  /// Sets time 0, on a separate stream. Called by all processes at once.
  Status start();
  Status begin(const Issue &issue, int64_t device);
  Status end(const Issue &issue);
  /// The operations so far by device, in nanoseconds from time 0; waits for the GPU.
  Expected<std::vector<Track>> tracks(int64_t devices);

private:
  struct Span {
    const Step *step;
    const char *what;
    int64_t device;
    CuEvent from, to;
  };
  Expected<CuEvent> recorded(CuStream stream);

  const CudaApi &api;
  CuEvent origin = nullptr;
  std::vector<CuEvent> events; ///< all
  std::vector<Span> spans;
  bool full = false, open = false;
};

} // namespace tessera::runtime::gpu

#endif // TESSERA_LIB_RUNTIME_GPU_CUDA_CUDATRACE_H
