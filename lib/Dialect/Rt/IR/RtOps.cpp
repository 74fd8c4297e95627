//===- RtOps.cpp - Rules of programs, parts, slots and homes --------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Dialect/Dist/IR/ValueShardings.h"
#include "tessera/Dialect/Rt/IR/Rt.h"

#include <map>

using namespace mlir;
using namespace tessera;
using namespace tessera::rt;

LogicalResult GroupOp::verify() {
  auto yield = dyn_cast<YieldOp>(getBody().front().back());
  if (!yield)
    return emitOpError() << "does not end with rt.yield";
  if (yield.getOperandTypes() != getResultTypes())
    return yield.emitOpError() << "yields " << yield.getOperandTypes() << ", the group has results "
                               << getResultTypes();
  return success();
}

void SlotOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getSlot(), getName());
}

void ConstantOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getSlot(), getName());
}

LogicalResult SlotOp::verify() {
  int64_t bytes = getSlot().getType().getNumBytes(),
          arena = getOperation()->getParentOfType<PartOp>().getArenaBytes();
  int64_t offset = getOffset();
  if (offset < 0 || bytes > arena || offset > arena - bytes) // (R1)
    return emitOpError() << "'" << getName() << "' of " << bytes << " bytes at " << offset
                         << " is not within the arena of " << arena << " bytes";
  int64_t element = dist::bytesPerElement(getSlot().getType().getElementType());
  if (offset % element != 0) // (R1)
    return emitOpError() << "'" << getName() << "' at " << offset
                         << " does not start at a multiple of its element's " << element
                         << " bytes";
  return success();
}

LogicalResult ConstantOp::verify() {
  auto type = dyn_cast<RankedTensorType>(getValue().getType());
  if (!type || SlotType::get(type) != getSlot().getType())
    return emitOpError() << "has a value of " << getValue().getType() << " for a slot of "
                         << getSlot().getType();
  return success();
}

LogicalResult rt::verifySameDevices(Operation *op, FlatSymbolRefAttr name) {
  auto part = op->getParentOfType<PartOp>();
  dist::ProcessMeshOp mesh = dist::lookupMesh(op, name);
  if (!mesh) // (R2)
    return op->emitOpError() << "mesh '" << name.getValue() << "' is not declared";
  dist::ProcessMeshOp own = dist::lookupMesh(op, part.getMeshAttr());
  if (mesh != own &&
      mesh.getMesh().processIds.sorted() != own.getMesh().processIds.sorted()) // (R2)
    return op->emitOpError() << "mesh '" << name.getValue()
                             << "' has other devices than the part's '" << part.getMesh() << "'";
  return success();
}

/// Rules R5 and R7 of a home for a value of the given global type.
static LogicalResult verifyHome(Operation *op, Value slot, dist::ShardingAttr layout, Type global) {
  if (!dist::lookupMesh(op, op->getParentOfType<PartOp>().getMeshAttr()))
    return success(); // reported by the part
  if (failed(verifySameDevices(op, layout.getMesh())))
    return failure();
  dist::ProcessMeshOp mesh = dist::lookupMesh(op, layout.getMesh());
  auto resolved = layout.resolve(mesh.getMesh(), global, [&]() { return op->emitOpError(); });
  if (failed(resolved))
    return failure();
  RankedTensorType local = dist::localType(cast<RankedTensorType>(global), *resolved);
  if (SlotType::get(local) != slot.getType()) // (R5)
    return op->emitOpError() << "the slot is " << slot.getType() << ", its layout of " << global
                             << " has " << SlotType::get(local);
  return success();
}

/// Verifies a part's homes; the part does it for all of them, because finding the argument of one
/// is a walk over all.
static LogicalResult verifyHomesOf(PartOp part) {
  Block &declarations = part->getParentOfType<ProgramOp>().getBody().front();
  SmallVector<ArgumentOp> arguments(declarations.getOps<ArgumentOp>());
  SmallVector<ResultOp> results(declarations.getOps<ResultOp>());
  for (auto home : part.getBody().front().getOps<ArgumentHomeOp>()) {
    if (home.getIndex() >= arguments.size()) // (R7)
      return home.emitOpError() << "argument " << home.getIndex() << " does not exist";
    if (isa_and_nonnull<ConstantOp>(home.getSlot().getDefiningOp())) // (R9)
      return home.emitOpError() << "an argument cannot be held in a constant";
    if (failed(verifyHome(home, home.getSlot(), home.getLayout(),
                          arguments[home.getIndex()].getType())))
      return failure();
  }
  for (auto home : part.getBody().front().getOps<ResultHomeOp>()) {
    if (home.getIndex() >= results.size()) // (R7)
      return home.emitOpError() << "result " << home.getIndex() << " does not exist";
    if (failed(
            verifyHome(home, home.getSlot(), home.getLayout(), results[home.getIndex()].getType())))
      return failure();
  }
  return success();
}

LogicalResult ArgumentHomeOp::verifySymbolUses(SymbolTableCollection &) {
  return success(); // verified with its part
}

LogicalResult ResultHomeOp::verifySymbolUses(SymbolTableCollection &) {
  return success(); // verified with its part
}

