//===- GpuGroup.h - Groups of ops that become one launch --------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Ops share a launch if they have loops in common: a *class* is a parallel loop of every member,
// identified by its steps through memory that members share. The remaining loops of a member are
// its own loops. Softmax over the columns of x[i, j]:
//
//   op                               | class | own loops
//   max[i]  = max over j of x[i, j]  | i     | j, reduced
//   e[i, j] = exp(x[i, j] - max[i])  | i     | j
//   sum[i]  = sum over j of e[i, j]  | i     | j, reduced
//   y[i, j] = e[i, j] / sum[i]       | i     | j
//
// Iterations with different class indices access different elements of all memory that one member
// writes and another one accesses, so they may run in any order. There are two schemes:
//
//   flat    no member has own parallel loops: one thread per few iterations of the classes
//   rows    own loops are all parallel or all reduced: one team of threads per iteration
//
// A flat group that reads along one class and writes along another uses tiles (`tiles`).
//
// A launch over rows can also compute sums over these rows, in parts of consecutive rows: a team
// then processes the rows of a part in order (GpuWalk.cpp).
//===----------------------------------------------------------------------===//

#ifndef TESSERA_CODEGEN_CUDA_GPUGROUP_H
#define TESSERA_CODEGEN_CUDA_GPUGROUP_H

#include "GpuAccess.h"

namespace tessera::codegen {

/// Tiles of two loops of a flat group. Some operands are contiguous along `across`, all others
/// along the last loop. Each loop is a run of classes that every operand iterates over like one
/// loop.
struct GpuTiles {
  struct Loop {
    int64_t extent;
    unsigned lastClass; ///< the innermost of its classes, which has the loop's step
  };
  llvm::SmallVector<Loop> loops; ///< outermost first
  unsigned across = 0;
};

/// Sums over runs of a group's rows: p[s, j] = sum over i' of x[s * walk + i', j].
struct GpuColumns {
  GpuMember member;
  std::vector<GpuMember> fills;  ///< of p
  size_t at = 0;                 ///< its position: before this member
  unsigned part = 0, walked = 0; ///< its loops s and i'
};

struct GpuGroup {
  std::vector<GpuMember> members;
  std::vector<GpuColumns> columns; ///< until `spread`
  /// After `spread`: the number of rows, counted by the last class, that a team processes in order.
  int64_t walk = 1;
  llvm::SmallVector<int64_t> extents; ///< of the classes, outermost first
  bool rows = false;
  std::optional<GpuTiles> tiles;

  explicit GpuGroup(GpuMember member);

  /// Appends a member, preceded by the `fills` that only it needs. Returns false and leaves the
  /// group unchanged if the member has no loop in common with the others, or if the launch would
  /// lose more than it gains.
  bool join(const GpuMember &member, llvm::ArrayRef<GpuMember> fills = {});
  /// Turns the columns into members, after all joins.
  void spread();
  /// After `spread`: whether the member sums over the rows that a team processes; whether it writes
  /// the initial values of such sums.
  bool isColumns(const GpuMember &member) const;
  bool isColumnsFill(const GpuMember &member) const;
  /// Whether the group writes sums over rows to `root`.
  bool sumsInto(mlir::Value root) const;

  /// Whether the group and the member must keep their order: one writes memory that the other
  /// accesses.
  bool conflicts(const GpuMember &member) const;
  bool reads(mlir::Value root) const;
  bool writes(mlir::Value root) const;

  /// The member's loop of each class, in the order of the classes.
  static llvm::SmallVector<unsigned> classLoops(const GpuMember &member, unsigned classes);
  /// The member's other loops with more than one iteration.
  static llvm::SmallVector<unsigned> ownLoops(const GpuMember &member);
  /// The number of iterations of the classes.
  int64_t count() const;

  /// Whether the member's operand is read in tiles.
  bool isTiled(const GpuMember &member, const GpuAccess &access) const;

private:
  bool joinIterations(const GpuMember &member, llvm::ArrayRef<GpuMember> fills);
  bool joinColumns(const GpuMember &member, llvm::ArrayRef<GpuMember> fills);
  /// The group after `spread`; none if that form is impossible.
  std::optional<GpuGroup> walked() const;
  /// Over members and columns.
  bool any(llvm::function_ref<bool(const GpuMember &)> is) const;
  /// Chooses between flat and rows; returns false if neither is possible or profitable.
  bool choose();
  bool flatPossible() const;
  std::optional<GpuTiles> findTiles() const;
  bool rowsPossible() const;
  /// Whether all data passed between members is accessed at the same iteration of the classes.
  bool separable() const;
  /// Whether the memory of a member with own loops is contiguous along them.
  bool contiguousAlongOwn() const;
  /// Orders the classes by the memory layout of the last member's output.
  void orderClasses();
};

} // namespace tessera::codegen

#endif // TESSERA_CODEGEN_CUDA_GPUGROUP_H
