//===- SinkSlices.cpp - Slice after the loop that stacks slices -----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A pipeline written as a rotating buffer stacks the results of its last stage:
//
//   for t:  y  = x[last]          x is cut over the stages: y is sent in each iteration
//           ys = ys with [t] = y
//   use ys[stages - 1 :]
//
// Instead, each device stacks its own block of x, which takes as much memory as ys. The
// used part is sliced from that stack after the loop, and sent once.
//
//===----------------------------------------------------------------------===//

#include "ComputeAtOwners.h"

#include "tessera/Dialect/Dist/Rules/OpShardings.h"
#include "tessera/Dialect/Dist/Rules/Rules.h"
#include "tessera/Sharding/Buffers.h"
#include "tessera/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

namespace tessera::dist {
#define GEN_PASS_DEF_DISTSINKSLICES
#include "tessera/Transforms/Passes.h.inc"
} // namespace tessera::dist

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;
using sharding::AxisList;
using sharding::TensorSharding;

namespace {

/// A carry of a loop that stacks slices of a cut dimension.
struct Stack {
  unsigned carry;                       ///< index among the loop's carries
  mutable tensor::ExtractSliceOp slice; // handles; their methods are not const
  mutable tensor::InsertSliceOp insert;
  FlatSymbolRefAttr mesh;
  TensorSharding blocks; ///< of the new carry
  int64_t numBlocks;     ///< of the sliced dimension, one per device that cuts it
  int64_t block, offset; ///< index of the slice's block, and its offset in the block
};

class SliceSinker {
public:
  explicit SliceSinker(const MeshTable &meshes) : meshes(meshes), shardings(meshes) {}

  void run(scf::ForOp loop) {
    SmallVector<Stack> stacks;
    for (unsigned carry = 0; carry < loop.getNumRegionIterArgs(); ++carry)
      if (std::optional<Stack> stack = match(loop, carry))
        stacks.push_back(std::move(*stack));
    if (!stacks.empty())
      rewrite(loop, stacks);
  }

private:
  std::optional<Stack> match(scf::ForOp loop, unsigned carry);
  /// Whether the stack of blocks takes at most as many bytes per device as that of slices.
  bool fits(const Stack &stack, const TensorSharding &before);
  void rewrite(scf::ForOp loop, ArrayRef<Stack> stacks);
  void stackBlocks(const Stack &stack, BlockArgument carried);
  void readBlocks(const Stack &stack, OpResult before, Value blocks);

  RankedTensorType stackedType(const Stack &stack) const {
    SmallVector<int64_t> shape{stack.numBlocks};
    llvm::append_range(shape, stack.insert.getDestType().getShape());
    return RankedTensorType::get(shape, stack.insert.getDestType().getElementType());
  }
  ShardingAttr attrOf(const Stack &stack, const TensorSharding &sharding) const {
    return ShardingAttr::get(stack.mesh, meshes.get(stack.mesh), sharding, stack.mesh.getContext());
  }
  /// Distributes an op such that its result has the given sharding. Each dimension must have one
  /// factor, or its axes on the first of several.
  template <typename Op> Op place(Op op, const Stack &stack, const TensorSharding &wanted) {
    sharding::ShardingRule rule = *getShardingRule(op);
    auto own = sharding::OpSharding::whole(rule);
    for (auto [dim, axes] : llvm::zip_equal(rule.results[0], wanted.dims))
      if (!axes.empty())
        own.factors[dim.factors.front()] = axes;
    setOpSharding(op, stack.mesh, meshes.get(stack.mesh), own);
    setSharding(op->getResult(0), attrOf(stack, wanted));
    return op;
  }

  const MeshTable &meshes;
  OpShardings shardings;
};

} // namespace

/// The slice that produces a value, possibly through reshapes, if each step has only one user.
static tensor::ExtractSliceOp sliceOf(Value value) {
  while (value.hasOneUse() &&
         isa_and_nonnull<tensor::CollapseShapeOp, tensor::ExpandShapeOp>(value.getDefiningOp()))
    value = value.getDefiningOp()->getOperand(0);
  return value.hasOneUse() ? value.getDefiningOp<tensor::ExtractSliceOp>() : nullptr;
}

/// Whether all elements of a value are interchangeable (undefined or equal), so that it can
/// initialize the new stack.
static bool isUniform(Value value) {
  DenseElementsAttr constant;
  return value.getDefiningOp<tensor::EmptyOp>() ||
         (matchPattern(value, m_Constant(&constant)) && constant.isSplat());
}

