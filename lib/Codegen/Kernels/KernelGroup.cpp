//===- KernelGroup.cpp - Ops that can share an outer loop -----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelGroup.h"

#include "tessera/Codegen/Kernels/DeadInit.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace tessera::codegen {

/// Larger tiles do not stay in a core's share of the last-level cache between two ops. Below this a
/// temporary of a tile costs less than one of the whole tensor.
static constexpr int64_t kMaxTileBytes = 2 << 20;
/// The least width of a tile cut along its contiguous dimension; a single op, which gains nothing
/// from the cache, keeps longer runs.
static constexpr int64_t kMinStrip = 64;
static constexpr int64_t kMinStripAlone = 512;
/// Rows of a contraction that share each load of the other operand.
static constexpr int64_t kMinReuseRows = 12;

static bool isLinear(AffineExpr expr) {
  return !expr.walk([](AffineExpr e) {
                bool linear =
                    isa<AffineDimExpr, AffineConstantExpr>(e) ||
                    e.getKind() == AffineExprKind::Add ||
                    (e.getKind() == AffineExprKind::Mul && e.isSymbolicOrConstant() == false);
                return linear ? WalkResult::advance() : WalkResult::interrupt();
              })
              .wasInterrupted();
}

Value filledScalar(linalg::GenericOp op) {
  if (op.getNumResults() != 1 || !llvm::hasSingleElement(*op.getBody()) ||
      op.getNumParallelLoops() != op.getNumLoops() || !isInitDead(op, *op.getDpsInitOperand(0)))
    return {};
  Value yielded = op.getBody()->getTerminator()->getOperand(0);
  if (auto argument = dyn_cast<BlockArgument>(yielded);
      argument && argument.getOwner() == op.getBody()) {
    yielded = op->getOperand(argument.getArgNumber());
    return isa<ShapedType>(yielded.getType()) ? Value() : yielded;
  }
  if (op.getRegion().isAncestor(yielded.getParentRegion()))
    return {};
  return yielded;
}

bool KernelGroup::canHold(linalg::GenericOp op) {
  if (!op.hasPureTensorSemantics() || op.getNumLoops() == 0 || filledScalar(op))
    return false;
  for (AffineMap map : op.getIndexingMapsArray())
    if (!llvm::all_of(map.getResults(), isLinear))
      return false;
  for (OpOperand &init : op.getDpsInitsMutable())
    if (!op.getMatchingIndexingMap(&init).isProjectedPermutation())
      return false;
  for (int64_t range : op.getStaticLoopRanges())
    if (ShapedType::isDynamic(range) || range == 0)
      return false;
  return true;
}

/// Tensors that the body reads at computed indices: whole for every tile.
static llvm::SmallSetVector<Value, 4> capturedBy(linalg::GenericOp op) {
  llvm::SmallSetVector<Value, 4> captured;
  op.getBody()->walk([&](Operation *inner) {
    for (Value operand : inner->getOperands())
      if (isa<TensorType>(operand.getType()))
        captured.insert(operand);
  });
  return captured;
}

/// Whether one of two ops reads a tensor as a whole that the other writes.
static bool readsWhole(linalg::GenericOp reader, linalg::GenericOp writer) {
  return llvm::any_of(capturedBy(reader), [&](Value tensor) {
    return tensor.getDefiningOp() == writer || llvm::is_contained(writer.getOutputs(), tensor);
  });
}

KernelGroup::KernelGroup(linalg::GenericOp op) {
  GroupMember member{op, {}};
  for (auto [loop, range] : llvm::enumerate(op.getStaticLoopRanges()))
    if (range > 1) {
      member.loopOf.push_back(loop);
      trips.push_back(range);
    }
  members.push_back(member);
}

bool KernelGroup::contains(Operation *op) const {
  return llvm::any_of(members, [&](const GroupMember &member) { return member.op == op; });
}

bool KernelGroup::feeds(Operation *op) const {
  return op
      ->walk([&](Operation *inner) {
        for (Value operand : inner->getOperands())
          if (operand.getDefiningOp() && contains(operand.getDefiningOp()))
            return WalkResult::interrupt();
        return WalkResult::advance();
      })
      .wasInterrupted();
}

bool KernelGroup::isParallel(const GroupMember &member) {
  linalg::GenericOp op = member.op;
  return llvm::all_of(member.loopOf, [&](int loop) {
    return op.getIteratorTypesArray()[loop] == utils::IteratorType::parallel;
  });
}

