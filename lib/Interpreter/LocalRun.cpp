//===- LocalRun.cpp - The local view on a made-up process grid ------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LocalRun.h"
#include "tessera/Interpreter/Compare.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::interpreter;

Device &LocalFunction::device(int64_t processId) {
  for (Device &device : devices)
    if (device.getProcessId() == processId)
      return device;
  llvm_unreachable("callers ask for devices of the function");
}

static ArrayRef<int64_t> devicesOf(func::FuncOp function) {
  auto devices = function->getAttrOfType<DenseI64ArrayAttr>(dist::DistDialect::kMeshDevices);
  return devices ? devices.asArrayRef() : ArrayRef<int64_t>();
}

LogicalResult LocalRun::collectFunctions() {
  for (auto function : program.module.getOps<func::FuncOp>()) {
    if (!dist::isLocalView(function) || function.isExternal())
      continue;
    auto partOf = function->getAttrOfType<StringAttr>(dist::DistDialect::kPartOf);
    if ((partOf ? partOf.getValue() : function.getName()) != name)
      continue;
    if (devicesOf(function).empty())
      return mlir::emitError(function.getLoc())
             << "'" << function.getName() << "' has no dist.mesh_devices";
    parts.push_back({function, {}});
  }
  if (parts.empty())
    return mlir::emitError(program.module.getLoc()) << "no local function of '" << name << "'";
  return success();
}

//===----------------------------------------------------------------------===//
// Inputs
//===----------------------------------------------------------------------===//

/// The move between the host, which holds the global tensor, and a sharding of it.
static FailureOr<Move> hostMove(Program &program, Location loc, dist::ShardingAttr attr,
                                RankedTensorType type, bool toHost) {
  const sharding::Mesh *mesh = program.meshes.lookup(attr.getMesh().getAttr());
  assert(mesh && "the verifier lets no undeclared mesh through");
  auto resolved = attr.resolve(*mesh, type, [&]() { return mlir::emitError(loc); });
  if (failed(resolved))
    return failure();
  sharding::Layout layout = sharding::makeLayout(*resolved, type.getShape().vec());
  sharding::Layout host = hostLayout(type.getShape().vec());
  return toHost ? Move{*mesh, hostMesh(), layout, host} : Move{hostMesh(), *mesh, host, layout};
}

FailureOr<Buffers> LocalRun::cut(LocalFunction &part, unsigned argument, const Tensor &input) {
  func::FuncOp function = part.function;
  BlockArgument value = function.getArgument(argument);
  dist::ShardingAttr sharding = dist::getSharding(value);
  Type type = value.getType();
  if (isa<RankedTensorType>(type))
    type = dist::getGlobalType(value);
  auto tensor =
      isa<RankedTensorType>(type) ? cast<RankedTensorType>(type) : RankedTensorType::get({}, type);
  if (input.tensorType() != tensor)
    return mlir::emitError(function.getLoc())
           << "argument " << argument << " of '" << function.getName() << "' is " << type
           << ", its value " << input.tensorType();
  ArrayRef<int64_t> ids = devicesOf(function);
  if (!sharding)
    return Buffers(ids.size(), input);
  FailureOr<Move> move = hostMove(program, function.getLoc(), sharding, tensor, /*toHost=*/false);
  if (failed(move))
    return failure();
  Buffers byPosition =
      executeMove(*move, {input}, poisonOf(input.element(), program.options.poison));
  Buffers result;
  for (int64_t id : ids) {
    int64_t position = move->targetMesh.positionOf(id);
    if (position < 0)
      return mlir::emitError(function.getLoc())
             << "device " << id << " of '" << function.getName() << "' is not in mesh '"
             << move->targetMesh.name << "' of argument " << argument;
    result.push_back(byPosition[position]);
  }
  return result;
}

