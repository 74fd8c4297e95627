//===- FuseGraph.h - Ops that become one kernel -----------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_FUSION_FUSEGRAPH_H
#define TESSERA_FUSION_FUSEGRAPH_H

#include "tessera/Fusion/FuseRows.h"

#include <optional>

namespace tessera::dist {

/// Default limit on the ops of a kernel.
constexpr unsigned kMostFusedOps = 48;
/// Alignment of buffers in an arena, in bytes.
constexpr int64_t kArenaAlignment = 64;

/// The kind of an op for fusion.
enum class FuseKind {
  kernel,  ///< may share a kernel with others
  ordered, ///< may communicate: such ops keep their order on all devices
  alone,
};

/// The ops of one block and their groups. Ops are numbered by position. The code generator forms
/// kernels from the groups, and the search derives which values need no memory.
class FuseGraph {
public:
  using KindOf = llvm::function_ref<FuseKind(mlir::Operation *)>;
  /// Whether an operand is sent before it is read although the block has no collective for it yet.
  using IsSent = llvm::function_ref<bool(mlir::OpOperand &)>;

  FuseGraph(mlir::Block &block, unsigned maxOps, KindOf kindOf, IsSent isSent = nullptr);

  /// Groups each op that becomes a kernel with the producers with which it can share one.
  void fuse();
  /// After `fuse`: joins sums over all rows with the group that iterates over these rows, where a
  /// GPU computes them together (lib/Codegen/CUDA/Groups/GpuWalk.cpp).
  void joinSums();
  /// The groups, including single ops, each with its ops in order, in an order that respects all
  /// uses.
  std::vector<std::vector<mlir::Operation *>> order() const;

private:
  struct Group {
    std::vector<unsigned> ops; ///< ascending
    std::optional<RowSpace> rows;
  };

  void tryJoin(unsigned op, unsigned producerGroup);
  /// Merges two groups into `into`.
  void merge(unsigned from, unsigned into);
  /// Whether the group consists of the sums `op`, the elementwise ops that lead to them, and few
  /// consumers.
  bool isSums(const Group &group, unsigned op) const;
  /// The groups that compute or read a whole operand of `group`, nearest producers first.
  llvm::SmallVector<unsigned> neighboursOf(const Group &group, int64_t iterations) const;
  /// The groups in topological order, earlier positions first.
  std::vector<unsigned> sorted(const std::vector<std::vector<unsigned>> &groupUsers,
                               const std::vector<unsigned> &places) const;
  /// Whether an op outside of both uses results of one and is used by the other.
  bool separated(unsigned a, unsigned b);
  bool reaches(unsigned from, unsigned to);
  /// Whether a short search along users, and from there along the tree of latest producers, shows
  /// that `from` reaches `to` through others. False is inconclusive.
  bool quicklyReaches(unsigned from, unsigned to);
  void growTree();
  /// Lets an op wait for an earlier reader of what it updates.
  void waitFor(mlir::Operation *reader, unsigned op);
  /// An upper bound on the ops of the groups on which the group of an op depends, including itself.
  unsigned dependencyBound(unsigned op);
  /// Whether only ops of the two groups use the producer's results.
  bool isPrivate(const Group &producer, unsigned consumerGroup) const;
  /// Whether values pass from the producer's group to the op's group only through operands of the
  /// op: no other rows need to be compared.
  bool passesOnlyThroughOperands(unsigned op, unsigned producerGroup) const;
  /// Whether a group would have to wait for a later step because of a few elements that it passes
  /// to the op: a row's sum, for scores that are recomputed much later. That step would then run
  /// early, and the op's results be live until their users run.
  bool wouldDelayForFewElements(unsigned op, unsigned producerGroup) const;
  /// Whether the op continues a chain of insertions into a buffer without other readers: one
  /// kernel.
  bool continuesInserts(unsigned op, unsigned producerGroup) const;

  mlir::Block &block;
  unsigned maxOps;
  std::vector<mlir::Operation *> ops;
  std::vector<FuseKind> kinds;
  std::vector<std::vector<unsigned>> sources; ///< producers of an op's operands, ascending
  std::vector<std::vector<unsigned>> sent;    ///< those whose values are sent, or read first
  std::vector<std::vector<unsigned>> users;   ///< the inverse
  /// By op: the interval of its subtree in the tree in which each op is below its latest producer.
  std::vector<unsigned> treeFirst, treeEnd;
  std::vector<unsigned> groupOf;
  std::vector<Group> groups;
  llvm::DenseMap<mlir::Operation *, unsigned> number;
  std::vector<unsigned> latest; ///< by op: it, or a later op on the way to its bound
  unsigned lastMerged = 0;      ///< no later op is in a group with others
  /// By op: the last search that visited it, backwards and forwards.
  std::vector<unsigned> visited, visitedAhead;
  std::vector<unsigned> looked; ///< worklist of a search
  unsigned search = 0;
};

} // namespace tessera::dist

#endif // TESSERA_FUSION_FUSEGRAPH_H
