//===- Report.cpp - What a program communicates and why --------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Driver/Report.h"

#include "SaturatingCounts.h"
#include "tessera/Dialect/Dist/IR/ValueShardings.h"
#include "tessera/Driver/Load.h"
#include "tessera/Transforms/Search.h"
#include "tessera/Transforms/StepCosts.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

#include <cmath>
#include <limits>
#include <set>

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

namespace {

class Reporter {
public:
  Reporter(ModuleOp module, const OriginRecorder &origins, const sharding::Topology &topology)
      : module(module), meshes(module), origins(origins), topology(topology) {}

  FailureOr<Report> run() {
    report.machine = topology.name;
    report.deviceMemoryBytes = topology.device.memory;
    if (topology.links.size() > 1)
      report.devicesPerHost = topology.links[topology.links.size() - 2].devices;
    for (auto &[name, mesh] : meshes)
      report.meshes.push_back(mesh);
    report.leastMessageSeconds = leastMessageSeconds();
    std::map<int64_t, ValueReport> arguments, results;
    for (func::FuncOp function : module.getOps<func::FuncOp>()) {
      if (!isLocalView(function))
        continue;
      for (unsigned i = 0; i < function.getNumArguments(); ++i)
        describe(
            function, arguments, function.getArgAttrOfType<IntegerAttr>(i, DistDialect::kArgument),
            function.getArgumentTypes()[i], function.getArgAttrDict(i), argumentName(function, i));
      for (unsigned i = 0; i < function.getNumResults(); ++i)
        describe(
            function, results, function.getResultAttrOfType<IntegerAttr>(i, DistDialect::kResult),
            function.getResultTypes()[i], function.getResultAttrDict(i), resultName(function, i));
      StepCosts ofFunction(function, meshes, topology);
      costs = &ofFunction;
      clock = DeviceClock();
      if (failed(collect(function.getBody().front(), 1, true, report.collectives)))
        return failure();
      report.stepSeconds += clock.now();
    }
    labelPlan();
    FailureOr<std::optional<pipeline::PipelineTimeline>> timeline =
        pipeline::simulatePipeline(module, topology);
    if (failed(timeline))
      return failure();
    if (report.pipeline = std::move(*timeline); report.pipeline)
      report.stepSeconds = report.pipeline->seconds;
    for (auto &[index, value] : arguments)
      report.arguments.push_back(std::move(value));
    for (auto &[index, value] : results)
      report.results.push_back(std::move(value));
    return std::move(report);
  }

private:
  template <typename T> static std::string text(T value) {
    std::string result;
    llvm::raw_string_ostream(result) << value;
    return result;
  }

  void describe(func::FuncOp function, std::map<int64_t, ValueReport> &into, IntegerAttr index,
                Type type, DictionaryAttr attributes, const std::string &name) {
    ValueReport value;
    value.name = name;
    auto global = attributes ? attributes.getAs<TypeAttr>(DistDialect::kGlobalType) : TypeAttr();
    value.type = text(global ? global.getValue() : type);
    if (auto sharding =
            attributes ? attributes.getAs<ShardingAttr>(DistDialect::kSharding) : ShardingAttr())
      value.sharding = text(sharding);
    if (auto tensor = dyn_cast<RankedTensorType>(type))
      value.localShape = tensor.getShape().vec();
    value.origin = origins.originOf(name);
    bool isCut = global && global.getValue() != type;
    report.isAnythingCut |= isCut;
    if (value.origin.empty() && isCut)
      value.origin = module->hasAttr(DistDialect::kSearch) ? "the search chose it" : "the program";
    else if (value.origin.empty())
      value.origin = value.sharding.empty() ? "one device" : "whole on every device";
    into.emplace(index ? index.getInt() : static_cast<int64_t>(into.size()), std::move(value));
  }

