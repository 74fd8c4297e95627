//===- JobExecutor.h - Common part of executors of jobs ---------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_MPI_JOBEXECUTOR_H
#define TESSERA_LIB_RUNTIME_MPI_JOBEXECUTOR_H

#include "tessera/Runtime/Execution/Executor.h"

#include <algorithm>

namespace tessera::runtime {

/// The devices of one process of a job. Reads of slots are collective over all processes.
class JobExecutor : public Executor {
public:
  Status readSlot(int64_t part, int64_t position, int64_t slot, std::byte *data,
                  int64_t size) final {
    std::vector<Bytes> staging;
    auto read = readSlots(part, {position}, slot, size, Readers::all, staging);
    if (!read)
      return read.status();
    std::copy_n(read->front(), size, data);
    return {};
  }
};

} // namespace tessera::runtime

#endif // TESSERA_LIB_RUNTIME_MPI_JOBEXECUTOR_H