std::optional<Stack> SliceSinker::match(scf::ForOp loop, unsigned carry) {
  BlockArgument carried = loop.getRegionIterArg(carry);
  auto insert = loop.getYieldedValues()[carry].getDefiningOp<tensor::InsertSliceOp>();
  if (!insert || insert.getDest() != carried || !carried.hasOneUse() ||
      !insert.getResult().hasOneUse() || insert->getBlock() != loop.getBody() ||
      !isUniform(loop.getInitArgs()[carry]))
    return std::nullopt;
  tensor::ExtractSliceOp slice = sliceOf(insert.getSource());
  if (!slice || slice->getBlock() != loop.getBody() ||
      slice.getStaticSizes() != insert.getStaticSizes() || !slice.hasUnitStride() ||
      !insert.hasUnitStride() || ShapedType::isDynamicShape(slice.getStaticOffsets()) ||
      ShapedType::isDynamicShape(slice.getStaticSizes()))
    return std::nullopt;
  RankedTensorType type = slice.getSourceType(), stacked = insert.getDestType();
  for (int64_t d = 1; d < type.getRank(); ++d)
    if (slice.getStaticSizes()[d] != type.getDimSize(d))
      return std::nullopt;
  ShardingAttr own = getSharding(slice.getSource()), before = getSharding(loop.getResult(carry));
  if (type.getRank() == 0 || !own || !before || own.getMesh() != before.getMesh())
    return std::nullopt;
  TensorSharding cut = resolveVerified(own, meshes, type);
  const ShardedOp &sharded = shardings.of(slice);
  if (cut.dims[0].empty() || cut.isPartial() || !cut.windows.empty() ||
      llvm::any_of(sharded.sharding.factors, [&](const AxisList &axes) {
        return llvm::any_of(cut.dims[0], [&](const sharding::AxisRef &axis) {
          return sharding::overlapsAny(axes, axis);
        });
      }))
    return std::nullopt;
  // Dimensions that are only partly inserted must be whole, before and after.
  for (int64_t d = 1; d < type.getRank(); ++d)
    if (!cut.dims[d].empty() && slice.getStaticSizes()[d] != stacked.getDimSize(d))
      return std::nullopt;
  int64_t numBlocks = sharding::sizeOf(cut.dims[0]);
  if (type.getDimSize(0) % numBlocks != 0)
    return std::nullopt;
  int64_t size = type.getDimSize(0) / numBlocks, first = slice.getStaticOffsets()[0];
  Stack stack{carry, slice, insert, own.getMesh(), cut, numBlocks, first / size, first % size};
  if (stack.offset + slice.getStaticSizes()[0] > size)
    return std::nullopt;
  stack.blocks.dims.insert(stack.blocks.dims.begin() + 1, AxisList());
  return fits(stack, resolveVerified(before, meshes, stacked)) ? std::optional(stack)
                                                               : std::nullopt;
}

bool SliceSinker::fits(const Stack &stack, const TensorSharding &before) {
  auto elements = [](RankedTensorType type, const TensorSharding &sharding) {
    return localType(type, sharding).getNumElements();
  };
  return elements(stackedType(stack), stack.blocks) <=
         elements(cast<RankedTensorType>(stack.insert.getDestType()), before);
}

/// Takes the slice of each block, and stacks these slices.
void SliceSinker::stackBlocks(const Stack &stack, BlockArgument carried) {
  tensor::ExtractSliceOp slice = stack.slice;
  tensor::InsertSliceOp insert = stack.insert;
  OpBuilder b(insert);
  RankedTensorType type = slice.getSourceType();
  int64_t rank = type.getRank();
  SmallVector<int64_t> shape{stack.numBlocks, type.getDimSize(0) / stack.numBlocks};
  llvm::append_range(shape, type.getShape().drop_front());
  SmallVector<ReassociationIndices> groups{{0, 1}};
  for (int64_t d = 1; d < rank; ++d)
    groups.push_back({d + 1});
  auto blocks = place(tensor::ExpandShapeOp::create(
                          b, slice.getLoc(), RankedTensorType::get(shape, type.getElementType()),
                          slice.getSource(), groups),
                      stack, stack.blocks);
  SmallVector<OpFoldResult> zeros(rank + 1, b.getIndexAttr(0)), ones(rank + 1, b.getIndexAttr(1));
  SmallVector<OpFoldResult> sizes{b.getIndexAttr(stack.numBlocks)};
  llvm::append_range(sizes, slice.getMixedSizes());
  Value of = blocks.getResult();
  if (slice.getStaticSizes()[0] != shape[1]) {
    zeros[1] = b.getIndexAttr(stack.offset);
    of = place(tensor::ExtractSliceOp::create(b, slice.getLoc(), of, zeros, sizes, ones), stack,
               stack.blocks);
    zeros[1] = b.getIndexAttr(0);
  }
  SmallVector<OpFoldResult> offsets{b.getIndexAttr(0)};
  llvm::append_range(offsets, insert.getMixedOffsets());
  auto stacked =
      place(tensor::InsertSliceOp::create(b, insert.getLoc(), of, carried, offsets, sizes, ones),
            stack, stack.blocks);
  auto yield = cast<scf::YieldOp>(insert->getBlock()->getTerminator());
  yield.setOperand(stack.carry, stacked);
  Operation *next = insert;
  while (next != slice) {
    Operation *source = next->getOperand(0).getDefiningOp();
    next->erase();
    next = source;
  }
  slice.erase();
}

