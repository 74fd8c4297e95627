//===- FuseGraph.h - Which ops go into one kernel ---------------*- C++ -*-===//
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

/// Most ops of a kernel, unless an option says otherwise.
constexpr unsigned kMostFusedOps = 48;
/// Where every buffer of an arena starts, in bytes.
constexpr int64_t kArenaAlignment = 64;

/// What an op is to those who fuse.
enum class FuseKind {
  kernel,  ///< may share a kernel with others
  ordered, ///< communicates, or may: keeps its order among its like on all devices
  alone,
};

/// The ops of one block and the groups they are put into. Ops are numbered by their place. The code
/// generator makes kernels by it, and the search knows by it what takes no memory.
class FuseGraph {
public:
  using KindOf = llvm::function_ref<FuseKind(mlir::Operation *)>;
  /// Whether what an operand reads is sent in between, which the block does not show yet.
  using IsSent = llvm::function_ref<bool(mlir::OpOperand &)>;

  FuseGraph(mlir::Block &block, unsigned maxOps, KindOf kindOf, IsSent isSent = nullptr);

  /// Puts each op that becomes a kernel into a group with the producers it can share one with.
  void fuse();
  /// After `fuse`: puts sums over all rows into the group that goes over these rows anyway, where a
  /// GPU forms them on its way (lib/Codegen/CUDA/GpuWalk.cpp).
  void joinSums();
  /// The groups, each as its ops in order, single ops too, in an order that respects all uses.
  std::vector<std::vector<mlir::Operation *>> order() const;

private:
  struct Group {
    std::vector<unsigned> ops; ///< ascending
    std::optional<RowSpace> rows;
  };

  void tryJoin(unsigned op, unsigned producerGroup);
  /// One group of the two, called `into`.
  void merge(unsigned from, unsigned into);
  /// Whether the group consists of the sums `op`, of what leads to them element by element, and of
  /// little that follows.
  bool isSums(const Group &group, unsigned op) const;
  /// The groups that make or read a whole operand of `group`, nearest producers first.
  llvm::SmallVector<unsigned> neighboursOf(const Group &group, int64_t iterations) const;
  /// The groups in an order in which each comes behind those it waits for, earlier places first.
  std::vector<unsigned> sorted(const std::vector<std::vector<unsigned>> &groupUsers,
                               const std::vector<unsigned> &places) const;
  /// Whether something outside both uses what one makes, and is used by the other.
  bool separated(unsigned a, unsigned b);
  bool reaches(unsigned from, unsigned to);
  /// Whether a short look along users, and from there along the tree of latest producers, shows
  /// that `from` reaches `to` through others. Where it does not, that says nothing.
  bool isSeenToReach(unsigned from, unsigned to);
  void growTree();
  /// No group that the one of an op waits for, itself included, has a later op than this.
  unsigned latestBehind(unsigned op) const;
  /// Whether only ops of the two groups use what the producer makes.
  bool isPrivate(const Group &producer, unsigned consumerGroup) const;
  /// Whether the producer's group hands values to the op's group through operands of the op alone:
  /// the rows of nothing else are compared.
  bool passesByOperandsOnly(unsigned op, unsigned producerGroup) const;
  /// Whether a group would have to wait for a step behind it, for a few elements that it hands to
  /// the op: a row's sum, for scores that are computed again much later. That step would run at
  /// once, and the op's results be in memory until their users run.
  bool wouldWaitForLittle(unsigned op, unsigned producerGroup) const;
  /// Puts into a buffer that only it sees, what was put there before: one kernel.
  bool continuesInserts(unsigned op, unsigned producerGroup) const;

  mlir::Block &block;
  unsigned maxOps;
  std::vector<mlir::Operation *> ops;
  std::vector<FuseKind> kinds;
  std::vector<std::vector<unsigned>> sources; ///< what an op waits for, ascending
  std::vector<std::vector<unsigned>> sent;    ///< those of them that come by a collective
  std::vector<std::vector<unsigned>> users;   ///< the other way round
  /// By op: its number in the tree in which each op is below its latest producer, and the first
  /// number behind those of all below it.
  std::vector<unsigned> treeFirst, treeEnd;
  std::vector<unsigned> groupOf;
  std::vector<Group> groups;
  llvm::DenseMap<mlir::Operation *, unsigned> number;
  std::vector<unsigned> latest; ///< by op: the last op of the groups that begin there or before
  unsigned lastMerged = 0;      ///< no later op is in a group with others
  /// By op: the last search that came by, backwards and forwards.
  std::vector<unsigned> visited, visitedAhead;
  std::vector<unsigned> looked; ///< of a look, the ops that it goes on from
  unsigned search = 0;
};

} // namespace tessera::dist

#endif // TESSERA_FUSION_FUSEGRAPH_H
