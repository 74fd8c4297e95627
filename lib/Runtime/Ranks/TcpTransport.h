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

/// A connection between each pair of ranks, on loopback unless the place has a job token, which
/// both ends of each connection prove. Ranks meet at `place`; fails unless all are connected within
/// `seconds`.
///
/// A message that arrives before its receive is kept in memory. The end of a connection fails the
/// messages of its rank.
Expected<std::unique_ptr<Transport>> openTcpTransport(const LaunchedRank &rank, double seconds,
                                                      const MeetingPlace &place);

} // namespace tessera::runtime

#endif // TESSERA_LIB_RUNTIME_RANKS_TCPTRANSPORT_H
