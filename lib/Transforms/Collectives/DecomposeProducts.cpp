//===- DecomposeProducts.cpp - Products and collectives in parts ----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A product cannot hide the gather of its operand or the reduce-scatter of its result, which
// run entirely before or after it. So both are cut along a parallel loop of the product
// other than that of the collective:
//
//   w = all_gather v; y = x · w          y_j = x · (all_gather v_j)
//   y = x · w; z = reduce_scatter y      z_j = reduce_scatter (x · w_j)
//
// While one part is multiplied the next one is sent. The sums of each element and their order
// do not change. RingProducts.cpp cuts along the dimension of the collective instead.
//
//===----------------------------------------------------------------------===//

#include "ProductParts.h"

#include "tessera/Dialect/Dist/IR/ValueShardings.h"
#include "tessera/Planning/CostOptions.h"
#include "tessera/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

namespace tessera::dist {
#define GEN_PASS_DEF_DISTDECOMPOSEPRODUCTS
#include "tessera/Transforms/Passes.h.inc"
} // namespace tessera::dist

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

/// Candidate numbers of parts.
static constexpr int64_t kParts[] = {2, 4, 8};

namespace {

/// A product and the collective of its operand or result.
struct Pair {
  linalg::LinalgOp product;
  Operation *collective;
  OpOperand *gathered; ///< null: the result is scattered
  unsigned loop;       ///< which both are cut along
  int64_t extent;      ///< of the loop
};

/// Parts, and the modelled time of the collective and its product in so many.
struct Parts {
  int64_t count;
  double seconds;
};

} // namespace

static bool isWhole(Type local, Attribute global, unsigned dim) {
  auto type = dyn_cast_or_null<TypeAttr>(global);
  return type && cast<RankedTensorType>(type.getValue()).getDimSize(dim) ==
                     cast<RankedTensorType>(local).getDimSize(dim);
}

static std::optional<Pair> match(linalg::LinalgOp product, Operation *collective,
                                 OpOperand *gathered) {
  if (!collective || collective->getBlock() != product->getBlock() ||
      collective->getNumOperands() != 1 || collective->getNumResults() != 1 ||
      !linalg::isaContractionOpInterface(product) || product->getNumResults() != 1 ||
      !product.hasPureTensorSemantics())
    return std::nullopt;
  auto globals = collective->getAttrOfType<ArrayAttr>("global_types");
  auto cut = collective->getAttrOfType<IntegerAttr>("dim");
  if (!globals || globals.size() != 1 || !cut)
    return std::nullopt;
  OpOperand *result = product.getDpsInitOperand(0);
  AffineMap map = product.getMatchingIndexingMap(gathered ? gathered : result);
  SmallVector<int64_t> ranges = product.getStaticLoopRanges();
  std::optional<Pair> best;
  for (auto [dim, expr] : llvm::enumerate(map.getResults())) {
    auto loop = dyn_cast<AffineDimExpr>(expr);
    if (!loop || static_cast<int64_t>(dim) == cut.getInt() ||
        product.getIteratorTypesArray()[loop.getPosition()] != utils::IteratorType::parallel ||
        !isWhole(collective->getOperand(0).getType(), globals[0], dim))
      continue;
    bool isPlain = llvm::all_of(product->getOpOperands(), [&](OpOperand &operand) {
      return succeeded(dimOfLoop(product.getMatchingIndexingMap(&operand), loop.getPosition()));
    });
    // The first of the longest loops: slices of it have few pieces.
    int64_t extent = ranges[loop.getPosition()];
    if (isPlain && (!best || extent > best->extent))
      best = Pair{product, collective, gathered, loop.getPosition(), extent};
  }
  return best;
}

/// The collective `like` of one part.
static Operation *partOf(OpBuilder &builder, Operation *like, Value operand, unsigned dim,
                         int64_t part) {
  int64_t size = cast<RankedTensorType>(operand.getType()).getDimSize(dim);
  Operation *copy = builder.clone(*like);
  copy->setOperand(0, operand);
  copy->getResult(0).setType(withSize(like->getResult(0).getType(), dim, size));
  auto globals = like->getAttrOfType<ArrayAttr>("global_types");
  auto global = TypeAttr::get(withSize(cast<TypeAttr>(globals[0]).getValue(), dim, size));
  copy->setAttr("global_types", builder.getArrayAttr({global}));
  copy->setAttr(DistDialect::kGlobalType, global);
  copy->setAttr(kPart, builder.getI64IntegerAttr(part));
  return copy;
}

static unsigned dimOf(Pair pair, OpOperand *operand) {
  return **dimOfLoop(pair.product.getMatchingIndexingMap(operand), pair.loop);
}

