//===- Updates.cpp - Products that update an argument ---------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Planning/Updates.h"

#include "tessera/Dialect/Dist/IR/Dist.h"
#include "tessera/Planning/Gemm.h"
#include "tessera/Planning/Liveness.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

/// Ops between a product and the new argument.
static constexpr int kMaxOps = 8;

namespace {
/// factors[0] * product + factors[1] * argument + constant
struct Linear {
  std::array<double, 2> factors = {0, 0};
  double constant = 0;

  bool isConstant() const { return factors[0] == 0 && factors[1] == 0; }
  Linear scaled(double by) const { return {{factors[0] * by, factors[1] * by}, constant * by}; }
  Linear plus(const Linear &other) const {
    return {{factors[0] + other.factors[0], factors[1] + other.factors[1]},
            constant + other.constant};
  }
};

class Reader {
public:
  Reader(Value product, Value argument) : product(product), argument(argument) {}
  /// The element of a tensor at any position.
  std::optional<Linear> read(Value tensor, int depth = 0) const;

private:
  std::optional<Linear> readScalar(linalg::GenericOp generic, Value scalar, int depth) const;

  Value product, argument;
};
} // namespace

static std::optional<double> numberOf(Value value) {
  FloatAttr number;
  SplatElementsAttr splat;
  if (matchPattern(value, m_Constant(&number)))
    return number.getValueAsDouble();
  if (matchPattern(value, m_Constant(&splat)) && isa<FloatType>(splat.getElementType()))
    return splat.getSplatValue<APFloat>().convertToDouble();
  return std::nullopt;
}

std::optional<Linear> Reader::readScalar(linalg::GenericOp generic, Value scalar, int depth) const {
  if (std::optional<double> number = numberOf(scalar))
    return Linear{{0, 0}, *number};
  if (auto element = dyn_cast<BlockArgument>(scalar)) {
    if (element.getOwner() != generic.getBody() ||
        element.getArgNumber() >= generic.getNumDpsInputs())
      return std::nullopt;
    Value input = generic.getInputs()[element.getArgNumber()];
    if (std::optional<double> number = numberOf(input))
      return Linear{{0, 0}, *number};
    if (!generic.getIndexingMapsArray()[element.getArgNumber()].isIdentity())
      return std::nullopt;
    return read(input, depth + 1);
  }
  Operation *op = scalar.getDefiningOp();
  if (!op || op->getBlock() != generic.getBody() || depth > 2 * kMaxOps)
    return std::nullopt;
  auto operand = [&](unsigned number) {
    return readScalar(generic, op->getOperand(number), depth + 1);
  };
  if (isa<arith::NegFOp>(op)) {
    std::optional<Linear> x = operand(0);
    return x ? std::optional(x->scaled(-1)) : std::nullopt;
  }
  if (!isa<arith::AddFOp, arith::SubFOp, arith::MulFOp, arith::DivFOp>(op))
    return std::nullopt;
  std::optional<Linear> x = operand(0), y = operand(1);
  if (!x || !y)
    return std::nullopt;
  if (isa<arith::AddFOp>(op))
    return x->plus(*y);
  if (isa<arith::SubFOp>(op))
    return x->plus(y->scaled(-1));
  if (isa<arith::DivFOp>(op))
    return y->isConstant() && y->constant != 0 ? std::optional(x->scaled(1 / y->constant))
                                               : std::nullopt;
  if (x->isConstant())
    std::swap(x, y);
  return y->isConstant() ? std::optional(x->scaled(y->constant)) : std::nullopt;
}

static bool isPointwise(linalg::GenericOp generic) {
  return generic.getNumResults() == 1 && generic.getNumReductionLoops() == 0 &&
         generic.getIndexingMapsArray().back().isIdentity();
}

std::optional<Linear> Reader::read(Value tensor, int depth) const {
  if (tensor == product)
    return Linear{{1, 0}, 0};
  if (tensor == argument)
    return Linear{{0, 1}, 0};
  auto generic = tensor.getDefiningOp<linalg::GenericOp>();
  if (!generic || !isPointwise(generic) || depth > 2 * kMaxOps)
    return std::nullopt;
  return readScalar(generic, generic.getBody()->getTerminator()->getOperand(0), depth);
}