LogicalResult LocalRun::start(LocalFunction &part, ArrayRef<Tensor> inputs) {
  ArrayRef<int64_t> ids = devicesOf(part.function);
  std::vector<SmallVector<Tensor>> arguments(ids.size());
  for (unsigned i = 0; i < part.function.getNumArguments(); ++i) {
    auto original = part.function.getArgAttrOfType<IntegerAttr>(i, dist::DistDialect::kArgument);
    size_t index = original ? original.getInt() : i;
    if (index >= inputs.size())
      return mlir::emitError(part.function.getLoc())
             << "'" << part.function.getName() << "' needs argument " << index << ", and "
             << inputs.size() << " are given";
    FailureOr<Buffers> buffers = cut(part, i, inputs[index]);
    if (failed(buffers))
      return failure();
    for (auto [list, buffer] : llvm::zip_equal(arguments, *buffers))
      list.push_back(buffer);
  }
  for (auto [id, list] : llvm::zip_equal(ids, arguments))
    part.devices.emplace_back(program, part.function, list, id);
  return success();
}

//===----------------------------------------------------------------------===//
// Taking turns
//===----------------------------------------------------------------------===//

LogicalResult LocalRun::runCollective(LocalFunction &part, bool &progressed) {
  Operation *collective = part.devices.front().collective();
  if (!collective || llvm::any_of(part.devices, [&](const Device &device) {
        return device.collective() != collective;
      }))
    return success();
  auto op = cast<dist::CollectiveOpInterface>(collective);
  const sharding::Mesh &mesh = program.meshes.get(op.getMeshAttr());
  std::vector<SmallVector<Tensor>> operands(mesh.numDevices());
  for (const Device &device : part.devices) {
    int64_t position = mesh.positionOf(device.getProcessId());
    if (position < 0 || mesh.numDevices() != static_cast<int64_t>(part.devices.size()))
      return device.error(collective)
             << "uses mesh '" << mesh.name << "', which has other devices than its function";
    operands[position] = device.get(collective->getOperands());
  }
  auto results = executeCollective(program, op, operands);
  if (failed(results))
    return failure();
  // The results of an exchange may be on another mesh of the same devices.
  const sharding::Mesh *target = &mesh;
  if (ArrayAttr targets = op.getTargetsAttr())
    target = &program.meshes.get(cast<dist::ShardingAttr>(targets[0]).getMesh());
  for (Device &device : part.devices) {
    int64_t position = target->positionOf(device.getProcessId());
    if (position < 0)
      return device.error(collective)
             << "leads to mesh '" << target->name << "', which has other devices than its function";
    device.resume((*results)[position]);
  }
  progressed = true;
  return success();
}

LogicalResult LocalRun::send(Device &device, dist::SendOp op) {
  const sharding::Mesh &mesh = program.meshes.get(op.getSource().getMesh());
  int64_t position = mesh.positionOf(device.getProcessId());
  if (position < 0)
    return device.error(op) << "is executed by a device outside mesh '" << mesh.name << "'";
  Channel &channel = channels[op.getId()];
  size_t execution = channel.sends[device.getProcessId()]++;
  if (execution >= channel.sent.size())
    channel.sent.resize(execution + 1, Buffers(mesh.numDevices()));
  channel.sent[execution][position] = device.get(op.getOperand());
  device.resume({});
  return success();
}