/// The fastest number of parts: the first collective, or the last one, is not hidden.
static Parts bestParts(Pair pair, const StepCosts &costs) {
  FailureOr<CommunicationCost> whole =
      costs.communicationOf(cast<CollectiveOpInterface>(pair.collective));
  if (failed(whole) || whole->isLocal())
    return {1, 0};
  double sending = whole->timing.seconds, computing = costs.computeSeconds(pair.product);
  double least = (sending + computing) - kLeastGainInParts * std::min(sending, computing);
  Parts best{1, sending + computing};
  OpBuilder builder(pair.collective);
  unsigned dim = dimOf(pair, pair.gathered ? pair.gathered : pair.product.getDpsInitOperand(0));
  for (int64_t parts : kParts) {
    if (pair.extent % parts != 0)
      break;
    Value slice = sliceOf(builder, pair.collective->getLoc(), pair.collective->getOperand(0), dim,
                          builder.getIndexAttr(0), pair.extent / parts);
    Operation *part = partOf(builder, pair.collective, slice, dim, 0);
    FailureOr<CommunicationCost> cost = costs.communicationOf(cast<CollectiveOpInterface>(part));
    part->erase();
    slice.getDefiningOp()->erase();
    if (failed(cost))
      break;
    double sent = cost->timing.seconds, computed = computing / static_cast<double>(parts);
    double all = sent + static_cast<double>(parts - 1) * std::max(sent, computed) + computed;
    if (all < least) {
      least = all;
      best = {parts, all};
    }
  }
  return best;
}

PartsCost dist::costInParts(linalg::LinalgOp product, Operation *collective, OpOperand *gathered,
                            const StepCosts &costs) {
  std::optional<Pair> pair = match(product, collective, gathered);
  if (!pair)
    return {};
  Parts best = bestParts(*pair, costs);
  PartsCost cost{best.seconds, 0};
  if (best.count == 1)
    return cost;
  for (OpOperand *operand : product.getDpsInputOperands())
    if (dimOfLoop(product.getMatchingIndexingMap(operand), pair->loop)->has_value())
      cost.copiedBytes +=
          2 * bytesOf(operand == gathered ? collective->getOperand(0) : operand->get());
  cost.copiedBytes += 2 * bytesOf(gathered ? product->getResult(0) : collective->getResult(0));
  return cost;
}

static void decompose(Pair pair, int64_t parts) {
  linalg::LinalgOp product = pair.product;
  Operation *last = pair.gathered ? product.getOperation() : pair.collective;
  Location loc = product.getLoc();
  OpBuilder builder(last);
  OpOperand *init = product.getDpsInitOperand(0);
  unsigned outDim = dimOf(pair, init);
  int64_t size = pair.extent / parts;
  auto type = cast<RankedTensorType>(last->getResult(0).getType());
  Value all = tensor::EmptyOp::create(builder, loc, type.getShape(), type.getElementType());
  setGlobalType(all, getGlobalType(last->getResult(0)));
  for (int64_t part = 0; part < parts; ++part) {
    SmallVector<Value> operands;
    for (OpOperand &operand : product->getOpOperands()) {
      std::optional<unsigned> dim = *dimOfLoop(product.getMatchingIndexingMap(&operand), pair.loop);
      if (!dim) {
        operands.push_back(operand.get());
        continue;
      }
      bool isSent = &operand == pair.gathered;
      Value from = isSent ? pair.collective->getOperand(0) : operand.get();
      Value slice = sliceOf(builder, loc, from, *dim, builder.getIndexAttr(part * size), size);
      operands.push_back(isSent ? partOf(builder, pair.collective, slice, *dim, part)->getResult(0)
                                : slice);
    }
    Operation *made = clone(builder, product, operands.back().getType(), operands);
    for (StringRef name : {DistDialect::kGlobalType, DistDialect::kShardings})
      made->removeAttr(name);
    Value value = made->getResult(0);
    if (!pair.gathered)
      value = partOf(builder, pair.collective, value, outDim, part)->getResult(0);
    all = insertedAt(builder, loc, value, all, outDim, builder.getIndexAttr(part * size));
    setGlobalType(all, getGlobalType(last->getResult(0)));
  }
  last->getResult(0).replaceAllUsesWith(all);
  last->erase();
  if (pair.gathered)
    pair.collective->erase();
  else
    product->erase();
}

static void run(func::FuncOp function, const StepCosts &costs) {
  SmallVector<linalg::LinalgOp> products;
  function.walk([&](linalg::LinalgOp op) { products.push_back(op); });
  for (linalg::LinalgOp product : products) {
    std::optional<Pair> pair;
    Value result = product->getNumResults() == 1 ? product->getResult(0) : Value();
    if (result && result.hasOneUse())
      if (auto scatter = dyn_cast<ReduceScatterOp>(*result.user_begin()))
        pair = match(product, scatter, nullptr);
    for (OpOperand *operand : product.getDpsInputOperands())
      if (auto gather = operand->get().getDefiningOp<AllGatherOp>();
          gather && !pair && operand->get().hasOneUse())
        pair = match(product, gather, operand);
    if (!pair)
      continue;
    if (int64_t parts = bestParts(*pair, costs).count; parts > 1)
      decompose(*pair, parts);
  }
}

namespace {
struct DistDecomposeProducts : dist::impl::DistDecomposeProductsBase<DistDecomposeProducts> {
  using DistDecomposeProductsBase::DistDecomposeProductsBase;

  void runOnOperation() override {
    FailureOr<CostOptions> cost = readCostOptions(getOperation(), "time", topology);
    if (failed(cost))
      return signalPassFailure();
    MeshTable meshes(getOperation());
    for (func::FuncOp function : getOperation().getOps<func::FuncOp>())
      if (isLocalView(function) && function.getBody().hasOneBlock())
        run(function, StepCosts(function, meshes, cost->topology));
  }
};
} // namespace
