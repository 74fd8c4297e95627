//===- OverwriteBlocks.cpp - Write blocks over those read -----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   %y = for i = 0 to 4096 step 128 iter_args(%c = tensor.empty)
//     %x_i = extract_slice %x[i] [128]
//     %c_i = insert_slice f(%x_i) into %c[i] [128]
//
// Block i of %x is read in iteration i alone, before block i of %y is written. So %c
// may begin as %x, and %x_i be read from %c: what iteration i finds there is still that
// of %x. Then %x has no reader beside the loop, whose carry takes its bytes. The
// derivative of an attention so writes that by the query over that by the output.
//
// No two iterations may write the same elements. This holds if every loop around the
// insertion moves one of its offsets by at least the size of the block, and if each two
// insertions are apart in a dimension in all of their iterations.
//
//===----------------------------------------------------------------------===//

#include "OverwriteBlocks.h"

#include "tessera/Planning/Liveness.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tessera;

namespace {

/// An insertion into the carry.
struct Leaf {
  tensor::InsertSliceOp insert;
  SmallVector<scf::ForOp> loops; ///< around it, outermost first
};

struct Interval {
  int64_t begin, end;
};

/// A tensor that consecutive loops, and insertions between and inside of them, fill.
class FilledCarry {
public:
  /// `loop`: the first loop, whose initial value `index` is undefined.
  static std::optional<FilledCarry> of(scf::ForOp loop, unsigned index) {
    FilledCarry carry;
    if (!loop.getInitArgs()[index].getDefiningOp<tensor::EmptyOp>() || !carry.enter(loop, index))
      return std::nullopt;
    carry.follow(loop.getResult(index));
    if (!carry.writesOnce())
      return std::nullopt;
    return carry;
  }

  ArrayRef<Leaf> leaves() const { return found; }

private:
  /// Follows the carry of a loop to its yield.
  bool enter(scf::ForOp loop, unsigned index) {
    unsigned before = found.size();
    around.push_back(loop);
    OpOperand *end = follow(loop.getRegionIterArgs()[index]);
    around.pop_back();
    if (end && end->getOwner() == loop.getBody()->getTerminator() &&
        end->getOperandNumber() == index)
      return true;
    found.resize(before);
    return false;
  }

  /// Follows a value through insertions and loops; returns the first use that is neither, if the
  /// value has one use.
  OpOperand *follow(Value value) {
    while (value.hasOneUse()) {
      OpOperand &use = *value.use_begin();
      Operation *user = use.getOwner();
      auto insert = dyn_cast<tensor::InsertSliceOp>(user);
      auto inner = dyn_cast<scf::ForOp>(user);
      if (user->getBlock() != value.getParentBlock())
        return nullptr;
      if (insert && insert.getDest() == value && insert.hasUnitStride()) {
        found.push_back({insert, around});
        value = insert.getResult();
        continue;
      }
      if (!inner || use.getOperandNumber() < inner.getNumControlOperands() ||
          !enter(inner, use.getOperandNumber() - inner.getNumControlOperands()))
        return &use;
      value = inner.getResult(use.getOperandNumber() - inner.getNumControlOperands());
    }
    return nullptr;
  }

  static std::optional<int64_t> constant(OpFoldResult value) { return getConstantIntValue(value); }

  /// The elements that an insertion writes along a dimension, in all iterations of its loops.
  static std::optional<Interval> range(Leaf leaf, unsigned dim) {
    OpFoldResult offset = leaf.insert.getMixedOffsets()[dim];
    int64_t size = leaf.insert.getStaticSize(dim);
    if (std::optional<int64_t> begin = constant(offset))
      return Interval{*begin, *begin + size};
    for (scf::ForOp loop : leaf.loops)
      if (offset == OpFoldResult(loop.getInductionVar())) {
        std::optional<int64_t> from = constant(loop.getLowerBound()),
                               to = constant(loop.getUpperBound()), step = constant(loop.getStep());
        if (from && to && step && *from < *to)
          return Interval{*from, *from + (*to - 1 - *from) / *step * *step + size};
      }
    return std::nullopt;
  }