LogicalResult LocalRun::receive(Device &device, dist::RecvOp op, bool &progressed) {
  Channel &channel = channels[op.getId()];
  size_t &execution = channel.receives[device.getProcessId()];
  Move move;
  move.sourceMesh = program.meshes.get(op.getSource().getMesh());
  move.targetMesh = program.meshes.get(op.getTarget().getMesh());
  int64_t position = move.targetMesh.positionOf(device.getProcessId());
  if (position < 0)
    return device.error(op) << "is executed by a device outside mesh '" << move.targetMesh.name
                            << "'";
  if (execution >= channel.delivered.size()) {
    // Wait for all parts: finding out which of them this device needs would be more complex.
    if (execution >= channel.sent.size() ||
        llvm::any_of(channel.sent[execution], [](const Tensor &part) { return !part; }))
      return success();
    auto type = cast<RankedTensorType>(op.getGlobalType());
    auto emitError = [&]() { return device.error(op); };
    auto source = op.getSource().resolve(move.sourceMesh, type, emitError);
    auto target = op.getTarget().resolve(move.targetMesh, type, emitError);
    if (failed(source) || failed(target))
      return failure();
    move.source = sharding::makeLayout(*source, type.getShape().vec());
    move.target = sharding::makeLayout(*target, type.getShape().vec());
    const Buffers &sent = channel.sent[execution];
    if (sent.size() != move.sourceMesh.processIds.size() ||
        sent.front().shape() != ArrayRef<int64_t>(move.source.localShape()))
      return device.error(op) << "receives " << type << " with id " << op.getId()
                              << ", and the send with this id has another type";
    channel.delivered.push_back(
        executeMove(move, sent, poisonOf(sent.front().element(), program.options.poison)));
  }
  device.resume(channel.delivered[execution][position]);
  ++execution;
  progressed = true;
  return success();
}

LogicalResult LocalRun::round(bool &progressed) {
  for (LocalFunction &part : parts) {
    for (Device &device : part.devices) {
      if (device.getStatus() == Device::Status::running)
        progressed = true;
      if (device.run() == Device::Status::failed)
        return failure();
      while (auto op = dyn_cast_or_null<dist::SendOp>(device.waitingAt()))
        if (failed(send(device, op)) || device.run() == Device::Status::failed)
          return failure();
      if (auto op = dyn_cast_or_null<dist::RecvOp>(device.waitingAt()))
        if (failed(receive(device, op, progressed)))
          return failure();
    }
    if (failed(runCollective(part, progressed)))
      return failure();
  }
  return success();
}

LogicalResult LocalRun::reportStuck() {
  // Reports the first device that waits for ever, and the first one that is elsewhere.
  for (LocalFunction &part : parts)
    for (Device &device : part.devices) {
      Operation *op = device.waitingAt();
      if (!op)
        continue;
      InFlightDiagnostic diagnostic = device.error(op);
      if (auto recv = dyn_cast<dist::RecvOp>(op)) {
        diagnostic << "waits forever: nothing is sent with id " << recv.getId();
        return diagnostic;
      }
      diagnostic << "waits forever: some device never arrives";
      for (Device &other : part.devices) {
        if (other.waitingAt() == op)
          continue;
        if (Operation *elsewhere = other.waitingAt())
          diagnostic.attachNote(elsewhere->getLoc())
              << "device " << other.getProcessId() << " waits at '" << elsewhere->getName() << "'";
        else
          diagnostic.attachNote(part.function.getLoc())
              << "device " << other.getProcessId() << " has finished";
        break;
      }
      return diagnostic;
    }
  return success();
}

