//===- Options.h - Options of the phases ------------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// No LLVM header here: the tool's main and the Python module include this file.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PHASES_OPTIONS_H
#define TESSERA_PHASES_OPTIONS_H

#include "tessera/Sharding/CostModel.h"
#include "tessera/Support/Names.h"

#include <cstdint>
#include <optional>
#include <string>

namespace tessera {

template <> inline constexpr auto kNames<sharding::Objective> = named("time", "bytes");

/// What a search makes as small as possible.
enum class Minimise {
  time,   ///< of a step, modelled
  memory, ///< the peak of a device
};
template <> inline constexpr auto kNames<Minimise> = named("time", "memory");

/// How a device that has a part of a sequence gets the keys and values of the others.
enum class AttentionSequence {
  automatic, ///< the better; in a pipeline alone: gather
  gather,    ///< all at once
  ring,      ///< in blocks that arrive in turn
};
template <> inline constexpr auto kNames<AttentionSequence> = named("auto", "gather", "ring");

/// Whether and how shardings are searched.
struct SearchRequest {
  std::string mode;                   ///< name of a search mode; empty: no search
  std::optional<double> memoryBudget; ///< GiB per device
  Minimise minimise = Minimise::time;
  bool fullyUseDevices = true; ///< contractions use every device if their sizes allow
  int64_t devices = 0;         ///< number of devices for a program without a mesh
  bool offersDevices = false;  ///< a declared mesh may need fewer than `devices`
  double timeLimit = 10;       ///< seconds
  std::string solver;          ///< path of HiGHS' library or of CBC; empty: searched for
};

/// What a user chooses about the plan of a program. The command line, Python and
/// `--tessera-pipeline` set these fields, and the pipeline reads them. All are part of the key of
/// cached artifacts (lib/Driver/ArtifactCache.cpp).
struct PlanOptions {
  sharding::Objective objective = sharding::Objective::time; ///< of reshard plans
  bool narrowReductions = false;                             ///< reduce 16-bit floats in 16 bits
  AttentionSequence attentionSequence = AttentionSequence::automatic;
  std::string schedule; ///< of a pipeline's micro-batches; empty: the program's
  std::string topology; ///< file of the machine; empty: the default
  std::string fusion;   ///< options of dist-fuse-collectives; empty: its defaults
  bool remarks = false; ///< on the compiler's choices and their reasons
  SearchRequest search; ///< without a mode annotations decide
};

} // namespace tessera

#endif // TESSERA_PHASES_OPTIONS_H
