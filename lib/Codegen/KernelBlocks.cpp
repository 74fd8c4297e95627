//===- KernelBlocks.cpp - A kernel as calls for blocks of rows ------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelBlocks.h"

#include "tessera/Dialect/Dist/IR/ValueShardings.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include <numeric>

using namespace mlir;
using namespace tessera;
using namespace tessera::codegen;

/// What every block computes again has at most this share of the argument's elements.
static constexpr int64_t kMostRepeated = 8;
/// Pointers of kernels are aligned.
static constexpr int64_t kAlignment = 64;

static RankedTensorType tensorOf(Value value) {
  return dyn_cast<RankedTensorType>(value.getType());
}

/// The first dimension with more than one element; the rank if there is none.
static unsigned leadingDim(RankedTensorType type) {
  return llvm::find_if(type.getShape(), [](int64_t extent) { return extent != 1; }) -
         type.getShape().begin();
}

bool KernelBlocks::mark(Value value, unsigned dim) {
  auto [it, isNew] = dims.try_emplace(value, dim);
  changed |= isNew;
  return it->second == dim;
}

bool KernelBlocks::visitLinalg(linalg::LinalgOp op) {
  auto known = loops.find(op);
  for (OpOperand &operand : op->getOpOperands()) {
    auto it = dims.find(operand.get());
    if (it == dims.end())
      continue;
    auto dim = dyn_cast<AffineDimExpr>(op.getMatchingIndexingMap(&operand).getResult(it->second));
    if (!dim || (known != loops.end() && known->second != dim.getPosition()))
      return false;
    if (known == loops.end()) {
      known = loops.try_emplace(op, dim.getPosition()).first;
      changed = true;
    }
  }
  for (OpResult result : op->getResults())
    if (auto it = dims.find(result); it != dims.end())
      if (!mark(op.getDpsInitOperand(result.getResultNumber())->get(), it->second))
        return false;
  if (known == loops.end())
    return true;
  unsigned loop = known->second;
  for (OpOperand &operand : op->getOpOperands()) {
    if (!tensorOf(operand.get()))
      continue;
    AffineMap map = op.getMatchingIndexingMap(&operand);
    std::optional<unsigned> found;
    for (auto [position, expr] : llvm::enumerate(map.getResults())) {
      if (!expr.isFunctionOfDim(loop))
        continue;
      if (found || !isa<AffineDimExpr>(expr))
        return false;
      found = position;
    }
    if (found && !mark(operand.get(), *found))
      return false;
    if (found && op.isDpsInit(&operand) && !mark(op.getTiedOpResult(&operand), *found))
      return false;
  }
  return true;
}

/// Contiguous blocks of `source` are blocks of `result`.
bool KernelBlocks::visitReshape(Value source, Value result, ArrayRef<ReassociationIndices> groups,
                                bool expands) {
  // The leading dimension of a group of several holds blocks of the merged one.
  auto leadOf = [&](ArrayRef<int64_t> group, Value split) -> unsigned {
    for (int64_t dim : group)
      if (tensorOf(split).getDimSize(dim) != 1)
        return dim;
    return group.front();
  };
  Value split = expands ? result : source, merged = expands ? source : result;
  if (auto it = dims.find(split); it != dims.end()) {
    unsigned dim = it->second;
    for (auto [position, group] : llvm::enumerate(groups))
      if (llvm::is_contained(group, dim) &&
          (leadOf(group, split) != dim || !mark(merged, position)))
        return false;
  }
  if (auto it = dims.find(merged); it != dims.end())
    return mark(split, leadOf(groups[it->second], split));
  return true;
}

/// A slice that takes all of the dimension.
bool KernelBlocks::visitSlice(Operation *op, Value whole, Value part) {
  if (tensorOf(whole).getRank() != tensorOf(part).getRank())
    return !dims.contains(whole) && !dims.contains(part);
  for (auto [from, to] : {std::pair(whole, part), std::pair(part, whole)})
    if (auto it = dims.find(from); it != dims.end()) {
      unsigned dim = it->second;
      if (tensorOf(whole).getDimSize(dim) != tensorOf(part).getDimSize(dim) || !mark(to, dim))
        return false;
    }
  return true;
}