  /// What one message of a byte takes along the fastest axis of all meshes.
  double leastMessageSeconds() const {
    sharding::Traffic byte;
    byte.bytes = byte.wireBytes = byte.messages = byte.count = 1;
    double least = std::numeric_limits<double>::infinity();
    for (const sharding::Mesh &mesh : report.meshes)
      for (int64_t axis = 0; axis < mesh.numAxes(); ++axis)
        if (mesh.shape[axis] > 1)
          least = std::min(
              least, topology.linksOf(mesh).seconds(mesh, {sharding::AxisRef::full(mesh, axis)},
                                                    sharding::CollectiveKind::exchange, byte));
    return std::isfinite(least) ? least : 0;
  }

  /// The parallelisms by axis, and the meshes that hand values on to each other.
  void labelPlan() {
    auto names = module->getAttrOfType<ArrayAttr>(dist::kParallelisms);
    if (!names)
      return;
    report.parallelisms.emplace();
    for (auto name : names.getAsRange<StringAttr>())
      report.parallelisms->push_back(name.str());
    std::set<std::string> linked;
    for (const CollectiveReport &entry : report.collectives)
      if (auto [from, to] = StringRef(entry.mesh).split(" -> "); !to.empty())
        linked.insert({from.str(), to.str()});
    std::string stages;
    for (const sharding::Mesh &mesh : report.meshes)
      if (linked.count(mesh.name))
        stages += (stages.empty() ? "stages over " : ", ") + mesh.name;
    if (!stages.empty())
      report.parallelisms->push_back(std::move(stages));
  }

  /// Adds the collectives of a block that runs `trips` times; the clock goes on by one execution.
  LogicalResult collect(Block &block, int64_t trips, bool bounded,
                        std::vector<CollectiveReport> &into) {
    for (Operation &op : block) {
      if (auto loop = dyn_cast<scf::ForOp>(op)) {
        std::optional<llvm::APInt> count = loop.getStaticTripCount();
        // What does not fit counts as the most that does, and is no longer bounded.
        int64_t inner = !count ? 1 : count->getActiveBits() > 63 ? kMost : count->getSExtValue();
        int64_t product = times(trips, inner);
        if (failed(collectLoop(*loop.getBody(), trips, inner, bounded && count && product < kMost,
                               into)))
          return failure();
      } else if (auto loop = dyn_cast<scf::WhileOp>(op)) {
        if (failed(collect(*loop.getBeforeBody(), trips, false, into)) ||
            failed(collect(*loop.getAfterBody(), trips, false, into)))
          return failure();
      } else if (auto branch = dyn_cast<scf::IfOp>(op)) {
        if (failed(collectDearer(branch, trips, bounded, into)))
          return failure();
      } else if (auto start = dyn_cast<StartOp>(op)) {
        auto collective = cast<CollectiveOpInterface>(start.getCollective());
        FailureOr<CommunicationCost> cost = costs->communicationOf(collective);
        if (failed(cost))
          return failure();
        started[start] = {clock.begin(collective, *cost), into.size()};
        into.push_back(describe(collective, *cost, trips, bounded));
        into.back().isOverlapped = true;
      } else if (auto wait = dyn_cast<WaitOp>(op)) {
        auto [done, entry] = started.lookup(wait.getStart());
        into[entry].exposedSeconds = clock.waitUntil(done);
      } else if (auto send = dyn_cast<SendOp>(op)) {
        into.push_back(reportSend(send));
        into.back().trips = trips;
        into.back().bounded = bounded;
      } else if (auto collective = dyn_cast<CollectiveOpInterface>(op)) {
        FailureOr<CommunicationCost> cost = costs->communicationOf(collective);
        if (failed(cost))
          return failure();
        if (cost->isLocal()) {
          compute(cost->timing.seconds, trips);
          continue;
        }
        into.push_back(describe(collective, *cost, trips, bounded));
        into.back().exposedSeconds = clock.waitUntil(clock.begin(collective, *cost));
      } else {
        compute(costs->computeSeconds(&op), trips);
      }
    }
    return success();
  }

