//===- Timeline.cpp - When the meshes of a pipeline work ------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Transforms/Pipeline/Timeline.h"

#include "tessera/Dialect/Dist/IR/Pipeline.h"
#include "tessera/Transforms/StepCosts.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include <map>

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;
using namespace tessera::pipeline;

namespace {

/// One mesh on its way through its function.
struct Walker {
  Walker(func::FuncOp function, const MeshTable &meshes, const sharding::Topology &topology,
         int64_t devices)
      : function(function), costs(function, meshes, topology, devices),
        next(function.getBody().front().begin()) {}

  func::FuncOp function;
  StepCosts costs;
  Block::iterator next;
  DeviceClock clock;
  llvm::DenseMap<Operation *, double> started; ///< when a collective is done; looked up only
  double begin = -1, end = 0, stood = 0;       ///< of the pipeline; seconds of waiting within
  double segmentBegin = 0, stoodBefore = 0;
  std::optional<Segment> segment;
  std::map<std::pair<pipeline::Pass, int64_t>, std::pair<double, int64_t>>
      sums; ///< seconds and segments
  MeshTimeline line;
};

class Simulation {
public:
  Simulation(ModuleOp module, const sharding::Topology &topology)
      : meshes(module), topology(topology) {}

  FailureOr<std::optional<PipelineTimeline>> run(ModuleOp module);

private:
  LogicalResult advance(Walker &walker, bool &progressed);
  FailureOr<double> secondsOf(Walker &walker, Operation &op);
  double transferSeconds(SendOp send);
  void enter(Walker &walker, SegmentOp op);
  void leave(Walker &walker);
  void finish();

  MeshTable meshes;
  const sharding::Topology &topology;
  std::vector<std::unique_ptr<Walker>> walkers;
  std::map<int64_t, double> arrivals;                           ///< by id of the transfer
  std::map<std::pair<std::string, std::string>, double> freeAt; ///< by the meshes of a link
  PipelineTimeline result;
};

} // namespace

/// The innermost link that joins all devices of two meshes.
static const sharding::Link &linkBetween(const sharding::Mesh &a, const sharding::Mesh &b,
                                         const sharding::Topology &topology) {
  std::vector<int64_t> ids = a.processIds;
  ids.insert(ids.end(), b.processIds.begin(), b.processIds.end());
  for (const sharding::LinkClass &each : topology.links)
    if (llvm::all_of(ids, [&](int64_t id) { return id / each.devices == ids[0] / each.devices; }))
      return each.link;
  return topology.links.back().link;
}

/// Seconds from a send until the value is there, on a link that is free.
double Simulation::transferSeconds(SendOp send) {
  const sharding::Mesh &source = meshes.get(send.getSource().getMesh());
  const sharding::Mesh &target = meshes.get(send.getTarget().getMesh());
  auto type = cast<RankedTensorType>(send.getGlobalType());
  std::vector<int64_t> shape = type.getShape().vec();
  sharding::Traffic traffic = sharding::trafficOf(
      sharding::CollectiveKind::transfer, 1, bytesPerElement(type.getElementType()), source,
      sharding::makeLayout(resolveVerified(send.getSource(), meshes, type), shape), target,
      sharding::makeLayout(resolveVerified(send.getTarget(), meshes, type), shape));
  const sharding::Link &link = linkBetween(source, target, topology);
  return static_cast<double>(std::max<int64_t>(1, traffic.messages)) * link.alpha +
         static_cast<double>(traffic.wireBytes) / link.rate;
}

void Simulation::leave(Walker &walker) {
  if (!walker.segment)
    return;
  double seconds = walker.clock.now() - walker.segmentBegin - (walker.stood - walker.stoodBefore);
  auto &[sum, count] = walker.sums[{walker.segment->pass, walker.segment->chunk}];
  sum += seconds;
  ++count;
  walker.line.busy += seconds;
  walker.line.segments.push_back(*walker.segment);
  walker.end = walker.clock.now();
  walker.segment.reset();
}

