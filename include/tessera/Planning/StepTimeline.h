//===- StepTimeline.h - Timeline of a device over its ops -------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The one model of the computation, communication and waiting times of a device: the
// report and the timeline of a pipeline walk the ops of the local view with it.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PLANNING_STEPTIMELINE_H
#define TESSERA_PLANNING_STEPTIMELINE_H

#include "tessera/Planning/StepCosts.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace tessera::dist {

/// Executes ops of the local view in order on a model of one device, and records each collective.
class StepTimeline {
public:
  /// A collective, or a send, which has no cost.
  struct Entry {
    mlir::Operation *op = nullptr;
    CommunicationCost cost;
    int64_t trips = 1;         ///< number of executions, at least
    bool isBounded = true;     ///< whether `trips` is known
    int64_t modelledTrips = 1; ///< for times: `kUnknownTrips` for each loop of an unknown count
    bool isOverlapped = false; ///< started, and waited for later
    double exposedSeconds = 0; ///< waiting time per execution, the mean
    /// From the start of the step, in one execution: when its operand is computed, and when it
    /// begins.
    double readySeconds = 0, beginSeconds = 0;
  };

  /// The costs must outlive this.
  explicit StepTimeline(const StepCosts &costs) : costs(costs) {}

  /// Executes an op. Fails with an error on the op if its axes or layouts do not fit its mesh.
  mlir::LogicalResult run(mlir::Operation &op) { return run(op, {1, true, 1, entries}); }

  DeviceClock clock;
  double computeSeconds = 0; ///< of all executions
  std::vector<Entry> entries;

private:
  /// The trips of ops, and the list for their collectives.
  struct Context {
    int64_t trips;
    bool isBounded;
    int64_t modelledTrips;
    std::vector<Entry> &into;

    Entry entryOf(mlir::Operation *op, const CommunicationCost &cost) const {
      return {op, cost, trips, isBounded, modelledTrips};
    }
  };
  mlir::LogicalResult run(mlir::Operation &op, Context context);
  mlir::LogicalResult runOne(mlir::Operation &op, Context context);
  mlir::LogicalResult run(mlir::Block &block, Context context);
  mlir::LogicalResult runLoop(mlir::LoopLikeOpInterface loop, Context context);
  mlir::LogicalResult runBranch(mlir::scf::IfOp branch, Context context);
  mlir::LogicalResult runCollective(CollectiveOpInterface op, Context context);
  void compute(double seconds, int64_t trips);
  /// The time at which the operands of an op are available.
  double readyAt(mlir::Operation *op) const;

  const StepCosts &costs;
  /// When a started collective is done, and its number in its list; looked up only.
  llvm::DenseMap<mlir::Operation *, std::pair<double, size_t>> started;
  llvm::DenseMap<mlir::Operation *, double> doneAt; ///< looked up only
};

} // namespace tessera::dist

#endif // TESSERA_PLANNING_STEPTIMELINE_H