/// The argument that the only reader of `value`, the function's end, replaces by it.
static BlockArgument replacedBy(func::FuncOp function, Value value) {
  OpOperand &use = *value.use_begin();
  auto feeds =
      function.getResultAttrOfType<IntegerAttr>(use.getOperandNumber(), DistDialect::kFeeds);
  if (!feeds)
    return {};
  BlockArgument found;
  for (BlockArgument argument : function.getArguments()) {
    auto original =
        function.getArgAttrOfType<IntegerAttr>(argument.getArgNumber(), DistDialect::kArgument);
    if ((original ? original.getInt() : argument.getArgNumber()) != feeds.getInt())
      continue;
    if (found)
      return {}; // one for each mesh
    found = argument;
  }
  return found && found.getType() == value.getType() ? found : BlockArgument();
}

/// The operand of which a scaled copy costs little: the smaller one, or the other one if the
/// smaller was made before it, since the kernel that makes an operand may make the copy as well.
static std::optional<unsigned> operandToScale(linalg::LinalgOp product, RankedTensorType type) {
  std::array<double, 2> sizes;
  for (unsigned i : {0, 1}) {
    auto operand = cast<RankedTensorType>(product->getOperand(i).getType());
    if (operand.getElementType() != type.getElementType())
      return std::nullopt;
    sizes[i] = static_cast<double>(operand.getNumElements());
  }
  auto isSmall = [&](unsigned i) {
    return isWorthScaling(sizes[i], static_cast<double>(type.getNumElements()));
  };
  unsigned smaller = sizes[1] < sizes[0], other = 1 - smaller;
  if (!isSmall(smaller))
    return std::nullopt;
  Operation *maker = product->getOperand(smaller).getDefiningOp();
  Operation *later = product->getOperand(other).getDefiningOp();
  bool isBefore =
      maker && later && maker->getBlock() == later->getBlock() && maker->isBeforeInBlock(later);
  return isBefore && isSmall(other) ? other : smaller;
}

static std::optional<Update> matchUpdate(func::FuncOp function, linalg::LinalgOp product) {
  auto type = product->getNumResults() == 1
                  ? dyn_cast<RankedTensorType>(product->getResult(0).getType())
                  : RankedTensorType();
  if (!type || !type.hasStaticShape() || !isa<Float32Type, Float64Type>(type.getElementType()) ||
      !isGemmLike(product) || product->getBlock() != &function.front())
    return std::nullopt;
  Value init = product.getDpsInits()[0];
  if (auto fill = init.getDefiningOp<linalg::FillOp>())
    init = fill.getInputs()[0];
  if (numberOf(init) != std::optional<double>(0))
    return std::nullopt;
  Value result = product->getResult(0);
  SmallPtrSet<Operation *, kMaxOps> between;
  SmallVector<OpOperand *> reads;
  for (int ops = 0; result.hasOneUse() && !isa<func::ReturnOp>(*result.user_begin()); ++ops) {
    auto next = dyn_cast<linalg::GenericOp>(*result.user_begin());
    if (!next || !isPointwise(next) || ops == kMaxOps || next->getResult(0).getType() != type)
      return std::nullopt;
    result = next->getResult(0);
    between.insert(next);
    for (OpOperand *operand : next.getDpsInputOperands())
      reads.push_back(operand);
  }
  if (!result.hasOneUse() || result == product->getResult(0))
    return std::nullopt;
  BlockArgument argument = replacedBy(function, result);
  if (!argument)
    return std::nullopt;
  std::optional<Linear> value = Reader(product->getResult(0), argument).read(result);
  if (!value || value->constant != 0 || value->factors[1] != 1 || value->factors[0] == 0)
    return std::nullopt;
  std::optional<unsigned> scaled = operandToScale(product, type);
  if (!scaled)
    return std::nullopt;
  Operation *after = product;
  SmallVector<Value> read{argument}; // and views of it
  while (!read.empty())
    for (Operation *user : read.pop_back_val().getUsers()) {
      Operation *reader = function.front().findAncestorOpInBlock(*user);
      if (reader == result.getDefiningOp())
        continue;
      if (isa<func::ReturnOp>(reader) || between.contains(reader))
        return std::nullopt;
      if (after->isBeforeInBlock(reader))
        after = reader;
      if (Liveness::isView(reader))
        read.push_back(reader->getResult(0));
    }
  return Update{product, result, argument, value->factors[0], *scaled, after, reads};
}

SmallVector<Update> dist::updatesOf(func::FuncOp function) {
  SmallVector<Update> updates;
  if (!function.isExternal() && function.getBody().hasOneBlock())
    for (auto product : function.front().getOps<linalg::LinalgOp>())
      if (std::optional<Update> update = matchUpdate(function, product))
        updates.push_back(*update);
  return updates;
}
