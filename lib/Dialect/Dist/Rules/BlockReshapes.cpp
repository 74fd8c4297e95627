//===- BlockReshapes.cpp - Reshapes that move equal blocks ----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Dialect/Dist/Rules/BlockReshapes.h"

#include "Models.h"
#include "tessera/Dialect/Dist/IR/ValueShardings.h"
#include "tessera/Dialect/Dist/Rules/RuleBuilder.h"
#include "tessera/Dialect/Dist/Rules/Rules.h"
#include "tessera/Sharding/ReshardPlanner.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;
using namespace tessera::sharding;

std::optional<BlockReshape> dist::blockReshapeOf(Operation *op) {
  SmallVector<ReassociationIndices> groups;
  RankedTensorType large;
  bool expands = isa<tensor::ExpandShapeOp>(op);
  if (auto expand = dyn_cast<tensor::ExpandShapeOp>(op)) {
    groups = expand.getReassociationIndices();
    large = expand.getResultType();
  } else if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(op)) {
    groups = collapse.getReassociationIndices();
    large = collapse.getSrcType();
  }
  std::optional<BlockReshape> found;
  for (auto [dim, group] : llvm::enumerate(groups)) {
    if (group.size() == 1)
      continue;
    if (found || group.size() != 2)
      return std::nullopt;
    found = {op, expands, static_cast<int64_t>(dim), large.getDimSize(group[0]),
             large.getDimSize(group[1])};
  }
  return found;
}

ShardingRule dist::blockReshapeRule(const BlockReshape &reshape) {
  Operation *op = reshape.op;
  RuleBuilder builder(op);
  auto small =
      cast<RankedTensorType>((reshape.expands ? op->getOperand(0) : op->getResult(0)).getType());
  auto add = [&](bool isLarge, int64_t dim, int64_t factor) {
    if (isLarge == reshape.expands)
      builder.result(0, dim, factor);
    else
      builder.operand(0, dim, factor);
  };
  for (int64_t d = 0; d < small.getRank(); ++d) {
    if (d != reshape.dim) {
      int64_t factor = builder.factor(small.getDimSize(d));
      add(false, d, factor);
      add(true, d + (d > reshape.dim), factor);
      continue;
    }
    int64_t element = builder.factor(reshape.extent);
    int64_t block = builder.factor(reshape.blocks, FactorKind::replicate);
    // To the algebra the dimension consists of the blocks: its parts are as large as those of all
    // blocks together. The exchange in the op corrects which elements they hold.
    add(false, d, element);
    add(false, d, block);
    add(true, d, block);
    add(true, d + 1, element);
  }
  return builder.moves().take();
}

/// The sharding of a block along dimension `dim`, if the devices have `parts` of all blocks.
static TensorSharding ofBlock(const BlockReshape &reshape, TensorSharding parts) {
  parts.dims.erase(parts.dims.begin() + reshape.dim);
  return parts;
}

/// The devices' elements of block `block`, as a sharding of the whole dimension.
static TensorSharding inWhole(const BlockReshape &reshape, TensorSharding whole, int64_t block) {
  int64_t part = reshape.extent / sizeOf(whole.dims[reshape.dim]);
  whole.windows = {{reshape.dim, part, 0, part, 1, block * reshape.extent, 1, reshape.extent}};
  return canonical(std::move(whole));
}

/// The devices' elements of a block, derived from the sharding of the whole dimension.
static TensorSharding ofWhole(const BlockReshape &reshape, TensorSharding block, int64_t index) {
  int64_t part = reshape.blocks * reshape.extent / sizeOf(block.dims[reshape.dim]);
  block.windows = {{reshape.dim, part, -index * reshape.extent, part}};
  return canonical(std::move(block));
}

double dist::blockReshapeSeconds(const BlockReshape &reshape, const FactorAxes &axes,
                                 const Mesh &mesh, ReshardPlanner &planner) {
  ShardingRule rule = blockReshapeRule(reshape);
  TensorSharding whole =
      reshape.expands ? operandSharding(rule, 0, axes) : resultSharding(rule, 0, axes);
  int64_t devices = sizeOf(whole.dims[reshape.dim]);
  if (devices == 1)
    return 0;
  // One exchange moves all blocks. Of the k parts of a block that a device needs it holds those
  // between its first and its last: the device with the fewest of them communicates most.
  auto type = cast<RankedTensorType>(
      (reshape.expands ? reshape.op->getOperand(0) : reshape.op->getResult(0)).getType());
  int64_t fewest = reshape.blocks;
  for (int64_t device = 0; device < devices; ++device) {
    int64_t held = 0;
    for (int64_t block = 0; block < reshape.blocks; ++block)
      held += (block * devices + device) / reshape.blocks == device;
    fewest = std::min(fewest, held);
  }
  int64_t bytes = bytesPerElement(type.getElementType()) * (reshape.blocks - fewest);
  std::vector<int64_t> local = localShape(whole, type.getShape().vec());
  local[reshape.dim] = reshape.extent / devices;
  for (int64_t extent : local)
    bytes *= extent;
  Traffic traffic{bytes, bytes, 1, devices - 1};
  return planner.linksOf(mesh).seconds(mesh, whole.dims[reshape.dim], CollectiveKind::exchange,
                                       traffic);
}