bool KernelGroup::isParallel(unsigned c) const {
  return llvm::all_of(members, [&](const GroupMember &member) {
    linalg::GenericOp op = member.op;
    return op.getIteratorTypesArray()[member.loopOf[c]] == utils::IteratorType::parallel;
  });
}

void KernelGroup::restrict(function_ref<bool(unsigned)> keep) {
  SmallVector<unsigned> kept;
  for (unsigned c = 0; c < trips.size(); ++c)
    if (keep(c))
      kept.push_back(c);
  auto take = [&](auto &list) {
    for (auto [i, c] : llvm::enumerate(kept))
      list[i] = list[c];
    list.resize(kept.size());
  };
  take(trips);
  for (GroupMember &member : members)
    take(member.loopOf);
}

/// The loop that is the whole of result `position` of `map`, or -1.
static int plainLoop(AffineMap map, unsigned position) {
  auto dim = dyn_cast<AffineDimExpr>(map.getResult(position));
  return dim ? int(dim.getPosition()) : -1;
}

bool KernelGroup::join(linalg::GenericOp op) {
  for (const GroupMember &member : members)
    if (readsWhole(op, member.op) || readsWhole(member.op, op))
      return false;
  SmallVector<int64_t, 4> ranges = op.getStaticLoopRanges();
  SmallVector<int> loopOf(trips.size(), -1);
  llvm::SmallBitVector alive(trips.size(), true);
  auto link = [&](const GroupMember &member, int theirs, int ours) {
    if (theirs < 0 || ours < 0)
      return;
    const int *found = llvm::find(member.loopOf, theirs);
    if (found == member.loopOf.end())
      return;
    unsigned c = found - member.loopOf.begin();
    if (ranges[ours] != trips[c] || (loopOf[c] >= 0 && loopOf[c] != ours))
      alive.reset(c);
    else if (loopOf[c] < 0 && !llvm::is_contained(loopOf, ours))
      loopOf[c] = ours;
  };

  // Tensors between the ops take precedence over tensors that both read.
  for (bool flow : {true, false})
    for (const GroupMember &member : members) {
      linalg::GenericOp other = member.op;
      for (OpOperand &use : op->getOpOperands()) {
        AffineMap map = op.getMatchingIndexingMap(&use);
        if (flow && use.get().getDefiningOp() == other) {
          AffineMap result = other.getIndexingMapMatchingResult(cast<OpResult>(use.get()));
          for (unsigned q = 0; q < map.getNumResults(); ++q)
            link(member, plainLoop(result, q), plainLoop(map, q));
        }
        if (flow || op.isDpsInit(&use))
          continue;
        for (OpOperand *input : other.getDpsInputOperands())
          if (input->get() == use.get())
            for (unsigned q = 0; q < map.getNumResults(); ++q)
              link(member, plainLoop(other.getMatchingIndexingMap(input), q), plainLoop(map, q));
      }
    }

  // Every tensor between a member and the op must be needed only at the same tile.
  for (const GroupMember &member : members) {
    linalg::GenericOp other = member.op;
    for (OpOperand &use : op->getOpOperands()) {
      if (use.get().getDefiningOp() != other)
        continue;
      AffineMap map = op.getMatchingIndexingMap(&use);
      AffineMap result = other.getIndexingMapMatchingResult(cast<OpResult>(use.get()));
      for (unsigned c = 0; c < trips.size(); ++c) {
        bool found = false, elsewhere = false;
        for (unsigned q = 0; q < map.getNumResults(); ++q) {
          bool here = plainLoop(result, q) == member.loopOf[c] && plainLoop(map, q) == loopOf[c];
          found |= here;
          elsewhere |= !here && loopOf[c] >= 0 && map.getResult(q).isFunctionOfDim(loopOf[c]);
        }
        if (!found || elsewhere)
          alive.reset(c);
      }
    }
  }
  for (unsigned c = 0; c < trips.size(); ++c)
    if (loopOf[c] < 0)
      alive.reset(c);
  if (alive.none())
    return false;

  KernelGroup wider = *this;
  wider.members.push_back({op, loopOf});
  wider.restrict([&](unsigned c) { return alive.test(c); });
  SmallVector<int64_t> least(wider.trips.size(), 1);
  for (unsigned c = 0; c < least.size(); ++c)
    if (wider.isContiguous(c))
      least[c] = std::min(kMinStrip, wider.trips[c]);
  if (wider.footprint(least) > kMaxTileBytes)
    return false;
  // The order of the biggest op is the order of memory.
  *this = std::move(wider);
  return true;
}