int64_t ProgramOp::sumArenas() {
  llvm::DenseMap<int64_t, int64_t> bytes;
  int64_t most = 0;
  for (auto part : getBody().front().getOps<PartOp>())
    for (int64_t device : dist::lookupMesh(part, part.getMeshAttr()).getMesh().processIds)
      most = std::max(most, bytes[device] += static_cast<int64_t>(part.getArenaBytes()));
  return most;
}

LogicalResult PartOp::verifySymbolUses(SymbolTableCollection &) {
  auto arena = static_cast<int64_t>(getArenaBytes());
  if (arena < 0) // (R1)
    return emitOpError() << "an arena of " << arena << " bytes";
  dist::ProcessMeshOp declared = dist::lookupMesh(*this, getMeshAttr());
  if (!declared) // (R2)
    return emitOpError() << "mesh '" << getMesh() << "' is not declared";
  if (failed(declared.verify()))
    return failure();
  for (CoordinateOp coordinate : getBody().front().getOps<CoordinateOp>()) {
    FlatSymbolRefAttr name = coordinate.getMeshAttr() ? coordinate.getMeshAttr() : getMeshAttr();
    if (failed(verifySameDevices(coordinate, name)) ||
        failed(dist::resolveAxes(coordinate.getAxes(), dist::lookupMesh(*this, name).getMesh(),
                                 [&]() { return coordinate.emitOpError(); })))
      return failure();
  }
  return verifyHomesOf(*this);
}

/// Rule R7: every result has one home, which is the home of the argument that it feeds.
static LogicalResult verifyHomes(ProgramOp program) {
  SmallVector<ArgumentOp> arguments(program.getBody().front().getOps<ArgumentOp>());
  SmallVector<ResultOp> results(program.getBody().front().getOps<ResultOp>());
  SmallVector<ResultHomeOp> homes(results.size());
  std::vector<SmallVector<ArgumentHomeOp, 1>> argumentHomes(arguments.size());
  for (PartOp part : program.getBody().front().getOps<PartOp>())
    for (ArgumentHomeOp home : part.getBody().front().getOps<ArgumentHomeOp>())
      if (home.getIndex() < argumentHomes.size())
        argumentHomes[home.getIndex()].push_back(home);
  for (PartOp part : program.getBody().front().getOps<PartOp>())
    for (ResultHomeOp home : part.getBody().front().getOps<ResultHomeOp>()) {
      if (home.getIndex() >= homes.size())
        continue;                 // reported by the home itself
      if (homes[home.getIndex()]) // (R7)
        return home.emitOpError() << "result " << home.getIndex() << " has another home";
      homes[home.getIndex()] = home;
    }
  for (auto [result, home] : llvm::zip_equal(results, homes)) {
    if (!home) // (R7)
      return result.emitOpError() << "'" << result.getName() << "' has no home";
    std::optional<uint64_t> feeds = result.getFeeds();
    if (!feeds)
      continue;
    if (*feeds >= arguments.size() || arguments[*feeds].getType() != result.getType()) // (R7)
      return result.emitOpError() << "'" << result.getName() << "' feeds argument " << *feeds
                                  << ", which does not exist or has another type";
    for (ArgumentHomeOp fed : argumentHomes[*feeds])
      if (fed->getParentOp() != home->getParentOp() || fed.getSlot() != home.getSlot()) // (R7)
        return home.emitOpError() << "result '" << result.getName() << "' feeds argument " << *feeds
                                  << ", but is not in the same slot";
  }
  return success();
}

/// Rule R11.
static LogicalResult verifyTransfers(ProgramOp program) {
  std::map<int64_t, std::pair<SendOp, RecvOp>> sides; // ids are any numbers
  WalkResult walk = program->walk([&](Operation *op) {
    if (auto send = dyn_cast<SendOp>(op)) {
      if (std::exchange(sides[send.getId()].first, send)) {
        send.emitOpError() << "id " << send.getId() << " is taken";
        return WalkResult::interrupt();
      }
    } else if (auto recv = dyn_cast<RecvOp>(op)) {
      if (std::exchange(sides[recv.getId()].second, recv)) {
        recv.emitOpError() << "id " << recv.getId() << " is taken";
        return WalkResult::interrupt();
      }
    }
    return WalkResult::advance();
  });
  if (walk.wasInterrupted())
    return failure();
  for (auto &[id, pair] : sides) {
    auto [send, recv] = pair;
    if (!recv)
      return send.emitOpError() << "nothing receives id " << id;
    if (!send)
      return recv.emitOpError() << "nothing sends id " << id;
    if (send.getSourceLayout() != recv.getSourceLayout() ||
        send.getTargetLayout() != recv.getTargetLayout() ||
        send.getGlobalType() != recv.getGlobalType()) {
      InFlightDiagnostic error = recv.emitOpError() << "differs from the send of id " << id;
      error.attachNote(send.getLoc()) << "sent here";
      return error;
    }
  }
  return success();
}

LogicalResult ProgramOp::verifyRegions() {
  if (failed(verifyHomes(*this)))
    return failure();
  return verifyTransfers(*this);
}
