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

#include <cstdint>
#include <optional>
#include <string>

namespace tessera {

/// Whether and how shardings are searched.
struct SearchRequest {
  std::string mode;                   ///< name of a search mode; empty: no search
  std::optional<double> memoryBudget; ///< GiB per device
  std::string minimise = "time";      ///< or "memory": the least peak per device
  bool fullyUseDevices = true;        ///< contractions use every device if their sizes allow
  int64_t devices = 0;                ///< number of devices for a program without a mesh
  bool offersDevices = false;         ///< a declared mesh may need fewer than `devices`
  double timeLimit = 10;              ///< seconds
  std::string solver;                 ///< path of HiGHS' library or of CBC; empty: searched for
};

/// What a user chooses about the plan of a program. The command line, Python and
/// `--tessera-pipeline` set these fields, and the pipeline reads them.
struct PlanOptions {
  std::string objective = "time"; ///< of reshard plans: time or bytes
  bool narrowReductions = false;  ///< reduce 16-bit floats in 16 bits
  std::string attentionSequence =
      "auto";           ///< keys of a cut sequence: gather, ring; auto: the better
  std::string schedule; ///< of a pipeline's micro-batches; empty: the program's
  std::string topology; ///< file of the machine; empty: the default
  std::string fusion;   ///< options of dist-fuse-collectives; empty: its defaults
  bool remarks = false; ///< on the compiler's choices and their reasons
  SearchRequest search; ///< without a mode annotations decide
};

} // namespace tessera

#endif // TESSERA_PHASES_OPTIONS_H