  bool writesOnce() const {
    for (Leaf leaf : found) {
      if (ShapedType::isDynamicShape(leaf.insert.getStaticSizes()))
        return false;
      for (scf::ForOp loop : leaf.loops) {
        std::optional<int64_t> step = constant(loop.getStep());
        bool moves = llvm::any_of(llvm::enumerate(leaf.insert.getMixedOffsets()),
                                  [&, loop = loop](auto item) mutable {
                                    return item.value() == OpFoldResult(loop.getInductionVar()) &&
                                           step && *step >= leaf.insert.getStaticSize(item.index());
                                  });
        if (!moves)
          return false;
      }
    }
    for (auto [i, one] : llvm::enumerate(found))
      for (Leaf other : ArrayRef(found).drop_front(i + 1))
        if (!areApart(one, other))
          return false;
    return true;
  }

  static bool areApart(Leaf one, Leaf other) {
    for (unsigned dim = 0; dim < one.insert.getDestType().getRank(); ++dim) {
      std::optional<Interval> a = range(one, dim), b = range(other, dim);
      if (a && b && (a->end <= b->begin || b->end <= a->begin))
        return true;
    }
    return false;
  }

  SmallVector<scf::ForOp> around;
  SmallVector<Leaf> found;
};

} // namespace

static bool isSameBlock(tensor::ExtractSliceOp read, tensor::InsertSliceOp insert) {
  return read.getMixedOffsets() == insert.getMixedOffsets() &&
         read.getMixedSizes() == insert.getMixedSizes() && read.hasUnitStride() &&
         read.getType() == insert.getSourceType();
}

/// The reads of `source` that may read the carry, with the insertions that replace what they read;
/// nothing if there are others from the loop on.
static SmallVector<std::pair<tensor::ExtractSliceOp, tensor::InsertSliceOp>>
readsFor(Value source, scf::ForOp loop, ArrayRef<Leaf> leaves) {
  SmallVector<std::pair<tensor::ExtractSliceOp, tensor::InsertSliceOp>> reads;
  Operation *made = source.getDefiningOp();
  if (!made || made->getBlock() != loop->getBlock() || dist::Liveness::isView(made) ||
      made->hasTrait<OpTrait::ConstantLike>() || isa<tensor::EmptyOp>(made))
    return {};
  for (Operation *user : source.getUsers()) {
    auto read = dyn_cast<tensor::ExtractSliceOp>(user);
    const auto *leaf = llvm::find_if(leaves, [&](Leaf leaf) {
      if (!read || read->getBlock() != leaf.insert->getBlock() || !isSameBlock(read, leaf.insert))
        return false;
      Operation *before = leaf.insert.getDest().getDefiningOp();
      return read->isBeforeInBlock(leaf.insert) && (!before || before->isBeforeInBlock(read));
    });
    if (leaf != leaves.end()) {
      reads.push_back({read, leaf->insert});
      continue;
    }
    Operation *here = loop->getBlock()->findAncestorOpInBlock(*user);
    if (!here || !here->isBeforeInBlock(loop) || dist::Liveness::isView(user))
      return {};
  }
  return reads;
}

static void overwriteIn(scf::ForOp loop, unsigned index) {
  std::optional<FilledCarry> carry = FilledCarry::of(loop, index);
  if (!carry)
    return;
  for (Leaf leaf : carry->leaves())
    for (auto read : leaf.insert->getBlock()->getOps<tensor::ExtractSliceOp>()) {
      Value source = read.getSource();
      if (source.getType() != loop.getInitArgs()[index].getType() ||
          !isSameBlock(read, leaf.insert))
        continue;
      auto reads = readsFor(source, loop, carry->leaves());
      if (reads.empty())
        continue;
      for (auto &[slice, insert] : reads)
        slice.getSourceMutable().assign(insert.getDest());
      loop.getInitArgsMutable()[index].assign(source);
      return;
    }
}

void codegen::overwriteBlocks(func::FuncOp function) {
  function.walk<WalkOrder::PreOrder>([](scf::ForOp loop) {
    for (unsigned index = 0; index < loop.getNumRegionIterArgs(); ++index)
      overwriteIn(loop, index);
  });
}
