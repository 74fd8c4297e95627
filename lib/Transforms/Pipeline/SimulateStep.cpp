//===- SimulateStep.cpp - Simulate a step on all meshes of a program ------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Transforms/Pipeline/SimulateStep.h"

#include "tessera/Dialect/Dist/IR/Pipeline.h"

#include "llvm/ADT/MapVector.h"

#include <map>

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;
using namespace tessera::pipeline;

namespace {

/// The simulation state of one mesh.
struct Walker {
  Walker(func::FuncOp function, const MeshTable &meshes, const sharding::Topology &topology,
         int64_t devices)
      : function(function), costs(function, meshes, topology, devices), timeline(costs),
        next(function.getBody().front().begin()) {}
  Walker(const Walker &) = delete; // the timeline reads the costs

  bool isDone() { return next == function.getBody().front().end(); }
  double now() const { return timeline.clock.now(); }

  func::FuncOp function;
  StepCosts costs;
  StepTimeline timeline;
  Block::iterator next;
  double begin = -1, end = 0, stood = 0; ///< of the pipeline; seconds of waiting within
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

  FailureOr<StepReport> run(ModuleOp module);

private:
  void addWalkers(ModuleOp module);
  LogicalResult advance(Walker &walker, bool &progressed);
  LogicalResult advanceAll();
  double transferSeconds(SendOp send);
  void enter(Walker &walker, SegmentOp op);
  void leave(Walker &walker);
  void finish(std::vector<Walker *> stageWalkers);

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
  std::vector<int64_t> ids = a.processIds.vec();
  ids.insert(ids.end(), b.processIds.begin(), b.processIds.end());
  for (const sharding::LinkClass &each : topology.links)
    if (llvm::all_of(ids, [&](int64_t id) { return id / each.devices == ids[0] / each.devices; }))
      return each.link;
  return topology.links.back().link;
}

/// Seconds from a send until the value arrives, on a free link.
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
  double seconds = walker.now() - walker.segmentBegin - (walker.stood - walker.stoodBefore);
  auto &[sum, count] = walker.sums[{walker.segment->pass, walker.segment->chunk}];
  sum += seconds;
  ++count;
  walker.line.busy += seconds;
  walker.line.segments.push_back(*walker.segment);
  walker.end = walker.now();
  walker.segment.reset();
}

void Simulation::enter(Walker &walker, SegmentOp op) {
  leave(walker);
  if (walker.begin < 0)
    walker.begin = walker.now();
  walker.segmentBegin = walker.now();
  walker.stoodBefore = walker.stood;
  if (op.getPass() == kUpdatePass)
    return;
  auto stage = static_cast<int64_t>(op.getStage());
  auto microBatch = static_cast<int64_t>(op.getMicroBatch());
  pipeline::Pass pass = op.getPass() == kForwardPass    ? pipeline::Pass::forward
                        : op.getPass() == kBackwardPass ? pipeline::Pass::backward
                                                        : pipeline::Pass::weight;
  // The stages of a mesh are that many meshes apart.
  walker.segment = Segment{pass, microBatch, stage};
  result.shape.microBatches = std::max(result.shape.microBatches, microBatch + 1);
  result.shape.hasBackward |= pass != pipeline::Pass::forward;
}

/// Advances to the next receive without a completed send.
LogicalResult Simulation::advance(Walker &walker, bool &progressed) {
  for (Block::iterator end = walker.function.getBody().front().end(); walker.next != end;
       ++walker.next) {
    Operation &op = *walker.next;
    if (auto recv = dyn_cast<RecvOp>(op)) {
      auto arrival = arrivals.find(recv.getId());
      if (arrival == arrivals.end())
        return success();
      walker.stood += walker.timeline.clock.waitUntil(arrival->second);
    } else if (auto segment = dyn_cast<SegmentOp>(op)) {
      enter(walker, segment);
    } else {
      if (auto send = dyn_cast<SendOp>(op)) {
        double &free = freeAt[{send.getSource().getMesh().getValue().str(),
                               send.getTarget().getMesh().getValue().str()}];
        free = std::max(free, walker.now()) + transferSeconds(send);
        arrivals[send.getId()] = free;
      }
      if (failed(walker.timeline.run(op)))
        return failure();
    }
    progressed = true;
  }
  return success();
}

/// Computes the pipeline of the meshes with segments.
void Simulation::finish(std::vector<Walker *> stageWalkers) {
  // Meshes in the order of their first stage.
  llvm::sort(stageWalkers, [](auto *a, auto *b) {
    return a->line.segments.front().chunk < b->line.segments.front().chunk;
  });
  Shape &shape = result.shape;
  shape.meshes = std::ssize(stageWalkers);
  int64_t stages = 0;
  double first = std::numeric_limits<double>::infinity(), last = 0, busy = 0;
  for (Walker *walker : stageWalkers) {
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
  for (Walker *walker : stageWalkers) {
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

/// The program of a function.
static StringAttr programOf(func::FuncOp function) {
  auto partOf = function->getAttrOfType<StringAttr>(DistDialect::kPartOf);
  return partOf ? partOf : function.getSymNameAttr();
}

void Simulation::addWalkers(ModuleOp module) {
  SmallVector<func::FuncOp> functions;
  llvm::DenseMap<StringAttr, int64_t> devices; // per program, which compute at the same time
  for (auto function : module.getOps<func::FuncOp>())
    if (isLocalView(function)) {
      functions.push_back(function);
      devices[programOf(function)] += meshDevicesOf(function);
    }
  for (func::FuncOp function : functions) {
    walkers.push_back(
        std::make_unique<Walker>(function, meshes, topology, devices.lookup(programOf(function))));
    auto mesh = function->getAttrOfType<FlatSymbolRefAttr>(DistDialect::kMesh);
    walkers.back()->line.mesh = mesh ? mesh.getValue().str() : function.getName().str();
  }
}

LogicalResult Simulation::advanceAll() {
  for (bool progressed = true; std::exchange(progressed, false);)
    for (auto &walker : walkers)
      if (failed(advance(*walker, progressed)))
        return failure();
  return success();
}

FailureOr<StepReport> Simulation::run(ModuleOp module) {
  result.shape.hasBackward = false;
  addWalkers(module);
  if (failed(advanceAll()))
    return failure();
  for (auto &walker : walkers)
    while (!walker->isDone()) { // a cycle of transfers: assume arrival
      arrivals[cast<RecvOp>(*walker->next).getId()] = walker->now();
      if (failed(advanceAll()))
        return failure();
    }
  StepReport step;
  llvm::MapVector<StringAttr, double> ends;
  std::optional<Schedule> schedule;
  std::vector<Walker *> stages;
  for (auto &walker : walkers) {
    double &end = ends[programOf(walker->function)];
    end = std::max(end, walker->now());
    step.parts.push_back({walker->function, walker->now(), walker->timeline.computeSeconds,
                          std::move(walker->timeline.entries)});
    if (auto name = walker->function->getAttrOfType<StringAttr>(kSchedule))
      schedule = parseSchedule(name.getValue());
    if (!walker->line.segments.empty())
      stages.push_back(walker.get());
  }
  for (auto &[program, end] : ends)
    step.seconds += end;
  if (!schedule || stages.empty())
    return std::move(step);
  result.schedule = *schedule;
  result.seconds = step.seconds;
  finish(std::move(stages));
  step.pipeline = std::move(result);
  return std::move(step);
}

FailureOr<StepReport> tessera::pipeline::simulateStep(ModuleOp module,
                                                      const sharding::Topology &topology) {
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