void Simulation::enter(Walker &walker, SegmentOp op) {
  leave(walker);
  if (walker.begin < 0)
    walker.begin = walker.clock.now();
  walker.segmentBegin = walker.clock.now();
  walker.stoodBefore = walker.stood;
  if (op.getPass() == kUpdatePass)
    return;
  auto stage = static_cast<int64_t>(op.getStage());
  auto microBatch = static_cast<int64_t>(op.getMicroBatch());
  pipeline::Pass pass = op.getPass() == kForwardPass    ? pipeline::Pass::forward
                        : op.getPass() == kBackwardPass ? pipeline::Pass::backward
                                                        : pipeline::Pass::weight;
  // A mesh has the stages that are so many meshes apart.
  walker.segment = Segment{pass, microBatch, stage};
  result.shape.microBatches = std::max(result.shape.microBatches, microBatch + 1);
  result.shape.hasBackward |= pass != pipeline::Pass::forward;
}

/// Seconds of an op that does not wait for other meshes.
FailureOr<double> Simulation::secondsOf(Walker &walker, Operation &op) {
  double seconds = 0;
  bool isKnown = true;
  op.walk([&](Operation *inner) {
    double once = walker.costs.computeSeconds(inner);
    if (auto collective = dyn_cast<CollectiveOpInterface>(inner)) {
      FailureOr<CommunicationCost> cost = walker.costs.communicationOf(collective);
      isKnown &= succeeded(cost);
      if (succeeded(cost))
        once = cost->timing.seconds;
    }
    seconds += inner == &op ? once : once * tripsOf(inner) / tripsOf(&op);
    return isa<linalg::LinalgOp>(inner) ? WalkResult::skip() : WalkResult::advance();
  });
  if (!isKnown)
    return failure();
  return seconds;
}

/// Goes on to the next receive of what is not sent yet.
LogicalResult Simulation::advance(Walker &walker, bool &progressed) {
  for (Block::iterator end = walker.function.getBody().front().end(); walker.next != end;
       ++walker.next) {
    Operation &op = *walker.next;
    if (auto recv = dyn_cast<RecvOp>(op)) {
      auto arrival = arrivals.find(recv.getId());
      if (arrival == arrivals.end())
        return success();
      walker.stood += walker.clock.waitUntil(arrival->second);
    } else if (auto send = dyn_cast<SendOp>(op)) {
      double &free = freeAt[{send.getSource().getMesh().getValue().str(),
                             send.getTarget().getMesh().getValue().str()}];
      free = std::max(free, walker.clock.now()) + transferSeconds(send);
      arrivals[send.getId()] = free;
    } else if (auto segment = dyn_cast<SegmentOp>(op)) {
      enter(walker, segment);
    } else if (auto start = dyn_cast<StartOp>(op)) {
      auto collective = cast<CollectiveOpInterface>(start.getCollective());
      FailureOr<CommunicationCost> cost = walker.costs.communicationOf(collective);
      if (failed(cost))
        return failure();
      walker.started[start] = walker.clock.begin(collective, *cost);
    } else if (auto wait = dyn_cast<WaitOp>(op)) {
      walker.clock.waitUntil(walker.started.lookup(wait.getStart()));
    } else {
      FailureOr<double> seconds = secondsOf(walker, op);
      if (failed(seconds))
        return failure();
      walker.clock.compute(*seconds);
    }
    progressed = true;
  }
  return success();
}

