//===- NcclGroups.h - Process groups through NCCL ---------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_GPU_CUDA_NCCLGROUPS_H
#define TESSERA_LIB_RUNTIME_GPU_CUDA_NCCLGROUPS_H

#include "../../Groups/DeviceCalls.h"
#include "CudaApi.h"
#include "NcclApi.h"

#include <utility>

namespace tessera::runtime::gpu {

/// Process groups on the GPU of this process; each communicator has a stream. Parts of different
/// sizes, and parts that are not contiguous, become broadcasts, reductions or messages in one NCCL
/// group.
class NcclGroups final : public DeviceCalls, private NcclApi {
public:
  /// Opens the driver, a GPU and NCCL, without waiting for other ranks.
  static Expected<std::unique_ptr<DeviceCalls>> open(int64_t localRank);
  ~NcclGroups() override;

  Status supports(const GroupCall &call) const override;
  Expected<std::string> makeId() override;
  Expected<int64_t> join(const std::string &id, int64_t place, int64_t size) override;
  Expected<bool> isJoined(int64_t communicator) override;
  Status begin(int64_t communicator, const GroupCall &call, int64_t rootPlace) override;
  Expected<bool> isDone(int64_t communicator) override;
  Status read(std::byte *to, const std::byte *from, int64_t bytes, void *stream) override;
  Status write(std::byte *to, const std::byte *from, int64_t bytes) override;
  void abort() override;

private:
  struct Communicator {
    NcclComm comm = nullptr; ///< null: aborted
    int64_t place = 0, size = 1;
    CuStream stream = nullptr;
    CuEvent before = nullptr, done = nullptr;
    bool isRecorded = false; ///< `done`, after the call
    std::string what;        ///< the call
  };
  struct Parts;

  Status openDevice(int64_t localRank);
  Status enter() { return cuda.check(cuda.ctxSetCurrent(context), "the GPU's context"); }
  Expected<bool> isHealthy(Communicator &each);
  int issue(const Communicator &each, const GroupCall &call, int root);
  int issueParts(const Communicator &each, const GroupCall &call, const Parts &parts, int root);

  CudaApi cuda;
  CuContext context = nullptr;
  CuStream copies = nullptr;
  CuEvent ready = nullptr; ///< of the caller's stream, before a copy
  std::vector<Communicator> communicators;
};

} // namespace tessera::runtime::gpu

#endif // TESSERA_LIB_RUNTIME_GPU_CUDA_NCCLGROUPS_H