/// Reads the stacked slices. Users that slice the stack read only the required elements.
void SliceSinker::readBlocks(const Stack &stack, OpResult before, Value blocks) {
  auto read = [&](Operation *at, Value replaced, ArrayRef<OpFoldResult> offsets,
                  ArrayRef<OpFoldResult> sizes, ArrayRef<OpFoldResult> strides) {
    OpBuilder b(at);
    auto with = [&](int64_t first, ArrayRef<OpFoldResult> others) {
      SmallVector<OpFoldResult> all{b.getIndexAttr(first)};
      llvm::append_range(all, others);
      return all;
    };
    TensorSharding wanted = resolveVerified(getSharding(replaced), meshes, replaced.getType());
    auto slice = tensor::ExtractSliceOp::create(
        b, replaced.getLoc(), cast<RankedTensorType>(replaced.getType()), blocks,
        with(stack.block, offsets), with(1, sizes), with(1, strides));
    replaced.replaceAllUsesWith(place(slice, stack, wanted));
  };
  for (Operation *user : llvm::make_early_inc_range(before.getUsers())) {
    auto slice = dyn_cast<tensor::ExtractSliceOp>(user);
    if (!slice)
      continue;
    read(slice, slice.getResult(), slice.getMixedOffsets(), slice.getMixedSizes(),
         slice.getMixedStrides());
    slice.erase();
  }
  if (before.use_empty())
    return;
  OpBuilder b(before.getContext());
  SmallVector<OpFoldResult> sizes;
  auto type = cast<RankedTensorType>(before.getType());
  for (int64_t size : type.getShape())
    sizes.push_back(b.getIndexAttr(size));
  SmallVector<OpFoldResult> zeros(type.getRank(), b.getIndexAttr(0)),
      ones(type.getRank(), b.getIndexAttr(1));
  read(before.getOwner()->getNextNode(), before, zeros, sizes, ones);
}

void SliceSinker::rewrite(scf::ForOp loop, ArrayRef<Stack> stacks) {
  OpBuilder b(loop);
  SmallVector<ShardingAttr> results;
  for (Value result : loop.getResults())
    results.push_back(getSharding(result));
  for (const Stack &stack : stacks) {
    RankedTensorType type = stackedType(stack);
    Value init = loop.getInitArgs()[stack.carry];
    Operation *made;
    if (DenseElementsAttr constant; matchPattern(init, m_Constant(&constant)))
      made = place(arith::ConstantOp::create(b, init.getLoc(), constant.resizeSplat(type)), stack,
                   stack.blocks);
    else
      made =
          place(tensor::EmptyOp::create(b, init.getLoc(), type.getShape(), type.getElementType()),
                stack, stack.blocks);
    loop.getInitArgsMutable()[stack.carry].set(made->getResult(0));
    BlockArgument carried = loop.getRegionIterArg(stack.carry);
    carried.setType(type);
    stackBlocks(stack, carried);
    results[stack.carry] = attrOf(stack, stack.blocks);
  }
  // Result types are fixed: a new loop takes over the body.
  auto replaced = scf::ForOp::create(b, loop.getLoc(), loop.getLowerBound(), loop.getUpperBound(),
                                     loop.getStep(), loop.getInitArgs());
  replaced->setAttrs(loop->getAttrs());
  replaced.getRegion().takeBody(loop.getRegion());
  setResultShardings(replaced, results);
  for (OpResult result : loop.getResults())
    if (auto stack = llvm::find_if(
            stacks, [&](const Stack &each) { return each.carry == result.getResultNumber(); });
        stack != stacks.end())
      readBlocks(*stack, result, replaced.getResult(stack->carry));
    else
      result.replaceAllUsesWith(replaced.getResult(result.getResultNumber()));
  loop.erase();
}

namespace {
struct DistSinkSlices : dist::impl::DistSinkSlicesBase<DistSinkSlices> {
  void runOnOperation() override {
    MeshTable meshes(getOperation());
    SliceSinker sinker(meshes);
    SmallVector<scf::ForOp> loops;
    for (func::FuncOp function : getOperation().getOps<func::FuncOp>())
      if (!isLocalView(function))
        function.walk([&](scf::ForOp loop) { loops.push_back(loop); });
    for (scf::ForOp loop : loops)
      sinker.run(loop);
    for (func::FuncOp function : getOperation().getOps<func::FuncOp>())
      if (!isLocalView(function))
        computeAtOwners(function, meshes);
  }
};
} // namespace