void Simulation::finish() {
  // Stages of the meshes, by the first of each.
  llvm::sort(walkers, [](auto &a, auto &b) {
    return a->line.segments.front().chunk < b->line.segments.front().chunk;
  });
  Shape &shape = result.shape;
  shape.meshes = std::ssize(walkers);
  int64_t stages = 0;
  double first = std::numeric_limits<double>::infinity(), last = 0, busy = 0;
  for (auto &walker : walkers) {
    for (Segment &segment : walker->line.segments) {
      stages = std::max(stages, segment.chunk + 1);
      segment.chunk /= shape.meshes;
    }
    walker->line.alive = mostAlive(walker->line.segments);
    first = std::min(first, walker->begin);
    last = std::max(last, walker->end);
    busy += walker->line.busy;
  }
  shape.chunks = std::max<int64_t>(1, stages / shape.meshes);
  Times mean{0, 0, 0};
  for (auto &walker : walkers) {
    walker->line.seconds.assign(shape.chunks, Times{0, 0, 0});
    for (auto &[key, sum] : walker->sums) {
      double one = sum.first / static_cast<double>(shape.microBatches);
      Times &times = walker->line.seconds[key.second / shape.meshes];
      (key.first == pipeline::Pass::forward    ? times.forward
       : key.first == pipeline::Pass::backward ? times.backward
                                               : times.weight) = one;
    }
    for (const Times &times : walker->line.seconds) {
      mean.forward += times.forward / static_cast<double>(stages);
      mean.backward += times.backward / static_cast<double>(stages);
      mean.weight += times.weight / static_cast<double>(stages);
    }
    result.meshes.push_back(std::move(walker->line));
  }
  result.span = last - first;
  double all = result.span * static_cast<double>(shape.meshes);
  result.modelledIdle = all > 0 ? 1 - busy / all : 0;
  result.formulaIdle = idleShare(result.schedule, shape, mean);
}

FailureOr<std::optional<PipelineTimeline>> Simulation::run(ModuleOp module) {
  std::optional<Schedule> schedule;
  result.shape.hasBackward = false;
  SmallVector<func::FuncOp> functions;
  int64_t devices = 0; // they compute at the same time
  for (auto function : module.getOps<func::FuncOp>())
    if (isLocalView(function) && function.getBody().hasOneBlock()) {
      functions.push_back(function);
      devices += meshDevicesOf(function);
    }
  for (func::FuncOp function : functions) {
    walkers.push_back(std::make_unique<Walker>(function, meshes, topology, devices));
    auto mesh = function->getAttrOfType<FlatSymbolRefAttr>(DistDialect::kMesh);
    walkers.back()->line.mesh = mesh ? mesh.getValue().str() : function.getName().str();
    if (auto name = function->getAttrOfType<StringAttr>(kSchedule))
      schedule = parseSchedule(name.getValue());
  }
  if (!schedule)
    return std::optional<PipelineTimeline>();
  result.schedule = *schedule;
  for (bool progressed = true; std::exchange(progressed, false);)
    for (auto &walker : walkers)
      if (failed(advance(*walker, progressed)))
        return failure();
  for (auto &walker : walkers)
    result.seconds = std::max(result.seconds, walker->clock.now());
  llvm::erase_if(walkers, [](auto &walker) { return walker->line.segments.empty(); });
  if (walkers.empty())
    return std::optional<PipelineTimeline>();
  finish();
  return std::optional<PipelineTimeline>(std::move(result));
}

FailureOr<std::optional<PipelineTimeline>>
tessera::pipeline::simulatePipeline(ModuleOp module, const sharding::Topology &topology) {
  return Simulation(module, topology).run(module);
}

std::string tessera::pipeline::text(const std::vector<Segment> &segments, bool hasChunks) {
  std::string result;
  for (size_t i = 0; i < segments.size(); ++i) {
    const Segment &each = segments[i];
    if (!result.empty())
      result += ' ';
    result += each.pass == pipeline::Pass::forward    ? 'F'
              : each.pass == pipeline::Pass::backward ? 'B'
                                                      : 'W';
    result += std::to_string(each.microBatch);
    if (hasChunks)
      result += "." + std::to_string(each.chunk);
    if (each.pass == pipeline::Pass::backward && i + 1 < segments.size() &&
        segments[i + 1] == Segment{pipeline::Pass::weight, each.microBatch, each.chunk})
      ++i;
  }
  return result;
}
