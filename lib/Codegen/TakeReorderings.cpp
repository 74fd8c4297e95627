//===- TakeReorderings.cpp - Absorb transpositions into contraction maps --===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GemmFormer.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::codegen;

/// The permutation of a generic that only reorders dimensions: result dimension i is dimension
/// permutation[i] of its operand. Dimensions of its result that the operand lacks are -1.
static std::optional<SmallVector<int>> reordering(Value value) {
  auto generic = value.getDefiningOp<linalg::GenericOp>();
  if (!generic || generic.getNumDpsInputs() != 1 || generic.getNumDpsInits() != 1 ||
      generic.getNumReductionLoops() != 0 || generic.hasDynamicShape())
    return std::nullopt;
  Block &body = *generic.getBody();
  if (body.getTerminator()->getOperand(0) != body.getArgument(0))
    return std::nullopt;
  AffineMap in = generic.getIndexingMapsArray()[0], out = generic.getIndexingMapsArray()[1];
  if (!in.isProjectedPermutation() || !out.isPermutation() ||
      !isa<RankedTensorType>(generic.getInputs()[0].getType()))
    return std::nullopt;
  SmallVector<int> result;
  for (AffineExpr expr : out.getResults()) {
    std::optional<unsigned> position = in.getResultPosition(expr);
    result.push_back(position ? static_cast<int>(*position) : -1);
  }
  return result;
}

SmallVector<ReassociationIndices> codegen::gemmGroupsOf(ArrayRef<SmallVector<unsigned>> parts,
                                                        ArrayRef<unsigned> loops) {
  SmallVector<ReassociationIndices> groups;
  int64_t next = 0;
  for (unsigned loop : loops) {
    ReassociationIndices &group = groups.emplace_back();
    for (size_t i = 0; i < parts[loop].size(); ++i)
      group.push_back(next++);
  }
  return groups;
}

/// Splits loops if an operand is the collapse of a reordered tensor, so that the reordering can be
/// absorbed; the other operands are expanded, which is free.
void GemmFormer::splitLoops(Contraction &contraction) {
  SmallVector<SmallVector<int64_t>> split(contraction.extents.size());
  for (ContractionOperand &view : contraction.operands) {
    auto collapse = view.value.getDefiningOp<tensor::CollapseShapeOp>();
    if (!collapse || !reordering(collapse.getSrc()))
      continue;
    ArrayRef<int64_t> shape = collapse.getSrcType().getShape();
    for (auto [dim, group] : llvm::enumerate(collapse.getReassociationIndices()))
      if (group.size() > 1 && split[view.loops[dim]].empty())
        for (int64_t source : group)
          split[view.loops[dim]].push_back(shape[source]);
  }
  // The result, too, is often expanded before it is reordered.
  if (replaced.hasOneUse())
    if (auto expand = dyn_cast<tensor::ExpandShapeOp>(*replaced.user_begin())) {
      ArrayRef<int64_t> shape = expand.getResultType().getShape();
      for (auto [dim, group] : llvm::enumerate(expand.getReassociationIndices()))
        if (group.size() > 1 && split[contraction.result[dim]].empty())
          for (int64_t target : group)
            split[contraction.result[dim]].push_back(shape[target]);
    }
  SmallVector<int64_t> extents;
  for (auto [loop, sizes] : llvm::enumerate(split)) {
    if (sizes.empty())
      sizes.push_back(contraction.extents[loop]);
    SmallVector<unsigned> &mine = parts.emplace_back();
    for (int64_t size : sizes) {
      mine.push_back(extents.size());
      extents.push_back(size);
    }
  }
  contraction.extents = extents;
  auto withParts = [&](ArrayRef<unsigned> loops) {
    SmallVector<unsigned> renamed;
    for (unsigned loop : loops)
      llvm::append_range(renamed, parts[loop]);
    return renamed;
  };
  // Gives each value the shape of its loops.
  for (ContractionOperand &view : contraction.operands) {
    SmallVector<unsigned> loops = withParts(view.loops);
    SmallVector<int64_t> shape = contraction.shapeOf(loops);
    auto type = cast<RankedTensorType>(view.value.getType());
    if (type.getShape() != ArrayRef<int64_t>(shape)) {
      auto collapse = view.value.getDefiningOp<tensor::CollapseShapeOp>();
      if (collapse && collapse.getSrcType().getShape() == ArrayRef<int64_t>(shape))
        view.value = collapse.getSrc();
      else
        view.value = tensor::ExpandShapeOp::create(
            builder, op.getLoc(), RankedTensorType::get(shape, type.getElementType()), view.value,
            gemmGroupsOf(parts, view.loops));
    }
    view.loops = loops;
  }
  contraction.result = withParts(contraction.result);
}

void GemmFormer::takeReorderings(Contraction &contraction) {
  for (auto [index, view] : llvm::enumerate(contraction.operands)) {
    while (std::optional<SmallVector<int>> order = reordering(view.value)) {
      Value source = view.value.getDefiningOp<linalg::GenericOp>().getInputs()[0];
      SmallVector<unsigned> loops(cast<RankedTensorType>(source.getType()).getRank());
      bool isContraction = true; // sums run over loops that both operands have
      for (auto [dim, from] : llvm::enumerate(*order))
        if (from >= 0)
          loops[from] = view.loops[dim];
        else
          isContraction &= llvm::is_contained(contraction.result, view.loops[dim]);
      Contraction tried = contraction;
      tried.operands[index] = {source, loops};
      if (!isContraction || !tried.isGemm(op.getContext()))
        break;
      view.value = source;
      view.loops = loops;
      tookAny = true;
    }
  }
}

void GemmFormer::takeResultReorderings(Contraction &contraction) {
  // Only a result that starts from a fill can start in another order.
  if (!op.getDpsInits()[0].getDefiningOp<linalg::FillOp>())
    return;
  Value result = replaced;
  if (result.hasOneUse())
    if (auto expand = dyn_cast<tensor::ExpandShapeOp>(*result.user_begin());
        expand && expand.getResultType().getShape() ==
                      ArrayRef<int64_t>(contraction.shapeOf(contraction.result))) {
      result = expand.getResult();
    }
  if (cast<RankedTensorType>(result.getType()).getShape() !=
          ArrayRef<int64_t>(contraction.shapeOf(contraction.result)) ||
      !result.hasOneUse())
    return;
  Operation *user = *result.user_begin();
  std::optional<SmallVector<int>> order;
  if (user->getNumResults() == 1 && user->getBlock() == op->getBlock() &&
      isa<linalg::GenericOp>(user) && user->getOperand(0) == result)
    order = reordering(user->getResult(0));
  if (!order || llvm::is_contained(*order, -1))
    return;
  SmallVector<unsigned> loops;
  for (int from : *order)
    loops.push_back(contraction.result[from]);
  Contraction tried = contraction;
  tried.result = loops;
  if (!tried.isGemm(op.getContext()))
    return;
  contraction.result = loops;
  replaced = user->getResult(0);
  tookAny = true;
}
