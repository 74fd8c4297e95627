//===- TimeInBytes.h - Seconds as bytes sent meanwhile ----------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_TRANSFORMS_RESHARD_TIMEINBYTES_H
#define TESSERA_LIB_TRANSFORMS_RESHARD_TIMEINBYTES_H

#include "tessera/Planning/CostOptions.h"
#include "tessera/Solver/MinimumCut.h"

namespace tessera::dist {

/// Times in terms of the bytes that a device sends over some mesh axes meanwhile.
class TimeInBytes {
public:
  TimeInBytes(const sharding::Mesh &mesh, sharding::AxisList group, const CostOptions &options)
      : mesh(mesh), group(std::move(group)), links(options.topology.linksOf(mesh)) {
    constexpr int64_t kMany = int64_t(1) << 24;
    double seconds = secondsOf(sharding::CollectiveKind::reduce_scatter, kMany) -
                     secondsOf(sharding::CollectiveKind::reduce_scatter, 0);
    if (options.objective == sharding::Objective::time && seconds > 0)
      bytesPerSecond = static_cast<double>(kMany) / seconds;
  }

  /// None if bytes are the objective.
  solver::Capacity bytesOf(double seconds) const {
    constexpr double kMost = 0x1p100; // far above any program
    return static_cast<solver::Capacity>(std::min(kMost, seconds * bytesPerSecond));
  }

  /// Seconds to start a reduce-scatter and a gather. An all-reduce mostly stays beside them, for
  /// what cannot be cut, as a loss.
  double latency() const {
    return secondsOf(sharding::CollectiveKind::reduce_scatter, 0) +
           secondsOf(sharding::CollectiveKind::all_gather, 0);
  }

private:
  /// Of a collective in which a device sends and writes so many bytes.
  double secondsOf(sharding::CollectiveKind kind, int64_t bytes) const {
    sharding::Traffic traffic;
    traffic.wireBytes = bytes;
    traffic.count = 1;
    traffic.messages = sharding::sizeOf(group) - 1; // of half an all-reduce
    if (kind == sharding::CollectiveKind::reduce_scatter)
      traffic.added.bytes = bytes;
    else
      traffic.written.bytes = bytes;
    return links.seconds(mesh, group, kind, traffic);
  }

  const sharding::Mesh &mesh;
  sharding::AxisList group;
  sharding::LinkModel links;
  double bytesPerSecond = 0;
};

} // namespace tessera::dist

#endif // TESSERA_LIB_TRANSFORMS_RESHARD_TIMEINBYTES_H