/// Assembles a device's part of the dimension from its elements of the blocks.
static Value assembleBlocks(PartitionContext &context, const BlockReshape &reshape,
                            ArrayRef<Value> blocks) {
  OpBuilder &b = context.builder;
  Location loc = context.op->getLoc();
  RankedTensorType type = context.getLocalType(0);
  Value device = context.getDeviceIndex(context.getResultSharding(0).dims[reshape.dim]);
  Value first = arith::MulIOp::create(
      b, loc, device, arith::ConstantIndexOp::create(b, loc, type.getDimSize(reshape.dim)));
  Value init = tensor::EmptyOp::create(b, loc, type.getShape(), type.getElementType());
  SmallVector<AffineMap> maps(blocks.size() + 1, b.getMultiDimIdentityMap(type.getRank()));
  SmallVector<utils::IteratorType> iterators(type.getRank(), utils::IteratorType::parallel);
  auto select = [&](OpBuilder &body, Location at, ValueRange elements) {
    Value index = linalg::IndexOp::create(body, at, reshape.dim);
    index = arith::AddIOp::create(body, at, first, index);
    Value found = elements[0];
    for (size_t block = 1; block < blocks.size(); ++block) {
      Value begin =
          arith::ConstantIndexOp::create(body, at, static_cast<int64_t>(block) * reshape.extent);
      Value isThere = arith::CmpIOp::create(body, at, arith::CmpIPredicate::sge, index, begin);
      found = arith::SelectOp::create(body, at, isThere, elements[block], found);
    }
    linalg::YieldOp::create(body, at, found);
  };
  return linalg::GenericOp::create(b, loc, type, blocks, init, maps, iterators, select)
      .getResult(0);
}

Value dist::partitionBlockReshape(const BlockReshape &reshape, PartitionContext &context) {
  OpBuilder &b = context.builder;
  Location loc = reshape.op->getLoc();
  Value local = context.getOperand(0);
  TensorSharding source = context.getOperandSharding(0), target = context.getResultSharding(0);
  SmallVector<Value> blocks;
  if (reshape.expands) {
    auto global = cast<RankedTensorType>(reshape.op->getOperand(0).getType());
    for (int64_t block = 0; block < reshape.blocks; ++block)
      blocks.push_back(context.reshard(local, global, source, inWhole(reshape, source, block)));
    auto type = cast<RankedTensorType>(local.getType());
    Value joined = tensor::ConcatOp::create(b, loc, type, reshape.dim, blocks);
    return tensor::ExpandShapeOp::create(
        b, loc, context.getLocalType(0), joined,
        cast<tensor::ExpandShapeOp>(reshape.op).getReassociationIndices());
  }
  auto collapse = cast<tensor::CollapseShapeOp>(reshape.op);
  SmallVector<int64_t> shape(collapse.getResultType().getShape());
  shape[reshape.dim] = reshape.extent;
  TensorSharding has = ofBlock(reshape, source);
  SmallVector<int64_t> sizes(cast<RankedTensorType>(local.getType()).getShape());
  sizes[reshape.dim] = 1;
  for (int64_t block = 0; block < reshape.blocks; ++block) {
    SmallVector<int64_t> offsets(sizes.size(), 0), strides(sizes.size(), 1);
    offsets[reshape.dim] = block;
    Value slice = tensor::ExtractSliceOp::create(b, loc, local,
                                                 getAsIndexOpFoldResult(b.getContext(), offsets),
                                                 getAsIndexOpFoldResult(b.getContext(), sizes),
                                                 getAsIndexOpFoldResult(b.getContext(), strides));
    Value own = tensor::CollapseShapeOp::create(b, loc, slice, collapse.getReassociationIndices());
    blocks.push_back(context.reshard(own, collapse.getResultType().clone(shape), has,
                                     ofWhole(reshape, has, block)));
  }
  return assembleBlocks(context, reshape, blocks);
}
