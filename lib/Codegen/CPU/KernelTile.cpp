//===- KernelTile.cpp - Groups of ops in one loop over their tiles --------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Kernels/KernelGroup.h"
#include "CpuStages.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Interfaces/TilingInterface.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

namespace tessera::codegen {
namespace {

/// The share of the first-level cache for the tensors of a tile.
constexpr int64_t kGroupTileBytes = 24 << 10;
/// A single op is cut only to distribute it over threads: the least size of a piece.
constexpr int64_t kTaskBytes = 128 << 10;

/// Builds the loop nest of one group.
class GroupTiler {
public:
  GroupTiler(const KernelGroup &group, ArrayRef<int64_t> sizes, Operation *before)
      : b(before), loc(before->getLoc()), group(group), sizes(sizes),
        offsets(sizes.size(), b.getIndexAttr(0)) {}

  /// Returns false, without changes, if an op could not be cut.
  bool run();

private:
  /// A member's result with readers outside, and the tensor in which it is gathered.
  struct Export {
    OpResult result;
    /// The init of the first of a chain of in-place updates within the group.
    OpOperand *originInit;
    /// The initial value of the gathered tensor; a fill is done tile by tile.
    Value start;
  };

  bool findExports();
  Value fillOf(OpOperand *init) const;
  SmallVector<Value> loops(unsigned c, SmallVector<Value> carried);
  SmallVector<Value> tile(SmallVector<Value> carried);
  Value slice(Value tensor, ArrayRef<OpFoldResult> at, ArrayRef<OpFoldResult> extent);