FailureOr<SmallVector<Tensor>> LocalRun::run(ArrayRef<Tensor> inputs) {
  if (failed(collectFunctions()))
    return failure();
  for (LocalFunction &part : parts)
    if (failed(start(part, inputs)))
      return failure();
  for (bool progressed = true; progressed;) {
    progressed = false;
    if (failed(round(progressed)))
      return failure();
  }
  if (failed(reportStuck()))
    return failure();
  SmallVector<Tensor> results;
  for (LocalFunction &part : parts)
    if (failed(assemble(part, results)))
      return failure();
  for (auto [index, result] : llvm::enumerate(results))
    if (!result)
      return mlir::emitError(program.module.getLoc())
             << "no local function of '" << name << "' returns result " << index;
  return results;
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

LogicalResult LocalRun::checkReplicas(LocalFunction &part, unsigned result, const Move &move,
                                      const Buffers &buffers) {
  // Devices with the same box of the same contribution must hold the same bits.
  const sharding::Mesh &mesh = move.sourceMesh;
  std::map<std::pair<std::vector<int64_t>, sharding::Box>, int64_t> first;
  for (int64_t position = 0; position < mesh.numDevices(); ++position) {
    std::vector<int64_t> coordinate = mesh.coordinate(position);
    std::vector<int64_t> contribution;
    for (const sharding::PartialAxis &axis : move.source.partial)
      contribution.push_back(sharding::coordinateIn(mesh, axis.axis, coordinate));
    sharding::Box box = move.source.valid(mesh, coordinate);
    auto [it, isNew] = first.try_emplace({contribution, box}, position);
    if (isNew || box.empty())
      continue;
    auto partOf = [&](int64_t of) {
      Tensor copy(buffers[of].getElementType(), box.size);
      copyBox(buffers[of], move.source.span(mesh, mesh.coordinate(of)).offset, copy, box.offset,
              box);
      return copy;
    };
    Tensor mine = partOf(position), theirs = partOf(it->second);
    int64_t difference = firstDifference(mine, theirs);
    if (difference < 0)
      continue;
    std::string values;
    llvm::raw_string_ostream os(values);
    print(os, Tensor::scalar(mine.getElementType(), mine.load(difference)));
    os << " and ";
    print(os, Tensor::scalar(mine.getElementType(), theirs.load(difference)));
    return mlir::emitError(part.function.getLoc())
           << "result " << result << " of '" << part.function.getName()
           << "' differs between devices " << mesh.processIds[position] << " and "
           << mesh.processIds[it->second] << ": element " << indexText(mine, difference)
           << " of their part is " << values;
  }
  return success();
}

LogicalResult LocalRun::assemble(LocalFunction &part, SmallVector<Tensor> &results) {
  func::FuncOp function = part.function;
  for (unsigned i = 0; i < function.getNumResults(); ++i) {
    auto original = function.getResultAttrOfType<IntegerAttr>(i, dist::DistDialect::kResult);
    size_t index = original ? original.getInt() : i;
    if (index >= results.size())
      results.resize(index + 1);
    auto sharding =
        function.getResultAttrOfType<dist::ShardingAttr>(i, dist::DistDialect::kSharding);
    if (!sharding) {
      results[index] = part.devices.front().getResults()[i];
      for (const Device &device : part.devices)
        if (firstDifference(device.getResults()[i], results[index]) >= 0)
          return mlir::emitError(function.getLoc())
                 << "result " << i << " of '" << function.getName()
                 << "' has no sharding and differs between devices " << device.getProcessId()
                 << " and " << part.devices.front().getProcessId();
      continue;
    }
    auto type = cast<RankedTensorType>(function.getResultTypes()[i]);
    if (auto global = function.getResultAttrOfType<TypeAttr>(i, dist::DistDialect::kGlobalType))
      type = cast<RankedTensorType>(global.getValue());
    FailureOr<Move> move = hostMove(program, function.getLoc(), sharding, type, /*toHost=*/true);
    if (failed(move))
      return failure();
    Buffers buffers;
    for (int64_t id : move->sourceMesh.processIds) {
      if (!llvm::is_contained(devicesOf(function), id))
        return mlir::emitError(function.getLoc())
               << "result " << i << " of '" << function.getName() << "' is on device " << id
               << ", which does not run it";
      buffers.push_back(part.device(id).getResults()[i]);
    }
    if (buffers.front().shape() != ArrayRef<int64_t>(move->source.localShape()))
      return mlir::emitError(function.getLoc())
             << "result " << i << " of '" << function.getName() << "' is "
             << buffers.front().tensorType() << ", which is not the local shape of its sharding";
    if (failed(checkReplicas(part, i, *move, buffers)))
      return failure();
    results[index] =
        executeMove(*move, buffers, poisonOf(buffers.front().element(), program.options.poison))[0];
  }
  return success();
}

FailureOr<SmallVector<Tensor>> interpreter::runLocal(ModuleOp module, StringRef name,
                                                     ArrayRef<Tensor> inputs,
                                                     const Options &options) {
  Program program(module, options);
  return LocalRun(program, name).run(inputs);
}
