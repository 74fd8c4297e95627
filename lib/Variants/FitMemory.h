//===- FitMemory.h - A planned arena within the budget ----------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_VARIANTS_FITMEMORY_H
#define TESSERA_LIB_VARIANTS_FITMEMORY_H

#include "PendingMessages.h"

#include "tessera/Variants/PhasedProgram.h"

#include <chrono>
#include <map>

namespace tessera {

/// Tries plans of one program, with their arenas. Withholds diagnostics other than errors during
/// its lifetime.
class MemoryFitter {
public:
  /// `start`: the phase that the program is in, `normalized` at least.
  MemoryFitter(PhasedProgram &program, const PipelineOptions &requested, Phase start);

  /// Whether a plan's arena fits; the program is then that of the plan.
  mlir::FailureOr<bool> fitsInto(double bytes);
  /// Tries plans of little memory, including propagation's, until an arena fits. The order of plans
  /// does not depend on `bytes`; ends at the search's time limit.
  mlir::FailureOr<bool> findLeast(double bytes);
  /// Selects the program with the smallest arena of findLeast.
  void takeSmallest();
  /// Emits the error that nothing fits, with the result of findLeast.
  mlir::LogicalResult refuse(double bytes);
  /// The plan that fits, before its collectives are joined; once.
  mlir::OwningOpRef<mlir::ModuleOp> takePartitioned() { return std::move(partitioned); }
  /// The diagnostics of the program's passes.
  std::vector<mlir::Diagnostic> takeMessages();

private:
  /// Partitions the plan found within this budget; without a budget the one with the least memory,
  /// or propagation's (`alone`).
  mlir::LogicalResult search(std::optional<double> bytes, bool alone = false);
  /// Whether the last search has proved that no plan fits.
  bool isBelowBound(double bytes) const;
  /// Tries arenas of a quickly found plan of little memory.
  mlir::FailureOr<bool> tryQuickly(double bytes);
  /// The estimated bytes of the searched plan.
  double estimate() const;
  /// The arena of the partitioned plan, with `bytes` as the budget of later passes.
  mlir::FailureOr<int64_t> planArena(double bytes);
  /// Tries arenas of the partitioned plan with these budgets until one is within `bytes`.
  mlir::FailureOr<bool> tryArenas(llvm::ArrayRef<double> tried, double bytes);
  void keepIfSmaller(int64_t arena);
  /// Searches with decreasing budgets below the smallest arena.
  mlir::FailureOr<bool> descend(double bytes);
  bool isInTime() const;

  /// The smallest arena of findLeast.
  struct Smallest {
    int64_t arena = std::numeric_limits<int64_t>::max();
    mlir::OwningOpRef<mlir::ModuleOp> program;
    std::vector<mlir::Diagnostic> messages;
    mlir::DictionaryAttr search; ///< attribute of the plan with the least estimate
  };

  std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::now();
  PhasedProgram &program;
  PipelineOptions attempt;
  std::string mode;
  Phase start, middle;
  PendingMessages pending;
  mlir::OwningOpRef<mlir::ModuleOp> normalized, partitioned;
  mlir::DictionaryAttr found;         ///< the search's attribute; null without a search
  size_t numSearched = 0;             ///< messages of the search
  std::map<uint64_t, int64_t> arenas; ///< by hash of the program's text
  int64_t lastArena = 0;              ///< of the program
  Smallest smallest;
};

} // namespace tessera

#endif // TESSERA_LIB_VARIANTS_FITMEMORY_H