int64_t KernelGroup::footprint(ArrayRef<int64_t> sizes) const {
  int64_t bytes = 0;
  llvm::SmallPtrSet<Value, 16> seen;
  for (const GroupMember &member : members) {
    linalg::GenericOp op = member.op;
    SmallVector<int64_t, 4> ranges = op.getStaticLoopRanges();
    for (auto [c, loop] : llvm::enumerate(member.loopOf))
      ranges[loop] = sizes[c];
    auto add = [&](Value tensor, AffineMap map) {
      auto type = dyn_cast<RankedTensorType>(tensor.getType());
      if (!type || !seen.insert(tensor).second)
        return;
      int64_t elements = 1;
      for (AffineExpr expr : map.getResults()) {
        // The span of a window is at most the sum of its loops' ranges.
        int64_t extent = 0;
        for (unsigned loop = 0; loop < ranges.size(); ++loop)
          if (expr.isFunctionOfDim(loop))
            extent += ranges[loop];
        elements *= std::max<int64_t>(1, extent);
      }
      bytes +=
          elements *
          (type.getElementType().isIndex() ? 8 : std::max(8u, type.getElementTypeBitWidth()) / 8);
    };
    for (OpOperand *input : op.getDpsInputOperands())
      add(input->get(), op.getMatchingIndexingMap(input));
    for (OpResult result : op->getResults())
      add(result, op.getIndexingMapMatchingResult(result));
  }
  return bytes;
}

unsigned KernelGroup::reuseInside(unsigned c) const {
  unsigned most = 0;
  bool contraction = false;
  for (const GroupMember &member : members) {
    linalg::GenericOp op = member.op;
    if (op.getNumReductionLoops() == 0)
      continue;
    auto reuses = [&](unsigned loop) {
      return llvm::any_of(op.getDpsInputOperands(), [&](OpOperand *input) {
        AffineMap map = op.getMatchingIndexingMap(input);
        return isa<RankedTensorType>(input->get().getType()) && map.getNumResults() > 1 &&
               !map.isFunctionOfDim(loop);
      });
    };
    if (!reuses(member.loopOf[c]))
      continue;
    contraction = true;
    unsigned count = 0;
    for (unsigned inner = c + 1; inner < trips.size(); ++inner)
      count += reuses(member.loopOf[inner]) && trips[inner] >= 4;
    most = std::max(most, count);
  }
  return contraction ? most : 2;
}

bool KernelGroup::isContiguous(unsigned c) const {
  for (const GroupMember &member : members) {
    linalg::GenericOp op = member.op;
    for (AffineMap map : op.getIndexingMapsArray())
      if (map.getNumResults() &&
          map.getResult(map.getNumResults() - 1).isFunctionOfDim(member.loopOf[c]))
        return map.getNumResults() > 1;
  }
  return false;
}

SmallVector<int64_t> KernelGroup::tileSizes(int64_t limit) const {
  SmallVector<int64_t> sizes(trips);
  for (unsigned c = 0; c < trips.size() && footprint(sizes) > limit; ++c) {
    sizes[c] = 1;
    int64_t fixed = footprint(sizes);
    // A contraction needs two loops for register blocking; if only one is left inside, keeps
    // several rows of this one.
    int64_t strip = members.size() > 1 ? kMinStrip : kMinStripAlone;
    int64_t least = isContiguous(c) ? strip : reuseInside(c) < 2 ? kMinReuseRows : 1;
    if (fixed < limit) {
      sizes[c] = 2;
      int64_t each = std::max<int64_t>(1, footprint(sizes) - fixed);
      least = std::max(least, 1 + (limit - fixed) / each);
    }
    sizes[c] = std::min(trips[c], least);
    // A nearby divisor avoids a second copy of the code.
    for (int64_t size = sizes[c]; size > sizes[c] / 2 && size > 1; --size)
      if (trips[c] % size == 0) {
        sizes[c] = size;
        break;
      }
    if (fixed < limit)
      break;
  }
  return sizes;
}

} // namespace tessera::codegen
