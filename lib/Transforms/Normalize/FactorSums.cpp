//===- FactorSums.cpp - Sums that differ by an invariant factor -----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Moves factors that do not depend on the summed loops out of a sum of products:
//
//   sum over i of a[c] * x[i, c] * y[i, c] = a[c] * (sum over i of x[i, c] * y[i, c])
//
// If the remaining products of several sums are equal, they are summed once; if
// propagation cuts a summed loop, they are also reduced once. A sum over more loops may
// equal the rest of a sum over fewer:
//
//   sum over n of (b[n, c] * (sum over i of x[n, i, c]))
//
// The pass runs before propagation, so that estimates and plans use the result. Values
// connected by an op are on one mesh, and so are the factors of sums.
//
//===----------------------------------------------------------------------===//

#include "ProductTerms.h"

#include "tessera/Transforms/Passes.h"

#include "tessera/Dialect/Dist/IR/Dist.h"
#include "tessera/Dialect/Dist/IR/ValueShardings.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <cmath>
#include <map>

namespace tessera::dist {
#define GEN_PASS_DEF_DISTFACTORSUMS
#include "tessera/Transforms/Passes.h.inc"
} // namespace tessera::dist

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

/// Sums over more loops than these are not split into a sum of sums.
static constexpr size_t kMaxSplitLoops = 3;

namespace {

struct Sum {
  mutable linalg::GenericOp op; // a handle; its methods are not const
  Product term;

  bool isReduction(int64_t loop) const {
    return loop != kNoLoop && op.getIteratorTypesArray()[loop] == utils::IteratorType::reduction;
  }
};

/// A sum rewritten over a subset of its loops, with the factors that depend on them (`core`) and
/// the others (`rest`).
struct Reading {
  size_t sum;
  llvm::SmallDenseSet<int64_t> reduced;
  SmallVector<Factor> core, rest;
  SmallVector<int64_t> loops; ///< of the core, in the order in which its factors name them
  bool isWhole;               ///< no other loop is summed
  std::vector<int64_t> key;   ///< equal if the cores and their loops are
};

/// Sums with equal cores.
struct Group {
  std::vector<Reading> members; ///< in program order
  bool hasWhole = false;
};

class Factoring {
public:
  explicit Factoring(func::FuncOp function) : function(function) {}

  void run();

private:
  void collect(linalg::GenericOp op);
  bool dropVanishing(const Sum &sum);
  void leaveOutVanishing(Sum &sum);
  bool vanishes(const Sum &sum);
  std::vector<Reading> readingsOf(size_t sum);
  std::optional<Reading> read(size_t sum, llvm::SmallDenseSet<int64_t> reduced);
  void rewrite(const Group &group);
  Value writeCore(OpBuilder &b, const Reading &reading);
  Value writeRest(const Reading &reading, Value core);
  Value write(OpBuilder &b, const Sum &sum, ArrayRef<int64_t> loops, ArrayRef<int64_t> summed,
              ArrayRef<int64_t> written, ArrayRef<Factor> factors, double constant);
  int64_t numberOf(const void *object) {
    return numbers.try_emplace(object, numbers.size()).first->second;
  }

  func::FuncOp function;
  std::vector<Sum> sums;                         // in program order
  llvm::DenseMap<const void *, int64_t> numbers; // by first occurrence; looked up only
};

} // namespace

static RankedTensorType typeOf(Value value) {
  return cast<RankedTensorType>(value.getType());
}