  /// The first execution of a loop's body may wait for what was started before the loop; the others
  /// take what the second one does.
  LogicalResult collectLoop(Block &body, int64_t trips, int64_t inner, bool bounded,
                            std::vector<CollectiveReport> &into) {
    std::vector<CollectiveReport> first, others;
    int64_t product = times(trips, inner);
    if (clock.isBusy() && inner > 1) {
      double computed = report.computeSeconds;
      if (failed(collect(body, product, bounded, first)))
        return failure();
      report.computeSeconds = computed;
      --inner;
    }
    double begin = clock.now();
    if (failed(collect(body, product, bounded, others)))
      return failure();
    clock.repeat(begin, inner);
    for (size_t i = 0; i < first.size(); ++i) // the mean of all
      others[i].exposedSeconds +=
          (first[i].exposedSeconds - others[i].exposedSeconds) / static_cast<double>(inner + 1);
    into.insert(into.end(), std::make_move_iterator(others.begin()),
                std::make_move_iterator(others.end()));
    return success();
  }

  /// Of a branch, the collectives of the arm that sends more bytes, and the time of the longer one.
  LogicalResult collectDearer(scf::IfOp branch, int64_t trips, bool bounded,
                              std::vector<CollectiveReport> &into) {
    DeviceClock before = clock;
    double computed = report.computeSeconds;
    std::vector<CollectiveReport> arms[2];
    if (failed(collect(*branch.thenBlock(), trips, bounded, arms[0])))
      return failure();
    DeviceClock afterThen = std::exchange(clock, before);
    double computedThen = std::exchange(report.computeSeconds, computed);
    if (branch.elseBlock() && failed(collect(*branch.elseBlock(), trips, bounded, arms[1])))
      return failure();
    if (afterThen.now() > clock.now()) {
      clock = afterThen;
      report.computeSeconds = computedThen;
    }
    auto total = [](const std::vector<CollectiveReport> &arm) {
      int64_t bytes = 0;
      for (const CollectiveReport &entry : arm)
        bytes = plus(bytes, times(entry.traffic.wireBytes, entry.trips));
      return bytes;
    };
    std::vector<CollectiveReport> &dearer = total(arms[1]) > total(arms[0]) ? arms[1] : arms[0];
    into.insert(into.end(), dearer.begin(), dearer.end());
    return success();
  }

  void compute(double seconds, int64_t trips) {
    report.computeSeconds += static_cast<double>(trips) * seconds;
    clock.compute(seconds);
  }

  CollectiveReport describe(CollectiveOpInterface op, const CommunicationCost &cost, int64_t trips,
                            bool bounded) {
    const sharding::Mesh &mesh = meshes.get(op.getMeshAttr());
    CollectiveReport entry;
    entry.kind = op.getKind() == sharding::CollectiveKind::slice
                     ? "slice"
                     : std::string(sharding::toString(op.getKind()));
    entry.mesh = mesh.name;
    if (ArrayAttr targets = op.getTargetsAttr())
      if (auto to = cast<ShardingAttr>(targets[0]).getMesh(); to != op.getMeshAttr())
        entry.mesh += " -> " + to.getValue().str();
    for (const sharding::AxisRef &axis : cost.axes)
      entry.axes.push_back(axis.isFull(mesh) ? mesh.axisNames[axis.axis]
                                             : sharding::toString(mesh, axis));
    entry.groupSize = op.getGroupSize(mesh);
    entry.traffic = cost.traffic;
    entry.timing = cost.timing;
    entry.candidates = candidatesOf(mesh, cost.axes, op.getKind(), cost.traffic);
    entry.dtype = text(getElementTypeOrSelf(op->getOperand(0).getType()));
    entry.trips = trips;
    entry.bounded = bounded;
    locate(op, entry);
    return entry;
  }

