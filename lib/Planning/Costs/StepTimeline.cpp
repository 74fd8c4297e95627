//===- StepTimeline.cpp - Timeline of a device over its ops ---------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Planning/StepTimeline.h"

#include "tessera/Support/SaturatingCounts.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

LogicalResult StepTimeline::run(Block &block, Context context) {
  for (Operation &op : block)
    if (failed(run(op, context)))
      return failure();
  return success();
}

double StepTimeline::readyAt(Operation *op) const {
  double ready = 0;
  for (Value operand : op->getOperands())
    if (Operation *source = operand.getDefiningOp())
      ready = std::max(ready, doneAt.lookup(source));
  return ready;
}

LogicalResult StepTimeline::run(Operation &op, Context context) {
  doneAt[&op] = readyAt(&op);
  double begin = clock.now();
  if (failed(runOne(op, context)))
    return failure();
  if (clock.now() > begin)
    doneAt[&op] = clock.now();
  return success();
}

LogicalResult StepTimeline::runOne(Operation &op, Context context) {
  if (auto loop = dyn_cast<LoopLikeOpInterface>(op))
    return runLoop(loop, context);
  if (auto branch = dyn_cast<scf::IfOp>(op))
    return runBranch(branch, context);
  if (auto start = dyn_cast<StartOp>(op)) {
    auto collective = cast<CollectiveOpInterface>(start.getCollective());
    FailureOr<CommunicationCost> cost = costs.communicationOf(collective);
    if (failed(cost))
      return failure();
    double done = clock.begin(collective, *cost);
    started[start] = {done, context.into.size()};
    Entry &entry = context.into.emplace_back(context.entryOf(collective, *cost));
    entry.isOverlapped = true;
    entry.readySeconds = readyAt(collective);
    entry.beginSeconds = done - cost->timing.seconds;
    if (cost->occupiesCores)
      entry.exposedSeconds = clock.waitUntil(done);
  } else if (auto wait = dyn_cast<WaitOp>(op)) {
    auto [done, entry] = started.lookup(wait.getStart());
    doneAt[wait] = done;
    context.into[entry].exposedSeconds += clock.waitUntil(done);
  } else if (auto send = dyn_cast<SendOp>(op)) {
    Entry &entry = context.into.emplace_back(context.entryOf(send, {}));
    entry.readySeconds = readyAt(send);
    entry.beginSeconds = clock.now();
  } else if (auto collective = dyn_cast<CollectiveOpInterface>(op)) {
    return runCollective(collective, context);
  } else {
    compute(costs.computeSeconds(&op), context.modelledTrips);
  }
  return success();
}

LogicalResult StepTimeline::runCollective(CollectiveOpInterface op, Context context) {
  FailureOr<CommunicationCost> cost = costs.communicationOf(op);
  if (failed(cost))
    return failure();
  if (cost->isLocal()) {
    compute(cost->timing.seconds, context.modelledTrips);
    return success();
  }
  double done = clock.begin(op, *cost);
  Entry &entry = context.into.emplace_back(context.entryOf(op, *cost));
  entry.exposedSeconds = clock.waitUntil(done);
  entry.readySeconds = readyAt(op);
  entry.beginSeconds = done - cost->timing.seconds;
  return success();
}

/// The first execution of a loop's body may wait for collectives started before the loop; the
/// others take as long as the second one.
LogicalResult StepTimeline::runLoop(LoopLikeOpInterface loop, Context context) {
  std::optional<llvm::APInt> count = loop.getStaticTripCount();
  // A count that overflows is clamped to the maximum, and is no longer bounded.
  int64_t known = !count ? 1 : count->getActiveBits() > 63 ? kMost : count->getSExtValue();
  int64_t inner = count ? known : kUnknownTrips;
  int64_t product = times(context.trips, known), modelled = times(context.modelledTrips, inner);
  bool isBounded = context.isBounded && count && product < kMost;
  std::vector<Entry> first, others;
  auto runBody = [&](std::vector<Entry> &into) -> LogicalResult {
    for (Region *region : loop.getLoopRegions())
      if (failed(run(region->front(), {product, isBounded, modelled, into})))
        return failure();
    return success();
  };
  if (clock.isBusy() && inner > 1) {
    double computed = computeSeconds;
    if (failed(runBody(first)))
      return failure();
    computeSeconds = computed;
    --inner;
  }
  double begin = clock.now();
  if (failed(runBody(others)))
    return failure();
  clock.repeat(begin, inner);
  for (size_t i = 0; i < first.size(); ++i) // the mean of all
    others[i].exposedSeconds +=
        (first[i].exposedSeconds - others[i].exposedSeconds) / static_cast<double>(inner + 1);
  llvm::append_range(context.into, others);
  return success();
}

/// For a branch, the collectives of the arm that sends more bytes, and the time of the longer one.
LogicalResult StepTimeline::runBranch(scf::IfOp branch, Context context) {
  DeviceClock before = clock;
  double computed = computeSeconds;
  std::vector<Entry> arms[2];
  if (failed(run(*branch.thenBlock(),
                 {context.trips, context.isBounded, context.modelledTrips, arms[0]})))
    return failure();
  DeviceClock afterThen = std::exchange(clock, before);
  double computedThen = std::exchange(computeSeconds, computed);
  if (branch.elseBlock() && failed(run(*branch.elseBlock(), {context.trips, context.isBounded,
                                                             context.modelledTrips, arms[1]})))
    return failure();
  if (afterThen.now() > clock.now()) {
    clock = afterThen;
    computeSeconds = computedThen;
  }
  auto total = [](const std::vector<Entry> &arm) {
    int64_t bytes = 0;
    for (const Entry &entry : arm)
      bytes = plus(bytes, times(entry.cost.traffic.wireBytes, entry.trips));
    return bytes;
  };
  llvm::append_range(context.into, total(arms[1]) > total(arms[0]) ? arms[1] : arms[0]);
  return success();
}

void StepTimeline::compute(double seconds, int64_t trips) {
  computeSeconds += static_cast<double>(trips) * seconds;
  clock.compute(seconds);
}