  OpBuilder b;
  Location loc;
  const KernelGroup &group;
  ArrayRef<int64_t> sizes;
  SmallVector<OpFoldResult> offsets;
  SmallVector<int64_t> current = SmallVector<int64_t>(sizes); ///< of the tile being built
  SmallVector<Export> exports;
  bool good = true, taskLoopPlaced = false;
};

/// The fill value of a member's init, if its tiles can be filled one by one, each visited once.
Value GroupTiler::fillOf(OpOperand *init) const {
  auto fill = init->get().getDefiningOp<linalg::GenericOp>();
  if (!fill || group.contains(fill))
    return {};
  for (const GroupMember &member : group.members)
    if (member.op == init->getOwner() && KernelGroup::isParallel(member))
      return filledScalar(fill);
  return {};
}

bool GroupTiler::findExports() {
  for (const GroupMember &member : group.members) {
    linalg::GenericOp op = member.op;
    for (OpResult result : op->getResults()) {
      if (llvm::all_of(result.getUsers(), [&](Operation *user) { return group.contains(user); }))
        continue;
      Export entry{result, op.getDpsInitOperand(result.getResultNumber()), Value()};
      while (Operation *def = entry.originInit->get().getDefiningOp()) {
        if (!group.contains(def) || !entry.originInit->get().hasOneUse())
          break;
        auto number = cast<OpResult>(entry.originInit->get()).getResultNumber();
        entry.originInit = cast<linalg::GenericOp>(def).getDpsInitOperand(number);
      }
      if (Operation *def = entry.originInit->get().getDefiningOp(); def && group.contains(def))
        return false;
      entry.start = entry.originInit->get();
      if (fillOf(entry.originInit))
        entry.start = entry.start.getDefiningOp<linalg::GenericOp>().getOutputs()[0];
      exports.push_back(entry);
    }
  }
  return true;
}

Value GroupTiler::slice(Value tensor, ArrayRef<OpFoldResult> at, ArrayRef<OpFoldResult> extent) {
  SmallVector<OpFoldResult> steps(at.size(), b.getIndexAttr(1));
  return tensor::ExtractSliceOp::create(b, loc, tensor, at, extent, steps);
}

bool GroupTiler::run() {
  if (!findExports())
    return false;
  SmallVector<Value> carried;
  for (const Export &entry : exports)
    carried.push_back(entry.start);
  Operation *before = &*b.getInsertionPoint();
  // A marker for undoing.
  auto mark = arith::ConstantIndexOp::create(b, loc, 0);
  SmallVector<Value> results = loops(0, carried);
  if (!good) {
    for (Operation *op = before->getPrevNode(); op != mark; op = before->getPrevNode())
      op->erase();
    return false;
  }
  for (auto [entry, value] : llvm::zip_equal(exports, results))
    entry.result.replaceUsesWithIf(value,
                                   [&](OpOperand &use) { return !group.contains(use.getOwner()); });
  // Without duplicates, and without those erased with the members.
  llvm::SmallSetVector<Operation *, 8> fills;
  for (const GroupMember &member : group.members)
    for (Value init : linalg::GenericOp(member.op).getOutputs())
      if (Operation *fill = init.getDefiningOp(); fill && !group.contains(fill))
        fills.insert(fill);
  for (const GroupMember &member : llvm::reverse(group.members))
    member.op->erase();
  for (Operation *fill : fills)
    if (isOpTriviallyDead(fill))
      fill->erase();
  return true;
}

SmallVector<Value> GroupTiler::loops(unsigned c, SmallVector<Value> carried) {
  if (c == sizes.size())
    return tile(carried);
  int64_t trips = group.trips[c], size = sizes[c];
  if (size == trips) {
    offsets[c] = b.getIndexAttr(0);
    current[c] = size;
    return loops(c + 1, carried);
  }
  bool tasks = !taskLoopPlaced && group.isParallel(c);
  taskLoopPlaced = true;
  int64_t main = trips / size * size;
  // The remainder is a loop of one trip, so that tasks can skip it.
  for (auto [from, to] : {std::pair(int64_t(0), main), std::pair(main, trips)}) {
    if (from == to)
      continue;
    auto loop = scf::ForOp::create(b, loc, arith::ConstantIndexOp::create(b, loc, from),
                                   arith::ConstantIndexOp::create(b, loc, to),
                                   arith::ConstantIndexOp::create(b, loc, size), carried);
    if (tasks)
      loop->setAttr(kTaskLoopAttr, b.getUnitAttr());
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    offsets[c] = loop.getInductionVar();
    current[c] = std::min(size, to - from);
    SmallVector<Value> results = loops(c + 1, SmallVector<Value>(loop.getRegionIterArgs()));
    if (!results.empty())
      scf::YieldOp::create(b, loc, results);
    carried = SmallVector<Value>(loop.getResults());
  }
  return carried;
}

SmallVector<Value> GroupTiler::tile(SmallVector<Value> carried) {
  DenseMap<Value, Value> tiles; // a member's result -> its tile
  for (const GroupMember &member : group.members) {
    linalg::GenericOp op = member.op;
    SmallVector<OpFoldResult> at, extent;
    for (int64_t range : op.getStaticLoopRanges()) {
      at.push_back(b.getIndexAttr(0));
      extent.push_back(b.getIndexAttr(range));
    }
    for (auto [c, loop] : llvm::enumerate(member.loopOf)) {
      at[loop] = offsets[c];
      extent[loop] = b.getIndexAttr(current[c]);
    }
    auto tiling = cast<TilingInterface>(op.getOperation());
    FailureOr<TilingResult> tiled = tiling.getTiledImplementation(b, at, extent);
    if (failed(tiled) || tiled->tiledOps.size() != 1) {
      good = false;
      return carried;
    }
    auto piece = cast<linalg::GenericOp>(tiled->tiledOps.front());
    // Slices of other members are those members' tiles.
    for (OpOperand &operand : piece->getOpOperands()) {
      Value original = op->getOperand(operand.getOperandNumber());
      if (Value tile = tiles.lookup(original))
        operand.set(tile);
    }
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(piece);
    for (OpResult result : op->getResults()) {
      OpOperand *init = piece.getDpsInitOperand(result.getResultNumber());
      OpOperand *originalInit = op.getDpsInitOperand(result.getResultNumber());
      const Export *mine = nullptr;
      size_t index = 0;
      for (auto [i, entry] : llvm::enumerate(exports))
        if (entry.originInit == originalInit) {
          mine = &entry;
          index = i;
        }
      auto type = cast<RankedTensorType>(init->get().getType());
      Value fill = fillOf(originalInit);
      if (mine) {
        SmallVector<OpFoldResult> position, shape;
        if (failed(tiling.getResultTilePosition(b, result.getResultNumber(), at, extent, position,
                                                shape))) {
          good = false;
          return carried;
        }
        init->set(slice(carried[index], position, shape));
      } else if (fill || originalInit->get().getDefiningOp<tensor::EmptyOp>()) {
        init->set(tensor::EmptyOp::create(b, loc, type.getShape(), type.getElementType()));
      }
      if (fill)
        init->set(linalg::FillOp::create(b, loc, fill, init->get()).getResult(0));
      tiles[result] = piece->getResult(result.getResultNumber());
    }
    // Slices of whole members would keep these alive.
    for (Operation *unused : llvm::reverse(tiled->generatedSlices))
      if (unused->use_empty())
        unused->erase();
  }
  for (auto [i, entry] : llvm::enumerate(exports)) {
    auto op = cast<linalg::GenericOp>(entry.result.getOwner());
    const GroupMember *member =
        llvm::find_if(group.members, [&](const GroupMember &m) { return m.op == op; });
    SmallVector<OpFoldResult> at, extent, position, shape;
    for (int64_t range : op.getStaticLoopRanges()) {
      at.push_back(b.getIndexAttr(0));
      extent.push_back(b.getIndexAttr(range));
    }
    for (auto [c, loop] : llvm::enumerate(member->loopOf)) {
      at[loop] = offsets[c];
      extent[loop] = b.getIndexAttr(current[c]);
    }
    auto tiling = cast<TilingInterface>(op.getOperation());
    if (failed(tiling.getResultTilePosition(b, entry.result.getResultNumber(), at, extent, position,
                                            shape))) {
      good = false;
      return carried;
    }
    SmallVector<OpFoldResult> steps(position.size(), b.getIndexAttr(1));
    carried[i] = tensor::InsertSliceOp::create(b, loc, tiles[entry.result], carried[i], position,
                                               shape, steps);
  }
  return carried;
}

} // namespace

void groupAndTile(func::FuncOp kernel, const KernelTarget &target) {
  SmallVector<KernelGroup> groups;
  bool open = false;
  for (Operation &op : kernel.getBody().front()) {
    auto generic = dyn_cast<linalg::GenericOp>(op);
    if (generic && KernelGroup::canHold(generic)) {
      if (open && groups.back().join(generic))
        continue;
      // An op that does not depend on the open group can stay before it.
      if (open && groups.back().members.size() > 1 && !groups.back().feeds(generic)) {
        groups.insert(std::prev(groups.end()), KernelGroup(generic));
        continue;
      }
      groups.emplace_back(generic);
      open = true;
    } else if (open && groups.back().feeds(&op)) {
      open = false;
    }
  }
  for (KernelGroup &group : groups) {
    bool alone = group.members.size() == 1;
    // A single op gains nothing from the cache: only parallel loops are worth cutting.
    if (alone)
      group.restrict([&](unsigned c) { return group.isParallel(c); });
    if (group.trips.empty())
      continue;
    SmallVector<int64_t> sizes = group.tileSizes(alone ? kTaskBytes : kGroupTileBytes);
    if (llvm::equal(sizes, group.trips))
      continue;
    GroupTiler(group, sizes, group.members.back().op).run();
  }

  // Slices of the whole and offsets of zero fold away.
  RewritePatternSet patterns(kernel.getContext());
  tensor::ExtractSliceOp::getCanonicalizationPatterns(patterns, kernel.getContext());
  affine::AffineApplyOp::getCanonicalizationPatterns(patterns, kernel.getContext());
  (void)applyPatternsGreedily(kernel, std::move(patterns));
}

} // namespace tessera::codegen
