//===- JoinExchanges.cpp - Join exchanges that send less together ---------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "JoinExchanges.h"

#include "FusionSchedule.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

namespace {

/// The exchanges whose results an op reads, in its operands or its body, without duplicates. In one
/// block, in its order.
SmallVector<ExchangeOp> exchangesReadBy(Operation *op) {
  SmallVector<ExchangeOp> result;
  auto add = [&](Value value) {
    auto exchange = value.getDefiningOp<ExchangeOp>();
    if (exchange && exchange->getBlock() == op->getBlock() && exchange->getNumOperands() == 1 &&
        exchange.getSourcesAttr() && !llvm::is_contained(result, exchange))
      result.push_back(exchange);
  };
  op->walk([&](Operation *inner) { llvm::for_each(inner->getOperands(), add); });
  llvm::sort(result, [](ExchangeOp a, ExchangeOp b) { return a->isBeforeInBlock(b); });
  return result;
}

/// A halo exchange as an exchange, which can be joined with others.
ExchangeOp exchangeOf(HaloExchangeOp halo) {
  OpBuilder b(halo);
  auto made = ExchangeOp::create(
      b, halo.getLoc(), halo->getResultTypes(), halo->getOperands(),
      cast<ShardingAttr>(halo.getSourcesAttr()[0]), cast<ShardingAttr>(halo.getTargetsAttr()[0]),
      halo.getFillAttr(), halo.getSourcesAttr(), halo.getTargetsAttr(), halo.getGlobalTypesAttr());
  made->setDiscardableAttrs(halo->getDiscardableAttrDictionary());
  return made;
}

/// Whether an op moves one tensor, and says between which layouts.
template <typename Op> bool movesOne(Op op) {
  return op && op->getNumOperands() == 1 && op.getSourcesAttr() && op.getTargetsAttr();
}

/// Whether two exchanges may be one.
bool canJoin(ExchangeOp a, ExchangeOp b) {
  auto elementOf = [](ExchangeOp each) {
    return cast<RankedTensorType>(each->getResult(0).getType()).getElementType();
  };
  return elementOf(a) == elementOf(b) && a.getFillAttr() == b.getFillAttr() &&
         a.getFrom().getMesh() == b.getFrom().getMesh() &&
         a.getTo().getMesh() == b.getTo().getMesh();
}

/// Makes exchanges of halos that an op reads beside one.
void exchangeHalos(Operation *reader) {
  SmallVector<ExchangeOp> exchanges = exchangesReadBy(reader);
  llvm::SmallSetVector<Operation *, 4> halos;
  for (Value operand : reader->getOperands())
    if (auto halo = operand.getDefiningOp<HaloExchangeOp>();
        movesOne(halo) && halo->getBlock() == reader->getBlock())
      halos.insert(halo);
  for (Operation *op : halos) {
    auto halo = cast<HaloExchangeOp>(op);
    ExchangeOp made = exchangeOf(halo);
    if (llvm::none_of(exchanges, [&](ExchangeOp other) { return canJoin(made, other); })) {
      made.erase();
      continue;
    }
    halo->replaceAllUsesWith(made);
    halo.erase();
  }
}

/// One exchange for several, at the place of `at`. The others must be replaced by it.
ExchangeOp exchangeTogether(ArrayRef<ExchangeOp> joined, ExchangeOp at) {
  SmallVector<Type> types;
  SmallVector<Value> operands;
  SmallVector<Attribute> sources, targets, globals;
  SmallVector<Location> locs;
  llvm::SetVector<Attribute> reasons;
  for (ExchangeOp op : joined) {
    llvm::append_range(types, op->getResultTypes());
    llvm::append_range(operands, op->getOperands());
    llvm::append_range(sources, op.getSourcesAttr());
    llvm::append_range(targets, op.getTargetsAttr());
    llvm::append_range(globals, op.getGlobalTypesAttr());
    if (!llvm::is_contained(locs, op.getLoc()))
      locs.push_back(op.getLoc());
    if (Attribute reason = op->getAttr(DistDialect::kReason))
      reasons.insert(reason);
  }
  OpBuilder b(at);
  ExchangeOp first = joined.front();
  auto made = ExchangeOp::create(b, b.getFusedLoc(locs), types, operands, first.getFrom(),
                                 first.getTo(), at.getFillAttr(), b.getArrayAttr(sources),
                                 b.getArrayAttr(targets), b.getArrayAttr(globals));
  setReasons(made, reasons.getArrayRef());
  return made;
}

void replaceWith(ExchangeOp made, ArrayRef<ExchangeOp> joined) {
  unsigned next = 0;
  for (ExchangeOp op : joined)
    for (Value old : op->getResults()) {
      Value result = made->getResult(next++);
      if (ShardingAttr sharding = getSharding(old)) {
        setSharding(result, sharding);
        setGlobalType(result, getGlobalType(old));
      }
      old.replaceAllUsesWith(result);
    }
  for (ExchangeOp op : joined)
    op.erase();
}

/// Joins the exchanges of the value that an exchange moves where that sends less: different devices
/// may be the busiest. Returns the exchange in its place.
ExchangeOp joinExchangesLike(ExchangeOp first, const MeshTable &meshes) {
  SmallVector<Operation *> moves; // halos among them
  for (Operation *user : first->getOperand(0).getUsers())
    if (user->getBlock() == first->getBlock() &&
        (movesOne(dyn_cast<ExchangeOp>(user)) || movesOne(dyn_cast<HaloExchangeOp>(user))))
      moves.push_back(user);
  llvm::sort(moves, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  auto bytesOf = [&](Operation *op) {
    auto collective = cast<CollectiveOpInterface>(op);
    FailureOr<sharding::Traffic> traffic =
        collective.getTraffic(meshes.get(collective.getMeshAttr()));
    return succeeded(traffic) ? traffic->wireBytes : 0;
  };
  SmallVector<ExchangeOp> all;
  SmallVector<std::pair<HaloExchangeOp, ExchangeOp>> halos;
  int64_t apart = 0;
  for (Operation *op : moves) {
    auto halo = dyn_cast<HaloExchangeOp>(op);
    ExchangeOp exchange = halo ? exchangeOf(halo) : cast<ExchangeOp>(op);
    if (!canJoin(exchange, first)) {
      if (halo)
        exchange.erase();
      continue;
    }
    if (halo)
      halos.push_back({halo, exchange});
    all.push_back(exchange);
    apart += bytesOf(op);
  }
  ExchangeOp made = all.size() > 1 ? exchangeTogether(all, all.front()) : nullptr;
  if (made && bytesOf(made) < apart) {
    for (auto [halo, exchange] : halos) {
      halo->replaceAllUsesWith(exchange);
      halo.erase();
    }
    replaceWith(made, all);
    return made;
  }
  if (made)
    made.erase();
  for (auto [halo, exchange] : halos)
    exchange.erase();
  return first;
}

} // namespace

void dist::joinExchangesOfValues(Block &block, const MeshTable &meshes) {
  for (Operation *op = block.empty() ? nullptr : &block.front(); op; op = op->getNextNode())
    if (auto exchange = dyn_cast<ExchangeOp>(op); movesOne(exchange))
      op = joinExchangesLike(exchange, meshes);
}

void dist::joinExchangesReadBy(Operation *reader) {
  if (!isa<linalg::LinalgOp, tensor::ConcatOp, tensor::InsertSliceOp>(reader))
    return;
  exchangeHalos(reader);
  SmallVector<ExchangeOp> all = exchangesReadBy(reader);
  if (all.size() < 2)
    return;
  ExchangeOp last = all.back();
  auto isOne = [&](ExchangeOp op) {
    // Other readers of its result wait for the last of them.
    bool isFree = llvm::all_of(op->getUsers(), [&](Operation *user) {
      Operation *here = op->getBlock()->findAncestorOpInBlock(*user);
      return here && last->isBeforeInBlock(here);
    });
    return op == last || (isFree && canJoin(op, last));
  };
  SmallVector<ExchangeOp> joined = llvm::filter_to_vector(all, isOne);
  if (joined.size() < 2)
    return;
  ExchangeOp made = exchangeTogether(joined, last);
  replaceWith(made, joined);
}
