//===- CostOptions.cpp - Objective and machine of passes ------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Planning/CostOptions.h"

#include "llvm/Support/FormatVariadic.h"

#include <cmath>

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

FailureOr<CostOptions> dist::readCostOptions(Operation *at, StringRef objective,
                                             StringRef topology) {
  CostOptions options;
  if (objective != "time" && objective != "bytes")
    return at->emitError() << "objective '" << objective
                           << "' is not a valid objective: expected time or bytes";
  if (objective == "bytes")
    options.objective = sharding::Objective::bytes;
  sharding::TopologyError error;
  std::optional<sharding::Topology> read = sharding::readTopology(topology.str(), error);
  if (!read && error.line == 0) // not in the text of the file
    return emitError(UnknownLoc::get(at->getContext()))
           << "topology '" << topology << "': " << error.message;
  if (!read) {
    Location place =
        FileLineColLoc::get(at->getContext(), topology, static_cast<unsigned>(error.line), 1);
    return emitError(place) << error.message;
  }
  options.topology = std::move(*read);
  return options;
}

FailureOr<double> dist::readMemoryBudget(Operation *at, StringRef pass, double gibibytes) {
  if (std::isfinite(gibibytes) && gibibytes >= 0)
    return gibibytes * 1024 * 1024 * 1024;
  return at->emitError() << pass << ": memory-budget " << llvm::formatv("{0}", gibibytes).str()
                         << " is not valid: expected a number of GiB, or 0 for no budget";
}