bool KernelBlocks::visit(Operation *op) {
  if (auto linalg = dyn_cast<linalg::LinalgOp>(op))
    return visitLinalg(linalg);
  if (auto expand = dyn_cast<tensor::ExpandShapeOp>(op))
    return visitReshape(expand.getSrc(), expand.getResult(), expand.getReassociationIndices(),
                        true);
  if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(op))
    return visitReshape(collapse.getSrc(), collapse.getResult(), collapse.getReassociationIndices(),
                        false);
  if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op))
    return visitSlice(op, slice.getSource(), slice.getResult());
  if (auto insert = dyn_cast<tensor::InsertSliceOp>(op)) {
    if (!visitSlice(op, insert.getDest(), insert.getSource()))
      return false;
    for (auto [from, to] : {std::pair(insert.getDest(), insert.getResult()),
                            std::pair(insert.getResult(), insert.getDest())})
      if (auto it = dims.find(from); it != dims.end()) {
        unsigned dim = it->second;
        if (!mark(to, dim))
          return false;
      }
    return true;
  }
  return true;
}

/// Whether the op computes its block from blocks and from whole operands.
bool KernelBlocks::isConsistent(Operation *op) const {
  auto isMarked = [&](Value value) { return dims.contains(value); };
  bool any = llvm::any_of(op->getOperands(), isMarked) || llvm::any_of(op->getResults(), isMarked);
  // What a body reads at computed indices, and the index itself, count from the whole's start.
  bool readsMarked =
      op->walk([&](Operation *inner) {
          if (inner == op)
            return WalkResult::advance();
          auto index = dyn_cast<linalg::IndexOp>(inner);
          auto loop = loops.find(op);
          bool counts = index && loop != loops.end() && index.getDim() == loop->second;
          return counts || llvm::any_of(inner->getOperands(), isMarked) ? WalkResult::interrupt()
                                                                        : WalkResult::advance();
        }).wasInterrupted();
  if (readsMarked)
    return false;
  if (!any)
    return true;
  if (auto linalg = dyn_cast<linalg::LinalgOp>(op)) {
    unsigned loop = loops.lookup(op);
    if (linalg.getIteratorTypesArray()[loop] != utils::IteratorType::parallel)
      return false;
    for (OpOperand &operand : op->getOpOperands())
      if (isMarked(operand.get()) && !linalg.getMatchingIndexingMap(&operand).isFunctionOfDim(loop))
        return false;
    return llvm::all_of(op->getResults(), isMarked);
  }
  if (auto constant = dyn_cast<arith::ConstantOp>(op))
    return isa<SplatElementsAttr>(constant.getValue());
  if (isa<tensor::InsertSliceOp, tensor::ExtractSliceOp, tensor::ExpandShapeOp,
          tensor::CollapseShapeOp>(op))
    return llvm::all_of(op->getOperands(), isMarked) && llvm::all_of(op->getResults(), isMarked);
  return isa<tensor::EmptyOp, func::ReturnOp>(op);
}

bool KernelBlocks::analyse(ArrayRef<unsigned> arguments) {
  if (!llvm::hasSingleElement(kernel.getBody()))
    return false;
  Block &body = kernel.getBody().front();
  for (unsigned index : arguments) {
    Value argument = body.getArgument(index);
    unsigned dim = leadingDim(tensorOf(argument));
    if (dim == tensorOf(argument).getRank() || !mark(argument, dim))
      return false;
  }
  do {
    changed = false;
    for (Operation &op : body)
      if (!visit(&op))
        return false;
    for (Operation &op : llvm::reverse(body))
      if (!visit(&op))
        return false;
  } while (changed);
  for (Operation &op : body) {
    if (op.getNumRegions() && !isa<linalg::LinalgOp>(op))
      return false;
    if (!isConsistent(&op))
      return false;
    if (auto linalg = dyn_cast<linalg::LinalgOp>(op); linalg && !loops.contains(&op)) {
      int64_t iterations = 1;
      for (int64_t range : linalg.getStaticLoopRanges())
        iterations *= range;
      repeated += iterations;
    }
  }
  Operation *end = body.getTerminator();
  if (!llvm::all_of(end->getOperands(), [&](Value value) { return dims.contains(value); }))
    return false;
  for (BlockArgument argument : body.getArguments())
    if (auto it = dims.find(argument);
        it != dims.end() && it->second != leadingDim(tensorOf(argument)))
      return false;
  return true;
}

