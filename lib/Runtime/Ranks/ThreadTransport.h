//===- ThreadTransport.h - Ranks that are threads of a process --*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_RANKS_THREADTRANSPORT_H
#define TESSERA_LIB_RUNTIME_RANKS_THREADTRANSPORT_H

#include "Transport.h"

#include <memory>

namespace tessera::runtime {

/// A transport for each of `ranks` ranks of this process, each used by one thread. A message is one
/// copy, by the later end. `hosts` has the host of each rank; empty: one for all. A transport that
/// is abandoned or destroyed fails the messages of others with its rank.
std::vector<std::unique_ptr<Transport>> makeThreadTransports(int64_t ranks,
                                                             std::vector<std::string> hosts = {});

} // namespace tessera::runtime

#endif // TESSERA_LIB_RUNTIME_RANKS_THREADTRANSPORT_H
