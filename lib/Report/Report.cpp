//===- Report.cpp - Communication of a program and its reasons ------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Report/Report.h"

#include "tessera/Dialect/Dist/IR/ValueShardings.h"
#include "tessera/Support/Location.h"
#include "tessera/Transforms/Pipeline/SimulateStep.h"
#include "tessera/Transforms/Search.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
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
        describe(function, arguments,
                 function.getArgAttrOfType<IntegerAttr>(i, DistDialect::kArgument),
                 function.getArgumentTypes()[i], function.getArgAttrDict(i),
                 argumentName(function, i), "in parts, as it is updated");
      for (unsigned i = 0; i < function.getNumResults(); ++i)
        describe(function, results,
                 function.getResultAttrOfType<IntegerAttr>(i, DistDialect::kResult),
                 function.getResultTypes()[i], function.getResultAttrDict(i),
                 resultName(function, i), "in parts, as it is computed");
    }
    FailureOr<pipeline::StepReport> step = pipeline::simulateStep(module, topology);
    if (failed(step))
      return failure();
    report.stepSeconds = step->seconds;
    report.pipeline = std::move(step->pipeline);
    for (const pipeline::PartTimeline &part : step->parts) {
      report.computeSeconds += part.computeSeconds;
      for (const StepTimeline::Entry &entry : part.entries)
        report.collectives.push_back(describe(entry));
    }
    labelPlan();
    report.rolledPipelines = pipeline::getRolledPipelines(module);
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
                Type type, DictionaryAttr attributes, const std::string &name,
                const char *cutAfterPropagation) {
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
      value.origin = module->hasAttr(DistDialect::kSearch) ? "the search chose it"
                     : origins.isEmpty()                   ? "the program"
                                                           : cutAfterPropagation;
    else if (value.origin.empty())
      value.origin = value.sharding.empty() ? "one device" : "whole on every device";
    into.emplace(index ? index.getInt() : static_cast<int64_t>(into.size()), std::move(value));
  }

  /// The time of a message of one byte along the fastest axis of all meshes.
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

  /// The parallelisms by axis, and the meshes that send values to each other.
  void labelPlan() {
    auto names = module->getAttrOfType<ArrayAttr>(dist::kParallelisms);
    if (!names)
      return;
    report.parallelisms.emplace();
    for (auto name : names.getAsRange<StringAttr>())
      report.parallelisms->push_back(name.str());
    std::set<std::string> linked;
    auto devicesOf = [&](StringRef name) {
      auto mesh = llvm::find_if(report.meshes, [&](const auto &mesh) { return mesh.name == name; });
      return mesh == report.meshes.end() ? sharding::DeviceIds() : mesh->processIds.sorted();
    };
    for (const CollectiveReport &entry : report.collectives)
      if (auto [from, to] = StringRef(entry.mesh).split(" -> ");
          !to.empty() && devicesOf(from) != devicesOf(to)) // not one mesh, renumbered
        linked.insert({from.str(), to.str()});
    std::string stages;
    for (const sharding::Mesh &mesh : report.meshes)
      if (linked.count(mesh.name))
        stages += (stages.empty() ? "stages over " : ", ") + mesh.name;
    if (!stages.empty())
      report.parallelisms->push_back(std::move(stages));
  }

  CollectiveReport describe(const StepTimeline::Entry &entry) {
    auto send = dyn_cast<SendOp>(entry.op);
    CollectiveReport made =
        send ? reportSend(send) : describe(cast<CollectiveOpInterface>(entry.op), entry.cost);
    made.trips = entry.trips;
    made.bounded = entry.isBounded;
    made.modelledTrips = entry.modelledTrips;
    made.isOverlapped = entry.isOverlapped;
    made.exposedSeconds = entry.exposedSeconds;
    made.readySeconds = entry.readySeconds;
    made.beginSeconds = entry.beginSeconds;
    return made;
  }

  CollectiveReport describe(CollectiveOpInterface op, const CommunicationCost &cost) {
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
  Report report;
};

} // namespace

/// Numbers, strings, flags, and lists of strings and of such objects.
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
  // The attribute of dist-search on the module.
  auto search = localView->getAttrOfType<DictionaryAttr>(DistDialect::kSearch);
  if (succeeded(report) && search)
    report->search = toObject(search);
  return report;
}
