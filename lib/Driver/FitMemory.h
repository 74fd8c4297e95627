//===- FitMemory.h - A planned arena within the budget ----------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_DRIVER_FITMEMORY_H
#define TESSERA_LIB_DRIVER_FITMEMORY_H

#include "PendingMessages.h"

#include "tessera/Driver/Compilation.h"

#include <chrono>
#include <map>

namespace tessera {

/// Tries plans of one program, with arenas. While it lives, messages are held back that are no
/// errors.
class MemoryFitter {
public:
  /// `start`: the phase that the program is in, `normalized` at least.
  MemoryFitter(Compilation &compilation, const PipelineOptions &wish, Phase start);

  /// Whether a plan's arena is within so many bytes; the program is that plan's then.
  mlir::FailureOr<bool> fitsInto(double bytes);
  /// Tries plans of little memory, those of propagation too, until an arena is within so many
  /// bytes. Which are tried does not depend on that; when the search's time limit is over, no more.
  mlir::FailureOr<bool> findLeast(double bytes);
  /// Makes the program that of the smallest arena which findLeast met.
  void takeSmallest();
  /// That nothing fits: says what findLeast found.
  mlir::LogicalResult refuse(double bytes);
  /// The plan that fits, before its collectives are joined; once.
  mlir::OwningOpRef<mlir::ModuleOp> takePartitioned() { return std::move(partitioned); }
  /// What the passes said of the program.
  std::vector<mlir::Diagnostic> takeMessages();

private:
  /// Partitions the plan that is searched within so many bytes; without them the one of least
  /// memory, or propagation's `alone`.
  mlir::LogicalResult search(std::optional<double> bytes, bool alone = false);
  /// Whether the last search has proved that no plan is within so many bytes.
  bool isHopeless(double bytes) const;
  /// Arenas of a plan of little memory that is found at once.
  mlir::FailureOr<bool> tryQuickly(double bytes);
  /// Bytes that the searched plan is estimated to take.
  double estimate() const;
  /// The arena of the partitioned plan, with what the passes behind are given.
  mlir::FailureOr<int64_t> planArena(double bytes);
  /// Arenas of the partitioned plan by what is given, until one is within `bytes`.
  mlir::FailureOr<bool> tryArenas(llvm::ArrayRef<double> tried, double bytes);
  void keepIfSmaller(int64_t arena);
  /// Asks for less and less than the smallest arena.
  mlir::FailureOr<bool> descend(double bytes);
  bool isInTime() const;

  /// The smallest arena of findLeast.
  struct Smallest {
    int64_t arena = std::numeric_limits<int64_t>::max();
    mlir::OwningOpRef<mlir::ModuleOp> program;
    std::vector<mlir::Diagnostic> messages;
    mlir::DictionaryAttr search; ///< what is known of the plan that is estimated to take least
  };

  std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::now();
  Compilation &compilation;
  PipelineOptions attempt;
  std::string mode;
  Phase start, middle;
  PendingMessages pending;
  mlir::OwningOpRef<mlir::ModuleOp> normalized, partitioned;
  mlir::DictionaryAttr found;         ///< what the search wrote; null: there was none
  size_t numSearched = 0;             ///< messages of the search
  std::map<uint64_t, int64_t> arenas; ///< by hash of the program's text
  int64_t lastArena = 0;              ///< of the program
  Smallest smallest;
};

} // namespace tessera

#endif // TESSERA_LIB_DRIVER_FITMEMORY_H