static SmallVector<int64_t> loopsOf(AffineMap map) {
  return loopsIn(map, llvm::to_vector(llvm::seq<int64_t>(0, map.getNumDims())));
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

void Factoring::collect(linalg::GenericOp op) {
  if (op.getNumReductionLoops() == 0 || op->getNumResults() != 1 || getSharding(op->getResult(0)))
    return;
  if (std::optional<Product> term = termOf(op))
    sums.push_back({op, std::move(*term)});
}

/// Whether `op` is a matrix product, for which kernels are fast as long as it has two operands.
static bool isContraction(linalg::GenericOp op) {
  return linalg::isaContractionOpInterface(cast<linalg::LinalgOp>(op.getOperation()));
}

std::optional<Reading> Factoring::read(size_t index, llvm::SmallDenseSet<int64_t> reduced) {
  const Sum &sum = sums[index];
  Reading reading{index, std::move(reduced), {}, {}, {}, true, {}};
  for (const Factor &factor : sum.term.factors) {
    numberOf(factor.tensor.getAsOpaquePointer()); // in this order
    bool depends =
        llvm::any_of(factor.loops, [&](int64_t loop) { return reading.reduced.contains(loop); });
    (depends ? reading.core : reading.rest).push_back(factor);
    auto type = dyn_cast<RankedTensorType>(factor.tensor.getType());
    if (!type || type.getElementType() != typeOf(sum.op->getResult(0)).getElementType())
      return std::nullopt;
  }
  if (reading.core.size() > 2 && isContraction(sum.op))
    return std::nullopt;
  llvm::stable_sort(reading.core, [&](const Factor &a, const Factor &b) {
    auto key = [&](const Factor &f) {
      return std::make_tuple(numberOf(f.tensor.getAsOpaquePointer()), f.divides,
                             std::vector<int64_t>(f.loops.begin(), f.loops.end()));
    };
    return key(a) < key(b);
  });
  reading.key = {numberOf(sum.op->getBlock()), std::ssize(reading.core)};
  for (const Factor &factor : reading.core) {
    llvm::append_values(reading.key, numberOf(factor.tensor.getAsOpaquePointer()), factor.divides);
    for (int64_t loop : factor.loops) {
      if (loop == kNoLoop) {
        reading.key.push_back(kNoLoop);
        continue;
      }
      auto known = llvm::find(reading.loops, loop);
      reading.key.push_back(known - reading.loops.begin());
      if (known == reading.loops.end())
        reading.loops.push_back(loop);
    }
  }
  for (int64_t loop : reading.loops)
    reading.key.push_back(reading.reduced.contains(loop));
  for (int64_t loop : reading.reduced)
    if (!llvm::is_contained(reading.loops, loop))
      return std::nullopt; // independent factors would be added repeatedly
  for (unsigned loop = 0; loop < sum.op.getNumLoops(); ++loop)
    reading.isWhole &= !sum.isReduction(loop) || reading.reduced.contains(loop);
  return reading;
}

/// The readings of a sum: over all its loops first, then over fewer.
std::vector<Reading> Factoring::readingsOf(size_t index) {
  const Sum &sum = sums[index];
  SmallVector<int64_t> loops;
  for (unsigned loop = 0; loop < sum.op.getNumLoops(); ++loop)
    if (sum.isReduction(loop))
      loops.push_back(loop);
  uint64_t all = (uint64_t(1) << loops.size()) - 1;
  std::vector<Reading> readings;
  for (uint64_t left = 0; left < (loops.size() > kMaxSplitLoops ? 1 : all); ++left) {
    llvm::SmallDenseSet<int64_t> reduced;
    for (size_t i = 0; i < loops.size(); ++i)
      if (!(left >> i & 1))
        reduced.insert(loops[i]);
    if (std::optional<Reading> reading = read(index, std::move(reduced)))
      readings.push_back(std::move(*reading));
  }
  return readings;
}

/// Whether a sum adds the deviations of a tensor from its mean over the same loops:
///   sum over i of (x[i, c] - (sum over i of x[i, c]) / n) = 0
bool Factoring::vanishes(const Sum &sum) {
  SmallVector<Factor> core;
  auto isReduced = [&](int64_t loop) { return sum.isReduction(loop); };
  for (const Factor &factor : sum.term.factors)
    if (llvm::any_of(factor.loops, isReduced))
      core.push_back(factor);
  if (core.size() != 1 || core[0].divides)
    return false;
  auto difference = core[0].tensor.getDefiningOp<linalg::GenericOp>();
  if (!difference || difference.getNumReductionLoops() > 0 || difference.getNumDpsInputs() != 2 ||
      !difference.getIndexingMapsArray().back().isIdentity())
    return false;
  auto minus = difference.getBody()->getTerminator()->getOperand(0).getDefiningOp<arith::SubFOp>();
  if (!minus || minus.getLhs() != difference.getBody()->getArgument(0) ||
      minus.getRhs() != difference.getBody()->getArgument(1))
    return false;
  std::optional<Product> sides[2];
  for (unsigned side = 0; side < 2; ++side) {
    AffineMap map = difference.getIndexingMapsArray()[side];
    if (!map.isProjectedPermutation(true))
      return false;
    sides[side] = elementsOf(difference.getInputs()[side], loopsIn(map, core[0].loops));
    if (!sides[side] || sides[side]->factors.size() != 1 || sides[side]->factors[0].divides)
      return false;
  }
  const Factor &element = sides[0]->factors[0], &mean = sides[1]->factors[0];
  auto total = mean.tensor.getDefiningOp<linalg::GenericOp>();
  std::optional<Product> summand = total ? termOf(total) : std::nullopt;
  if (!summand || summand->factors.size() != 1 || summand->factors[0].divides ||
      summand->factors[0].tensor != element.tensor ||
      summand->factors[0].loops.size() != total.getNumLoops())
    return false;
  // Maps the loops of the total to those of the sum: both must reduce the same ones.
  SmallVector<int64_t> written = loopsOf(total.getIndexingMapsArray().back());
  double count = 1;
  for (auto [own, loop] : llvm::zip_equal(summand->factors[0].loops, element.loops)) {
    auto at = llvm::find(written, own);
    bool isTotalReduced = at == written.end();
    if (isTotalReduced != isReduced(loop) ||
        (!isTotalReduced && mean.loops[at - written.begin()] != loop))
      return false;
    if (isTotalReduced)
      count *= static_cast<double>(total.getStaticLoopRanges()[own]);
  }
  for (unsigned loop = 0; loop < sum.op.getNumLoops(); ++loop)
    if (isReduced(loop) && !element.runsOver(loop))
      return false;
  constexpr double kRounding = 1e-6; // of 1 / n in f32
  double ratio = count * sides[1]->constant * summand->constant / sides[0]->constant;
  return std::abs(ratio - 1) < kRounding;
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

/// The product of `factors` over some loops of a sum, summed over the loops `summed`, with the
/// result indexed by the loops `written`.
Value Factoring::write(OpBuilder &b, const Sum &sum, ArrayRef<int64_t> loops,
                       ArrayRef<int64_t> summed, ArrayRef<int64_t> written,
                       ArrayRef<Factor> factors, double constant) {
  Location loc = sum.op.getLoc();
  Type element = typeOf(sum.op->getResult(0)).getElementType();
  auto mapTo = [&](ArrayRef<int64_t> dims) {
    SmallVector<AffineExpr> indices = llvm::map_to_vector(dims, [&](int64_t loop) {
      return loop == kNoLoop ? b.getAffineConstantExpr(0)
                             : b.getAffineDimExpr(llvm::find(loops, loop) - loops.begin());
    });
    return AffineMap::get(loops.size(), 0, indices, b.getContext());
  };
  SmallVector<int64_t> shape;
  for (int64_t loop : written)
    shape.push_back(loop == kNoLoop ? 1 : sum.op.getStaticLoopRanges()[loop]);
  auto type = RankedTensorType::get(shape, element);
  Operation *init = summed.empty()
                        ? tensor::EmptyOp::create(b, loc, shape, element).getOperation()
                        : arith::ConstantOp::create(b, loc, cast<TypedAttr>(b.getZeroAttr(type)));
  SmallVector<Value> inputs;
  SmallVector<AffineMap> maps;
  SmallVector<utils::IteratorType> iterators;
  for (const Factor &factor : factors) {
    inputs.push_back(factor.tensor);
    maps.push_back(mapTo(factor.loops));
  }
  maps.push_back(mapTo(written));
  for (int64_t loop : loops)
    iterators.push_back(llvm::is_contained(summed, loop) ? utils::IteratorType::reduction
                                                         : utils::IteratorType::parallel);
  auto body = [&](OpBuilder &body, Location, ValueRange elements) {
    Value product;
    if (constant != 1)
      product = arith::ConstantOp::create(body, loc, body.getFloatAttr(element, constant));
    for (bool divides : {false, true})
      for (auto [factor, value] : llvm::zip(factors, elements)) {
        if (factor.divides != divides)
          continue;
        if (!product && divides)
          product = arith::ConstantOp::create(body, loc, body.getFloatAttr(element, 1));
        if (!product)
          product = value;
        else if (divides)
          product = arith::DivFOp::create(body, loc, product, value);
        else
          product = arith::MulFOp::create(body, loc, product, value);
      }
    if (!summed.empty())
      product = arith::AddFOp::create(body, loc, elements.back(), product);
    linalg::YieldOp::create(body, loc, product);
  };
  return linalg::GenericOp::create(b, loc, type, inputs, init->getResult(0), maps, iterators, body)
      .getResult(0);
}

Value Factoring::writeCore(OpBuilder &b, const Reading &reading) {
  SmallVector<int64_t> summed, written;
  for (int64_t loop : reading.loops)
    (reading.reduced.contains(loop) ? summed : written).push_back(loop);
  return write(b, sums[reading.sum], reading.loops, summed, written, reading.core, 1);
}

/// The value of a sum, given the sum of its core.
Value Factoring::writeRest(const Reading &reading, Value core) {
  const Sum &sum = sums[reading.sum];
  Factor first{core, {}, false};
  for (int64_t loop : reading.loops)
    if (!reading.reduced.contains(loop))
      first.loops.push_back(loop);
  SmallVector<int64_t> written = loopsOf(sum.op.getIndexingMapsArray().back()), loops, summed;
  if (reading.rest.empty() && sum.term.constant == 1 && written == first.loops && reading.isWhole)
    return core;
  for (unsigned loop = 0; loop < sum.op.getNumLoops(); ++loop) {
    if (reading.reduced.contains(loop))
      continue;
    loops.push_back(loop);
    if (sum.isReduction(loop))
      summed.push_back(loop);
  }
  SmallVector<Factor> factors{first};
  llvm::append_range(factors, reading.rest);
  OpBuilder b(sum.op);
  return write(b, sum, loops, summed, written, factors, sum.term.constant);
}

void Factoring::rewrite(const Group &group) {
  OpBuilder b(sums[group.members.front().sum].op);
  Value core = writeCore(b, group.members.front());
  for (const Reading &member : group.members)
    sums[member.sum].op->getResult(0).replaceAllUsesWith(writeRest(member, core));
}

bool Factoring::dropVanishing(const Sum &sum) {
  if (!vanishes(sum))
    return false;
  OpBuilder b(sum.op);
  linalg::GenericOp op = sum.op;
  RankedTensorType type = typeOf(op->getResult(0));
  auto zero = arith::ConstantOp::create(b, op.getLoc(), cast<TypedAttr>(b.getZeroAttr(type)));
  op->getResult(0).replaceAllUsesWith(zero);
  return true;
}

/// If only one of the added products has a nonzero sum, drops the others. (With more, the separate
/// sums could cancel each other and lose digits.)
void Factoring::leaveOutVanishing(Sum &sum) {
  SmallVector<Product> kept, addends = addendsOf(sum.op);
  for (Product &addend : addends)
    if (!vanishes(Sum{sum.op, addend}))
      kept.push_back(std::move(addend));
  if (addends.size() > 1 && kept.size() == 1)
    sum.term = std::move(kept.front());
}

void Factoring::run() {
  function.walk([&](linalg::GenericOp op) { collect(op); });
  if (sums.empty())
    return;
  bool changed = false;
  std::map<std::vector<int64_t>, Group> groups;
  std::vector<std::vector<Reading>> readings(sums.size());
  for (size_t i = 0; i < sums.size(); ++i) {
    if (dropVanishing(sums[i])) {
      changed = true;
      continue;
    }
    leaveOutVanishing(sums[i]);
    readings[i] = readingsOf(i);
    for (const Reading &reading : readings[i]) {
      Group &group = groups[reading.key];
      group.members.push_back(reading);
      group.hasWhole |= reading.isWhole;
    }
  }
  // Each sum takes the first of its readings that another sum shares.
  std::map<std::vector<int64_t>, Group> taken;
  SmallVector<std::vector<int64_t>> order;
  for (std::vector<Reading> &own : readings)
    for (Reading &reading : own) {
      const Group &group = groups[reading.key];
      if (group.members.size() < 2 || !group.hasWhole)
        continue;
      Group &group2 = taken[reading.key];
      if (group2.members.empty())
        order.push_back(reading.key);
      group2.hasWhole |= reading.isWhole;
      group2.members.push_back(std::move(reading));
      break;
    }
  for (const std::vector<int64_t> &key : order)
    if (const Group &group = taken[key]; group.members.size() > 1 && group.hasWhole) {
      rewrite(group);
      changed = true;
    }
  if (!changed)
    return;
  SmallVector<Operation *> unused;
  function.walk([&](linalg::GenericOp op) { unused.push_back(op); });
  for (Operation *op : llvm::reverse(unused))
    if (isOpTriviallyDead(op))
      op->erase();
}

namespace {
struct DistFactorSums : dist::impl::DistFactorSumsBase<DistFactorSums> {
  using Base::Base;

  void runOnOperation() override {
    if (MeshTable(getOperation()).empty() && devices == 0)
      return;
    for (func::FuncOp function : getOperation().getOps<func::FuncOp>())
      if (!isLocalView(function))
        Factoring(function).run();
  }
};
} // namespace
