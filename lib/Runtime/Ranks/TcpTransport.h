//===- TcpTransport.h - Ranks connected by sockets --------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_RANKS_TCPTRANSPORT_H
#define TESSERA_LIB_RUNTIME_RANKS_TCPTRANSPORT_H

#include "Rendezvous.h"
#include "Transport.h"

namespace tessera::runtime {

/// A connection between each two ranks, on loopback unless the place has a job token, which both
/// ends of each connection prove. Ranks meet at `place` and are all connected, or it fails, by
/// `seconds`.
///
/// A message that comes before its receive is kept in memory. A connection that ends fails the
/// messages with its rank.
Expected<std::unique_ptr<Transport>> openTcpTransport(const LaunchedRank &rank, double seconds,
                                                      const MeetingPlace &place);

} // namespace tessera::runtime

#endif // TESSERA_LIB_RUNTIME_RANKS_TCPTRANSPORT_H