  std::vector<sharding::Timing> candidatesOf(const sharding::Mesh &mesh,
                                             const sharding::AxisList &group,
                                             sharding::CollectiveKind kind,
                                             const sharding::Traffic &traffic) const {
    using sharding::Algorithm;
    std::vector<sharding::Timing> found;
    for (Algorithm algorithm : {Algorithm::ring, Algorithm::tree, Algorithm::doubling,
                                Algorithm::hierarchical, Algorithm::shared_memory}) {
      sharding::LinkModel links = topology.linksOf(mesh);
      if (links.algorithms.empty() ? algorithm == Algorithm::shared_memory
                                   : !llvm::is_contained(links.algorithms, algorithm))
        continue;
      links.algorithms = {algorithm};
      sharding::Timing timing = links.timing(mesh, group, kind, traffic);
      if (timing.algorithm == algorithm) // else it does not apply
        found.push_back(timing);
    }
    llvm::stable_sort(found, [](const sharding::Timing &a, const sharding::Timing &b) {
      return a.seconds < b.seconds;
    });
    return found;
  }

  void locate(Operation *op, CollectiveReport &entry) {
    entry.loc = toString(op->getLoc());
    if (auto reason = op->getAttrOfType<StringAttr>(DistDialect::kReason))
      entry.reason = reason.str();
  }

  CollectiveReport reportSend(SendOp send) {
    CollectiveReport entry;
    FlatSymbolRefAttr from = send.getSource().getMesh(), to = send.getTarget().getMesh();
    const sharding::Mesh &source = meshes.get(from), &target = meshes.get(to);
    auto type = cast<RankedTensorType>(send.getGlobalType());
    std::vector<int64_t> shape = type.getShape().vec();
    entry.kind = "send";
    entry.mesh = source.name + " -> " + target.name;
    entry.groupSize = source.numDevices();
    entry.dtype = text(type.getElementType());
    entry.traffic = sharding::trafficOf(
        sharding::CollectiveKind::transfer, 1, bytesPerElement(type.getElementType()), source,
        sharding::makeLayout(resolveVerified(send.getSource(), meshes, type), shape), target,
        sharding::makeLayout(resolveVerified(send.getTarget(), meshes, type), shape));
    locate(send, entry);
    return entry;
  }

  ModuleOp module;
  MeshTable meshes;
  const OriginRecorder &origins;
  const sharding::Topology &topology;
  const StepCosts *costs = nullptr; ///< of the function that is read
  DeviceClock clock;
  /// When a started collective is done, and its number in the list; looked up only.
  llvm::DenseMap<Operation *, std::pair<double, size_t>> started;
  Report report;
};

} // namespace

/// Numbers, texts, flags, and lists of texts and of such objects.
static llvm::json::Object toObject(DictionaryAttr written) {
  llvm::json::Object object;
  for (NamedAttribute entry : written) {
    StringRef name = entry.getName();
    if (auto real = dyn_cast<FloatAttr>(entry.getValue())) {
      object[name] = real.getValueAsDouble();
    } else if (auto text = dyn_cast<StringAttr>(entry.getValue())) {
      object[name] = text.getValue();
    } else if (auto flag = dyn_cast<BoolAttr>(entry.getValue())) {
      object[name] = flag.getValue();
    } else if (auto list = dyn_cast<ArrayAttr>(entry.getValue())) {
      llvm::json::Array values;
      for (Attribute value : list)
        if (auto text = dyn_cast<StringAttr>(value))
          values.push_back(text.getValue());
        else if (auto plan = dyn_cast<DictionaryAttr>(value))
          values.push_back(toObject(plan));
      object[name] = std::move(values);
    }
  }
  return object;
}

FailureOr<Report> tessera::makeReport(ModuleOp localView, const OriginRecorder &origins,
                                      const sharding::Topology &topology) {
  FailureOr<Report> report = Reporter(localView, origins, topology).run();
  // What dist-search wrote on the module.
  auto search = localView->getAttrOfType<DictionaryAttr>(DistDialect::kSearch);
  if (succeeded(report) && search)
    report->search = toObject(search);
  return report;
}
