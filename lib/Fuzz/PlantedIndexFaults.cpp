//===- PlantedIndexFaults.cpp - Faults in masks and offsets ---------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Planting.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::fuzz;

//===----------------------------------------------------------------------===//
// What partition writes
//===----------------------------------------------------------------------===//

/// `axis_index * chunk`: the offset of this device's part.
static bool isBegin(Value value) {
  auto product = value.getDefiningOp<arith::MulIOp>();
  return product && product.getLhs().getDefiningOp<dist::AxisIndexOp>();
}

/// `local + begin`: a global index.
static bool isGlobalIndex(Value value) {
  auto sum = value.getDefiningOp<arith::AddIOp>();
  return sum && isBegin(sum.getRhs());
}

/// The comparisons `global index < size` of which a condition consists; empty for other conditions.
static SmallVector<arith::CmpIOp> paddingChecks(Value condition) {
  if (auto both = condition.getDefiningOp<arith::AndIOp>()) {
    SmallVector<arith::CmpIOp> left = paddingChecks(both.getLhs());
    SmallVector<arith::CmpIOp> right = paddingChecks(both.getRhs());
    if (left.empty() || right.empty())
      return {};
    left.append(right);
    return left;
  }
  auto compare = condition.getDefiningOp<arith::CmpIOp>();
  if (!compare || compare.getPredicate() != arith::CmpIPredicate::slt ||
      !isGlobalIndex(compare.getLhs()) || !matchPattern(compare.getRhs(), m_Constant()))
    return {};
  return {compare};
}

enum class Purpose { reduction, contraction, other };

/// The purpose of a select on a padding check.
static Purpose purposeOf(arith::SelectOp select) {
  auto generic = select->getParentOfType<linalg::GenericOp>();
  if (!generic)
    return Purpose::other;
  if (llvm::is_contained(generic.getRegionOutputArgs(), select.getFalseValue()))
    return Purpose::reduction;
  for (Operation *user : generic->getUsers())
    if (linalg::isaContractionOpInterface(dyn_cast<linalg::LinalgOp>(user)))
      return Purpose::contraction;
  return Purpose::other;
}

static SmallVector<arith::SelectOp> masks(ModuleOp local) {
  SmallVector<arith::SelectOp> result;
  local.walk([&](arith::SelectOp select) {
    if (!paddingChecks(select.getCondition()).empty())
      result.push_back(select);
  });
  return result;
}

//===----------------------------------------------------------------------===//
// Faults
//===----------------------------------------------------------------------===//

static bool dropMasks(ModuleOp local, Purpose purpose) {
  SmallVector<arith::SelectOp> dropped;
  for (arith::SelectOp select : masks(local))
    if (purposeOf(select) == purpose)
      dropped.push_back(select);
  for (arith::SelectOp select : dropped)
    select.replaceAllUsesWith(select.getTrueValue());
  return !dropped.empty();
}

/// Shifts the bound of every mask by some indices.
static bool moveEdge(ModuleOp local, int64_t by) {
  SetVector<Operation *> compares;
  for (arith::SelectOp select : masks(local))
    for (arith::CmpIOp compare : paddingChecks(select.getCondition()))
      compares.insert(compare);
  for (Operation *compare : compares) {
    OpBuilder b(compare);
    APInt size;
    matchPattern(compare->getOperand(1), m_ConstantInt(&size));
    compare->setOperand(
        1, arith::ConstantIndexOp::create(b, compare->getLoc(), size.getSExtValue() + by));
  }
  return !compares.empty();
}

/// Masks compare the index within the part.
static bool maskByLocalIndex(ModuleOp local) {
  bool any = false;
  for (arith::SelectOp select : masks(local))
    for (arith::CmpIOp compare : paddingChecks(select.getCondition()))
      if (auto sum = compare.getLhs().getDefiningOp<arith::AddIOp>()) {
        compare->setOperand(0, sum.getLhs());
        any = true;
      }
  return any;
}

/// The program's own indices are those within the part.
static bool dropOffsets(ModuleOp local) {
  SetVector<Operation *> checks;
  for (arith::SelectOp select : masks(local))
    for (arith::CmpIOp compare : paddingChecks(select.getCondition()))
      checks.insert(compare);
  bool any = false;
  local.walk([&](arith::AddIOp sum) {
    if (!isGlobalIndex(sum))
      return;
    sum.getResult().replaceUsesWithIf(sum.getLhs(), [&](OpOperand &use) {
      bool replaced = !checks.contains(use.getOwner());
      any |= replaced;
      return replaced;
    });
  });
  return any;
}

/// Parts begin at multiples of the floor, not the ceiling.
static bool floorParts(ModuleOp local) {
  bool any = false;
  local.walk([&](arith::MulIOp product) {
    APInt chunk;
    if (!isBegin(product) || !matchPattern(product.getRhs(), m_ConstantInt(&chunk)) || chunk.ule(1))
      return;
    OpBuilder b(product);
    product.getRhsMutable().assign(
        arith::ConstantIndexOp::create(b, product.getLoc(), chunk.getSExtValue() - 1));
    any = true;
  });
  return any;
}

/// The linear index over several axes counts the minor axis first.
static bool swapIndexAxes(ModuleOp local) {
  bool any = false;
  local.walk([&](dist::AxisIndexOp op) {
    SmallVector<dist::AxisRefAttr> axes(op.getAxes().getAxes());
    if (axes.size() < 2)
      return;
    std::reverse(axes.begin(), axes.end());
    op.setAxesAttr(dist::AxisListAttr::get(op.getContext(), axes));
    any = true;
  });
  return any;
}

void fuzz::addIndexFaults(std::vector<PlantedFault> &faults) {
  faults.push_back({"reduction-mask-dropped", "a reduction includes the padding of its last part",
                    [](ModuleOp m) { return dropMasks(m, Purpose::reduction); }});
  faults.push_back({"contraction-mask-dropped", "a contraction includes padding",
                    [](ModuleOp m) { return dropMasks(m, Purpose::contraction); }});
  faults.push_back({"mask-one-short", "masks cut the last valid index away",
                    [](ModuleOp m) { return moveEdge(m, -1); }});
  faults.push_back({"mask-one-long", "masks let one index of padding through",
                    [](ModuleOp m) { return moveEdge(m, 1); }});
  faults.push_back(
      {"mask-by-local-index", "masks compare the index within the part", maskByLocalIndex});
  faults.push_back({"index-offset-dropped", "a body reads the index within the part", dropOffsets});
  faults.push_back({"parts-by-floor", "parts begin at multiples of a size too small", floorParts});
  faults.push_back({"index-axes-swapped",
                    "a device's place over several axes is counted minor "
                    "axis first",
                    swapIndexAxes});
}