int64_t KernelBlocks::choose(unsigned index, int64_t wanted) {
  const int64_t least = wanted / 8, most = wanted * 8;
  Block &body = kernel.getBody().front();
  auto bytesOf = [](Value value) {
    return tensorOf(value).getNumElements() *
           dist::bytesPerElement(tensorOf(value).getElementType());
  };
  int64_t common = 0;
  for (auto [value, dim] : dims) // a greatest common divisor, in any order
    common = std::gcd(common, tensorOf(value).getDimSize(dim));
  int64_t bytes = bytesOf(body.getArgument(index)), best = 1;
  double nearest = 0;
  int64_t elements = tensorOf(body.getArgument(index)).getNumElements();
  for (int64_t blocks = 2; blocks <= common; ++blocks) {
    int64_t each = bytes / blocks;
    if (common % blocks != 0 || each > most)
      continue;
    if (each < least || repeated * blocks > elements / kMostRepeated)
      break;
    bool isAligned = llvm::all_of(body.getArguments(), [&](BlockArgument argument) {
      return !dims.contains(argument) || bytesOf(argument) / blocks % kAlignment == 0;
    });
    double distance = each > wanted ? static_cast<double>(each) / static_cast<double>(wanted)
                                    : static_cast<double>(wanted) / static_cast<double>(each);
    if (isAligned && (best == 1 || distance < nearest)) {
      best = blocks;
      nearest = distance;
    }
  }
  return best;
}

SmallVector<bool> KernelBlocks::cut() {
  return llvm::map_to_vector(kernel.getBody().front().getArguments(),
                             [&](BlockArgument argument) { return dims.contains(argument); });
}

Type KernelBlocks::blockOf(Value value, int64_t blocks) const {
  auto it = dims.find(value);
  if (it == dims.end())
    return value.getType();
  SmallVector<int64_t> shape(tensorOf(value).getShape());
  shape[it->second] /= blocks;
  return RankedTensorType::get(shape, tensorOf(value).getElementType());
}

func::FuncOp KernelBlocks::build(int64_t blocks) {
  Block &old = kernel.getBody().front();
  OpBuilder builder(kernel.getContext());
  auto typesOf = [&](ValueRange values) {
    return llvm::map_to_vector(values, [&](Value value) { return blockOf(value, blocks); });
  };
  auto type = builder.getFunctionType(typesOf(old.getArguments()),
                                      typesOf(old.getTerminator()->getOperands()));
  auto made = func::FuncOp::create(kernel.getLoc(), "kernel", type);
  made.setPrivate();
  made->setDiscardableAttrs(kernel->getDiscardableAttrDictionary());
  Block *body = made.addEntryBlock();
  builder.setInsertionPointToEnd(body);
  IRMapping mapping;
  mapping.map(old.getArguments(), body->getArguments());
  for (Operation &op : old) {
    Location loc = op.getLoc();
    auto map = [&](Value value) { return mapping.lookup(value); };
    auto resultType = [&] { return cast<RankedTensorType>(blockOf(op.getResult(0), blocks)); };
    if (op.getNumResults() == 0 ||
        !llvm::any_of(op.getResults(), [&](Value value) { return dims.contains(value); })) {
      builder.clone(op, mapping);
    } else if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
      auto splat = cast<SplatElementsAttr>(constant.getValue());
      mapping.map(
          op.getResult(0),
          arith::ConstantOp::create(builder, loc, splat.resizeSplat(resultType())).getResult());
    } else if (auto expand = dyn_cast<tensor::ExpandShapeOp>(op)) {
      mapping.map(op.getResult(0),
                  tensor::ExpandShapeOp::create(builder, loc, resultType(), map(expand.getSrc()),
                                                expand.getReassociationIndices())
                      .getResult());
    } else if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op)) {
      SmallVector<OpFoldResult> sizes = slice.getMixedSizes();
      unsigned dim = dims.lookup(op.getResult(0));
      sizes[dim] = builder.getIndexAttr(resultType().getDimSize(dim));
      mapping.map(op.getResult(0), tensor::ExtractSliceOp::create(
                                       builder, loc, resultType(), map(slice.getSource()),
                                       slice.getMixedOffsets(), sizes, slice.getMixedStrides())
                                       .getResult());
    } else if (auto insert = dyn_cast<tensor::InsertSliceOp>(op)) {
      SmallVector<OpFoldResult> sizes = insert.getMixedSizes();
      unsigned dim = dims.lookup(op.getResult(0));
      sizes[dim] = builder.getIndexAttr(resultType().getDimSize(dim));
      mapping.map(op.getResult(0), tensor::InsertSliceOp::create(
                                       builder, loc, map(insert.getSource()), map(insert.getDest()),
                                       insert.getMixedOffsets(), sizes, insert.getMixedStrides())
                                       .getResult());
    } else {
      Operation *clone = builder.clone(op, mapping);
      for (auto [result, value] : llvm::zip_equal(clone->getResults(), op.getResults()))
        result.setType(blockOf(value, blocks));
    }
  }
  return made;
}
