//===- Issue.h - Descriptor of an issued operation --------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_EXECUTION_ISSUE_H
#define TESSERA_LIB_RUNTIME_EXECUTION_ISSUE_H

#include "tessera/Runtime/Artifact/Program.h"

#include <cstddef>

namespace tessera::runtime {

/// An ordered stream of operations on a device, defined by the executor.
struct StreamObject;

/// Bytes that an operation reads or writes, for executors that look for hazards.
struct Touch {
  const std::byte *data;
  int64_t bytes;
  bool write;
};

/// The stream and description of an operation. `step` outlives its execution.
struct Issue {
  StreamObject *stream; ///< operations of one stream happen one after the other
  const Step *step;
  const char *what;           ///< "launch", "pack", "all_gather", …
  std::vector<Touch> touches; ///< empty unless the executor looks for hazards
};

} // namespace tessera::runtime

#endif // TESSERA_LIB_RUNTIME_EXECUTION_ISSUE_H
