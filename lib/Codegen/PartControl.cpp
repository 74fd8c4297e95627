//===- PartControl.cpp - Loops and branches as steps ----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PartEmitter.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::codegen;

LogicalResult PartEmitter::emitInto(Region &region, Block &block,
                                    llvm::function_ref<LogicalResult()> atEnd) {
  OpBuilder::InsertionGuard guard(steps);
  steps.setInsertionPointToEnd(&region.emplaceBlock());
  if (failed(emitBlock(block)))
    return failure();
  return atEnd();
}

void PartEmitter::moveAtEnd(Operation *terminator, ValueRange values, ArrayRef<Storage *> targets) {
  struct Move {
    Place source;
    Type type;
    Storage *target;
  };
  Location loc = terminator->getLoc();
  SmallVector<Move> pending;
  for (auto [value, target] : llvm::zip_equal(values, targets)) {
    Place place = target ? placeOf(value) : Place();
    if (target && (place.storage != target || place.offset != 0))
      pending.push_back({place, value.getType(), target});
  }
  auto emit = [&](const Move &move) {
    Value source = slotOf(move.source.storage, move.source.offset, move.type);
    rt::CopyOp::create(steps, loc, source, slotOf(move.target, 0, move.type));
  };
  while (!pending.empty()) {
    auto *free = llvm::find_if(pending, [&](const Move &move) {
      return llvm::none_of(pending, [&](const Move &other) {
        return &other != &move && other.source.storage == move.target;
      });
    });
    if (free != pending.end()) {
      emit(*free);
      pending.erase(free);
      continue;
    }
    // A cycle: the first value moves to a temporary.
    Move &first = pending.front();
    Storage *aside = newStorage(first.type, first.source.storage->name + "_aside");
    aside->live(lives.start(terminator), lives.start(terminator));
    emit({first.source, first.type, aside});
    first.source = {aside, Value(), 0};
  }
}

Storage *PartEmitter::enterCarry(Value init, Value argument, Value result, Operation *loop) {
  int64_t time = lives.start(loop);
  bool undefined = init.getDefiningOp<tensor::EmptyOp>() && !places.contains(init);
  Storage *storage = nullptr;
  if (!undefined) {
    Place place = placeOf(init);
    if (place.offset == 0 &&
        place.storage->bytes ==
            rt::SlotType::get(cast<RankedTensorType>(argument.getType())).getNumBytes() &&
        isDead(init, time))
      storage = place.storage;
  }
  if (!storage) {
    if (result)
      storage = preferredStorage(result, time);
    if (!storage)
      storage = newStorage(argument.getType(), "carry");
    if (!undefined)
      emitCopy(loop->getLoc(), init, storage);
  }
  storage->live(time, lives.end(loop));
  assignStorage(argument, storage, time);
  return storage;
}

Value PartEmitter::slotOfCounter(scf::ForOp loop) {
  auto type = RankedTensorType::get({}, IndexType::get(loop.getContext()));
  Storage *storage = newStorage(type, "i");
  storage->writable = false;
  storage->live(lives.start(loop), lives.end(loop));
  for (Operation *user : loop.getInductionVar().getUsers())
    if (auto elements = dyn_cast<tensor::FromElementsOp>(user))
      assignStorage(elements, storage, lives.start(loop));
  return slotOf(storage, 0, type);
}

LogicalResult PartEmitter::emitFor(scf::ForOp loop) {
  IntegerAttr numbers[3];
  Value bounds[3];
  for (auto [index, bound] : llvm::enumerate(loop->getOperands().take_front(3))) {
    if (IntegerAttr number; matchPattern(bound, m_Constant(&number))) {
      numbers[index] = steps.getI64IntegerAttr(number.getInt());
      continue;
    }
    FailureOr<Value> slot = slotOfScalar(bound);
    if (failed(slot))
      return failure();
    bounds[index] = *slot;
  }
  SmallVector<Storage *> carries;
  for (auto [init, argument, result] :
       llvm::zip_equal(loop.getInitArgs(), loop.getRegionIterArgs(), loop.getResults()))
    carries.push_back(enterCarry(init, argument, result, loop));
  auto yield = cast<scf::YieldOp>(loop.getBody()->getTerminator());
  for (auto [value, carry] : llvm::zip_equal(yield.getOperands(), carries))
    preferStorage(value, carry);
  auto step = rt::LoopOp::create(steps, loop.getLoc(), slotOfCounter(loop), bounds[0], bounds[1],
                                 bounds[2], numbers[0], numbers[1], numbers[2]);
  auto atEnd = [&]() {
    moveAtEnd(yield, yield.getOperands(), carries);
    return success();
  };
  if (failed(emitInto(step.getBody(), *loop.getBody(), atEnd)))
    return failure();
  for (auto [result, carry] : llvm::zip_equal(loop.getResults(), carries))
    assignStorage(result, carry, lives.end(loop));
  return success();
}

