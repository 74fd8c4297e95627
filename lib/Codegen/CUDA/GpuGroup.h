//===- GpuGroup.h - Ops that become one launch ------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Ops share a launch when they have loops in common: a *class* is a parallel loop that every member
// has, found by its step through memory that members share. What a member has besides are its own
// loops. Softmax over the columns of x[i, j]:
//
//   op                               | class | own loops
//   max[i]  = max over j of x[i, j]  | i     | j, reduced
//   e[i, j] = exp(x[i, j] - max[i])  | i     | j
//   sum[i]  = sum over j of e[i, j]  | i     | j, reduced
//   y[i, j] = e[i, j] / sum[i]       | i     | j
//
// Iterations of different classes' indices touch different elements of everything that a member
// writes and another one accesses, so they may run in any order. Two ways to run them:
//
//   flat    no member has parallel loops of its own: a thread for some iterations of the classes
//   rows    own loops are all parallel or all reduced: a team of threads for each iteration
//
// A flat group that reads along one class and writes along another goes through tiles (`tiles`).
//
// Sums over the rows of such a launch, in parts of consecutive rows, can be formed by it too: a
// team then goes over the rows of a part one after another (GpuWalk.cpp).
//===----------------------------------------------------------------------===//

#ifndef TESSERA_CODEGEN_CUDA_GPUGROUP_H
#define TESSERA_CODEGEN_CUDA_GPUGROUP_H

#include "GpuAccess.h"

namespace tessera::codegen {

/// Tiles of two loops of a flat group. Some operands lie along one of them, `across`, all others
/// along the last. Loops are runs of classes that every operand walks as one.
struct GpuTiles {
  struct Loop {
    int64_t extent;
    unsigned lastClass; ///< the innermost of its classes: its step is the loop's
  };
  llvm::SmallVector<Loop> loops; ///< outermost first
  unsigned across = 0;
};

/// Sums over runs of a group's rows: p[s, j] = sum over i' of x[s * walk + i', j].
struct GpuColumns {
  GpuMember member;
  std::vector<GpuMember> fills;  ///< of p
  size_t at = 0;                 ///< it stands in front of this member
  unsigned part = 0, walked = 0; ///< its loops s and i'
};

struct GpuGroup {
  std::vector<GpuMember> members;
  std::vector<GpuColumns> columns; ///< until `spread`
  /// After `spread`: so many rows, counted by the last class, are walked by a team in order.
  int64_t walk = 1;
  llvm::SmallVector<int64_t> extents; ///< of the classes, outermost first
  bool rows = false;
  std::optional<GpuTiles> tiles;

  explicit GpuGroup(GpuMember member);

  /// Adds a member that follows the others, with `fills` that it alone needs in front of it;
  /// refuses, and stays as it is, when it has no loop in common with them or the launch would lose
  /// more than it saves.
  bool join(const GpuMember &member, llvm::ArrayRef<GpuMember> fills = {});
  /// Once all have joined: makes members of the columns.
  void spread();
  /// After `spread`: whether the member sums over the rows that a team walks; whether it writes
  /// what such sums begin with.
  bool isColumns(const GpuMember &member) const;
  bool isColumnsFill(const GpuMember &member) const;
  /// Whether sums over rows are written there.
  bool sumsInto(mlir::Value root) const;

  /// Whether the two must keep their order: one writes what the other accesses.
  bool conflicts(const GpuMember &member) const;
  bool reads(mlir::Value root) const;
  bool writes(mlir::Value root) const;

  /// The member's loops of the classes, in the classes' order.
  static llvm::SmallVector<unsigned> classLoops(const GpuMember &member, unsigned classes);
  /// The member's other loops of more than one trip.
  static llvm::SmallVector<unsigned> ownLoops(const GpuMember &member);
  /// Iterations of the classes.
  int64_t count() const;

  /// Whether the member's operand is read in tiles.
  bool isTiled(const GpuMember &member, const GpuAccess &access) const;

private:
  bool joinIterations(const GpuMember &member, llvm::ArrayRef<GpuMember> fills);
  bool joinColumns(const GpuMember &member, llvm::ArrayRef<GpuMember> fills);
  /// The group after `spread`; nothing when it has no such form.
  std::optional<GpuGroup> walked() const;
  /// Of members and columns.
  bool any(llvm::function_ref<bool(const GpuMember &)> is) const;
  /// Chooses between flat and rows; false when neither is possible or wise.
  bool choose();
  bool flatPossible() const;
  std::optional<GpuTiles> findTiles() const;
  bool rowsPossible() const;
  /// Whether the accesses to everything that flows between members keep to their iteration of the
  /// classes.
  bool separable() const;
  /// Whether the memory of a member with own loops is contiguous along them.
  bool contiguousAlongOwn() const;
  /// Orders the classes as the memory of the last member's output lies.
  void orderClasses();
};

} // namespace tessera::codegen

#endif // TESSERA_CODEGEN_CUDA_GPUGROUP_H
