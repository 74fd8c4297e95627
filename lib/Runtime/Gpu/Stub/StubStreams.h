//===- StubStreams.h - Streams, events and graphs of the stub ---*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_GPU_STUB_STUBSTREAMS_H
#define TESSERA_LIB_RUNTIME_GPU_STUB_STUBSTREAMS_H

#include "StubDriver.h"

/// The predecessors of the next operation of a stream: operations, or items of a capture.
struct tessera::runtime::StreamObject {
  int64_t chain = 0, device = 0;
  std::string name;
  std::vector<gpu::StubNodePtr> frontier;
  gpu::GraphObject *capture = nullptr;
  std::vector<int64_t> captured;
};

namespace tessera::runtime::gpu {

/// The frontier of a stream at the time of the record.
struct EventObject {
  std::vector<StubNodePtr> frontier;
  GraphObject *capture = nullptr;
  std::vector<int64_t> captured;
};

struct GraphObject {
  struct Item {
    Stream stream;
    int64_t chain;
    std::shared_ptr<const StubWork> work;
    std::vector<int64_t> after; ///< items; if empty, the predecessors of the launch
    bool isLeaf = true;
  };
  Stream origin = nullptr;
  std::vector<Stream> members;
  std::vector<Item> items;
  bool ended = false;
};

} // namespace tessera::runtime::gpu

#endif // TESSERA_LIB_RUNTIME_GPU_STUB_STUBSTREAMS_H