LogicalResult PartEmitter::emitWhile(scf::WhileOp loop) {
  int64_t time = lives.start(loop), end = lives.end(loop);
  SmallVector<Storage *> carries;
  for (auto [init, argument] : llvm::zip_equal(loop.getInits(), loop.getBeforeArguments()))
    carries.push_back(enterCarry(init, argument, Value(), loop));
  scf::ConditionOp condition = loop.getConditionOp();

  // The operands of the condition become arguments of the body, and the results. A result uses the
  // buffer of a value of the first region, or of its argument, once; else a copy.
  SmallVector<Storage *> copies(loop.getNumResults()), results(loop.getNumResults());
  llvm::SmallPtrSet<Storage *, 8> taken;
  FailureOr<Value> conditionSlot = failure();
  auto passOn = [&]() -> LogicalResult {
    for (auto [index, value] : llvm::enumerate(condition.getArgs())) {
      Place place = placeOf(value);
      places[loop.getAfterArguments()[index]] = place;
      bool own = place.offset == 0 && place.storage->writable &&
                 place.root.getParentBlock() == loop.getBeforeBody() &&
                 place.storage->bytes ==
                     rt::SlotType::get(cast<RankedTensorType>(value.getType())).getNumBytes() &&
                 taken.insert(place.storage).second;
      if (!own)
        copies[index] = newStorage(value.getType(), "while");
      results[index] = own ? place.storage : copies[index];
      results[index]->live(time, end);
    }
    moveAtEnd(condition, condition.getArgs(), copies);
    conditionSlot = slotOfScalar(condition.getCondition());
    return failure(failed(conditionSlot));
  };
  Region before;
  if (failed(emitInto(before, *loop.getBeforeBody(), passOn)))
    return failure();
  auto step = rt::WhileOp::create(steps, loop.getLoc(), *conditionSlot);
  step.getBefore().takeBody(before);
  scf::YieldOp yield = loop.getYieldOp();
  for (auto [value, carry] : llvm::zip_equal(yield.getOperands(), carries))
    preferStorage(value, carry);
  auto atEnd = [&]() {
    moveAtEnd(yield, yield.getOperands(), carries);
    return success();
  };
  if (failed(emitInto(step.getBody(), *loop.getAfterBody(), atEnd)))
    return failure();
  for (auto [result, storage] : llvm::zip_equal(loop.getResults(), results))
    assignStorage(result, storage, end);
  return success();
}

LogicalResult PartEmitter::emitIf(scf::IfOp branch) {
  int64_t time = lives.start(branch), end = lives.end(branch);
  FailureOr<Value> condition = slotOfScalar(branch.getCondition());
  if (failed(condition))
    return failure();
  SmallVector<Storage *> targets;
  for (Value result : branch.getResults()) {
    Storage *storage = preferredStorage(result, time);
    if (!storage)
      storage = newStorage(result.getType(), "if");
    storage->live(time, end);
    targets.push_back(storage);
  }
  auto step = rt::IfOp::create(steps, branch.getLoc(), *condition);
  auto emitArm = [&](Region &region, Block *block) -> LogicalResult {
    if (!block) {
      region.emplaceBlock();
      return success();
    }
    auto yield = cast<scf::YieldOp>(block->getTerminator());
    for (auto [value, target] : llvm::zip_equal(yield.getOperands(), targets))
      preferStorage(value, target);
    return emitInto(region, *block, [&]() {
      moveAtEnd(yield, yield.getOperands(), targets);
      return success();
    });
  };
  if (failed(emitArm(step.getThenSteps(), branch.thenBlock())) ||
      failed(emitArm(step.getElseSteps(), branch.elseBlock())))
    return failure();
  for (auto [result, target] : llvm::zip_equal(branch.getResults(), targets))
    assignStorage(result, target, end);
  return success();
}
