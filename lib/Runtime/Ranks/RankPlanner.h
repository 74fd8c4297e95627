//===- RankPlanner.h - Building the library calls of a step -----*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_RANKS_RANKPLANNER_H
#define TESSERA_LIB_RUNTIME_RANKS_RANKPLANNER_H

#include "RankPlan.h"

namespace tessera::runtime {

/// Builds the plans of all devices together, with both ends of a message at once, so that they
/// agree.
class RankPlanner {
public:
  RankPlanner(const Program &program, const Part &part, const CollectiveStep &step,
              ReducesExactly reducesExactly);
  RankPlan run();

private:
  using Pieces = std::vector<const MovePiece *>;
  struct Buffers {
    int64_t source, target; ///< addresses of the slots, or of the staged source
    bool shared;            ///< they overlap (the same slot, in place)
  };
  struct DevicePlan {
    std::vector<RankAction> prepare, calls, finish;
    RankAction exchange;
    int64_t staged = 0; ///< bytes
  };

  void formGroups();
  void stageUnsafeSources();
  void addFill(size_t operand, const MovePiece &piece);
  void addLocal(size_t operand, const MovePiece &piece, int64_t place);
  /// Plans the move of one operand in one group.
  void planGroup(size_t operand, int64_t group, const Pieces &pieces);
  bool planGather(size_t operand, int64_t group, const Pieces &pieces);
  bool planReduction(size_t operand, int64_t group, const Pieces &pieces);
  void planAllReduce(size_t operand, int64_t group, const Pieces &pieces);
  void planReduceScatter(size_t operand, int64_t group, const Pieces &pieces);
  void planMessages(size_t operand, int64_t group, const Pieces &pieces);
  void planContributions(size_t operand, int64_t group, const MovePiece &piece);
  void addMessage(int64_t group, const End &from, int64_t fromAddress, const End &to,
                  int64_t toAddress, int64_t bytes);
  void addCall(const char *what, int64_t place, const RankCall &call, int64_t send,
               int64_t receive);
  /// Copies a device's side of a piece to or from dense staging.
  void pack(size_t operand, const MovePiece &piece, const End &from, int64_t to);
  void unpack(size_t operand, const MovePiece &piece, int64_t from, const End &to);

  int64_t stage(int64_t place, int64_t bytes);
  RankAction moveAction(const char *what, size_t operand, Strides strides,
                        std::vector<int64_t> sources, int64_t target) const;
  int64_t sourceAt(size_t operand, const End &end) const;
  int64_t targetAt(size_t operand, const End &end) const;
  int64_t placeOf(const End &end) const { return partMesh.positionOf(end.device); }
  int64_t rankOf(int64_t group, int64_t device) const;
  int64_t sizeOfGroup(int64_t group) const {
    return static_cast<int64_t>(plan.groups[group].size());
  }
  RankCall callOf(size_t operand, sharding::CollectiveKind kind, int64_t count) const;

  const Part &part;
  const CollectiveStep &step;
  const ReducesExactly reducesExactly;
  const sharding::Mesh &partMesh, &mesh, &targetMesh;
  std::vector<Move> moves;
  std::vector<Buffers> addresses;  ///< by operand
  std::vector<DevicePlan> devices; ///< by position of the part's mesh
  RankPlan plan;
};

} // namespace tessera::runtime

#endif // TESSERA_LIB_RUNTIME_RANKS_RANKPLANNER_H
