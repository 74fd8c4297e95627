//===- GpuNests.cpp - Parallelize ordered loops ---------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A scatter is a loop nest over the updates, in order: the last update of an element wins. A loop
// whose index alone determines one dimension of all written memory,
//
//   for %n, for %j:   dest[place[%n], %j] = source[%n, %j]          (%j does, %n does not)
//
// has iterations that access different elements. These become threads; each runs the other loops in
// order, so the result is the same in every run. If that yields few threads, each index of `dest`
// gets an owner: owners iterate over all %n, read only place[%n], and do the remaining work if they
// own that index.
//
//===----------------------------------------------------------------------===//

#include "../GpuStages.h"

#include "../Groups/GpuAccess.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;

namespace tessera::codegen {

SmallVector<scf::ForOp> perfectNest(Operation *op) {
  SmallVector<scf::ForOp> loops;
  while (auto loop = dyn_cast<scf::ForOp>(op)) {
    if (loop.getNumResults() != 0 || !getConstantIntValue(loop.getUpperBound()) ||
        getConstantIntValue(loop.getLowerBound()) != 0 || getConstantIntValue(loop.getStep()) != 1)
      return {};
    loops.push_back(loop);
    Block *body = loop.getBody();
    if (std::distance(body->begin(), body->end()) != 2)
      break;
    op = &body->front();
  }
  return loops;
}

/// The dimension of an access that `index` alone determines, as a dimension of the underlying
/// buffer, or -1.
static int dimensionOf(Value index, Value memory, ValueRange indices) {
  int found = -1;
  for (auto [dim, at] : llvm::enumerate(indices))
    if (at == index)
      found = static_cast<int>(dim);
  // A view may have any strides, so only entire buffers are compared.
  return memory == rootOf(memory) ? found : -1;
}

/// Whether different iterations of the loop access different elements of everything that the nest
/// writes.
static bool isIndependent(scf::ForOp loop, Operation *nest) {
  llvm::MapVector<Value, int> dimension; // of each written buffer
  WalkResult stores = nest->walk([&](Operation *op) {
    if (isa<memref::StoreOp, memref::LoadOp, scf::ForOp, scf::YieldOp>(op) || isPure(op)) {
      auto store = dyn_cast<memref::StoreOp>(op);
      if (!store)
        return WalkResult::advance();
      int dim = dimensionOf(loop.getInductionVar(), store.getMemRef(), store.getIndices());
      auto [entry, fresh] = dimension.insert({rootOf(store.getMemRef()), dim});
      return dim >= 0 && entry->second == dim ? WalkResult::advance() : WalkResult::interrupt();
    }
    return WalkResult::interrupt();
  });
  if (stores.wasInterrupted() || dimension.empty())
    return false;
  return !nest->walk([&](memref::LoadOp load) {
                auto written = dimension.find(rootOf(load.getMemRef()));
                bool apart = written == dimension.end() ||
                             dimensionOf(loop.getInductionVar(), load.getMemRef(),
                                         load.getIndices()) == written->second;
                return apart ? WalkResult::advance() : WalkResult::interrupt();
              })
              .wasInterrupted();
}

SmallVector<unsigned> independentLoops(Operation *op) {
  SmallVector<unsigned> result;
  for (auto [i, loop] : llvm::enumerate(perfectNest(op)))
    if (*getConstantIntValue(loop.getUpperBound()) > 1 && isIndependent(loop, op))
      result.push_back(i);
  return result;
}

std::optional<OwnedDimension> ownedDimension(Operation *nest) {
  OwnedDimension owned;
  llvm::SmallPtrSet<Value, 4> written;
  nest->walk([&](memref::StoreOp store) { written.insert(rootOf(store.getMemRef())); });
  // Every access to a written buffer has the same index value in one dimension of the same extent.
  auto isOwned = [&](Value memory, ValueRange indices) {
    if (memory != rootOf(memory))
      return false; // a view
    ArrayRef<int64_t> shape = cast<MemRefType>(memory.getType()).getShape();
    for (auto [extent, index] : llvm::zip_equal(shape, indices)) {
      if (!owned.place && index.getDefiningOp() && nest->isProperAncestor(index.getDefiningOp()) &&
          extent > 1)
        owned = {index, extent};
      if (owned.place == index && owned.extent == extent)
        return true;
    }
    return false;
  };
  WalkResult walk = nest->walk([&](Operation *op) {
    bool known = true;
    if (auto store = dyn_cast<memref::StoreOp>(op))
      known = isOwned(store.getMemRef(), store.getIndices());
    else if (auto load = dyn_cast<memref::LoadOp>(op))
      known = !written.contains(rootOf(load.getMemRef())) ||
              isOwned(load.getMemRef(), load.getIndices());
    else
      known = isa<scf::ForOp, scf::YieldOp>(op) || isPure(op);
    return known ? WalkResult::advance() : WalkResult::interrupt();
  });
  if (walk.wasInterrupted() || written.empty() || perfectNest(nest).empty() || !owned.place)
    return std::nullopt;
  // The index must not depend on loads from written buffers.
  SmallVector<Value> work = {owned.place};
  llvm::SmallPtrSet<Operation *, 16> seen;
  while (!work.empty()) {
    Operation *def = work.pop_back_val().getDefiningOp();
    if (!def || !nest->isProperAncestor(def) || !seen.insert(def).second)
      continue;
    if (def->getBlock() != owned.place.getDefiningOp()->getBlock() || def->getNumRegions() > 0)
      return std::nullopt;
    if (auto load = dyn_cast<memref::LoadOp>(def);
        load && written.contains(rootOf(load.getMemRef())))
      return std::nullopt;
    llvm::append_range(work, def->getOperands());
  }
  return owned;
}

void keepOwned(const OwnedDimension &owned, Value owner, int64_t owners, OpBuilder &b) {
  Operation *place = owned.place.getDefiningOp();
  Block *block = place->getBlock();
  SmallVector<Value> work = {owned.place};
  llvm::SmallPtrSet<Operation *, 16> before;
  while (!work.empty()) {
    Operation *def = work.pop_back_val().getDefiningOp();
    if (def && def->getBlock() == block && before.insert(def).second)
      llvm::append_range(work, def->getOperands());
  }
  SmallVector<Operation *> after;
  for (Operation &op : block->without_terminator())
    if (!before.contains(&op))
      after.push_back(&op);
  Location loc = place->getLoc();
  int64_t share = (owned.extent + owners - 1) / owners;
  Value size = arith::ConstantIndexOp::create(b, loc, share);
  Value first = arith::MulIOp::create(b, loc, owner, size);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointAfter(place);
  // Indices before the first one are very large as unsigned numbers.
  Value within = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult,
                                       arith::SubIOp::create(b, loc, owned.place, first), size);
  auto branch = scf::IfOp::create(b, loc, within, /*withElse=*/false);
  for (Operation *op : after)
    op->moveBefore(branch.thenBlock()->getTerminator());
}

int64_t spreadLoops(Operation *op, ArrayRef<unsigned> independent, Value number, OpBuilder &b) {
  SmallVector<scf::ForOp> nest = perfectNest(op);
  Location loc = op->getLoc();
  int64_t count = 1;
  Value rest = number;
  for (unsigned i : llvm::reverse(independent)) {
    scf::ForOp loop = nest[i];
    int64_t trips = *getConstantIntValue(loop.getUpperBound());
    Value size = arith::ConstantIndexOp::create(b, loc, trips);
    loop.getInductionVar().replaceAllUsesWith(
        arith::RemUIOp::create(b, loc, rest, size).getResult());
    rest = arith::DivUIOp::create(b, loc, rest, size);
    count *= trips;
  }
  for (unsigned i : independent) {
    Block *body = nest[i].getBody();
    body->getTerminator()->erase();
    nest[i]->getBlock()->getOperations().splice(nest[i]->getIterator(), body->getOperations());
    nest[i].erase();
  }
  return count;
}

} // namespace tessera::codegen
