//===- TcpMesh.h - Connections between all pairs of ranks -------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_RANKS_TCPMESH_H
#define TESSERA_LIB_RUNTIME_RANKS_TCPMESH_H

#include "Rendezvous.h"

namespace tessera::runtime {

struct TcpMesh {
  std::vector<Socket> sockets; ///< by rank; none to itself
  std::vector<std::string> hosts;
};

/// Each rank listens, announces its address through the rendezvous, connects to the lower ranks and
/// accepts the higher ones. Both ends prove that they belong to the job.
Expected<TcpMesh> connectMesh(const LaunchedRank &rank, double seconds, const MeetingPlace &place);

} // namespace tessera::runtime

#endif // TESSERA_LIB_RUNTIME_RANKS_TCPMESH_H
