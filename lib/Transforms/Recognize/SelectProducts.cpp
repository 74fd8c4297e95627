//===- SelectProducts.cpp - Products with one-hot operands ----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   y[i, j] = sum over v of m[i, v] x[v, j]        m[i, v] = index[i] == v ? g[i] : 0
//
// becomes a sum of which one term counts, and its derivative a scatter:
//
//   y[i, j] = sum over v of select(index[i] == v, g[i] x[v, j], 0)
//   x[v, j] = sum over i of select(index[i] == v, g[i] y[i, j], 0)
//
// The omitted products have a zero factor; they matter only if x is infinite or NaN.
//
//===----------------------------------------------------------------------===//

#include "SelectProducts.h"

#include "ElementExpressions.h"
#include "MatchAttention.h"

#include "tessera/Dialect/Dist/Rules/Selection.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

/// Limits of the search: producers of an operand, and scalar ops of its formula.
static constexpr int kMostProducers = 16;
static constexpr int kMostOps = 48;

namespace {

/// A sum of products of one element of each of two operands.
struct Product {
  linalg::LinalgOp op;
  Operation *multiply; ///< in the body
};

/// A formula that is the product of `others` if all `conditions` hold, else 0.
struct Factors {
  SmallVector<int, 2> conditions, others;
};

} // namespace

static Value withoutCasts(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isa<arith::ExtFOp, arith::TruncFOp, arith::ExtSIOp, arith::ExtUIOp>(op))
      break;
    value = op->getOperand(0);
  }
  return value;
}

static std::optional<Product> matchProduct(linalg::LinalgOp op) {
  if (op.getNumDpsInputs() != 2 || op.getNumDpsInits() != 1 || op.getNumReductionLoops() == 0 ||
      !op.hasPureTensorSemantics() || op.hasDynamicShape() ||
      !op->getDiscardableAttrDictionary().empty() ||
      !llvm::all_of(op.getIndexingMapsArray(),
                    [](AffineMap map) { return map.isProjectedPermutation(); }) ||
      !llvm::all_of(op->getOperandTypes(), llvm::IsaPred<RankedTensorType>))
    return std::nullopt;
  Block &block = *op.getBlock();
  BlockArgument accumulator = op.getRegionOutputArgs().front();
  Operation *sum = block.getTerminator()->getOperand(0).getDefiningOp();
  if (!isa_and_nonnull<arith::AddFOp, arith::AddIOp>(sum) || !accumulator.hasOneUse() ||
      !llvm::is_contained(sum->getOperands(), accumulator))
    return std::nullopt;
  Value term = sum->getOperand(sum->getOperand(0) == accumulator ? 1 : 0);
  Operation *multiply = withoutCasts(term).getDefiningOp();
  if (!isa_and_nonnull<arith::MulFOp, arith::MulIOp>(multiply) || !multiply->hasOneUse() ||
      multiply->getResult(0).getType().isInteger(1))
    return std::nullopt;
  Value left = withoutCasts(multiply->getOperand(0)), right = withoutCasts(multiply->getOperand(1));
  if ((left == block.getArgument(0) && right == block.getArgument(1)) ||
      (left == block.getArgument(1) && right == block.getArgument(0)))
    return Product{op, multiply};
  return std::nullopt;
}

/// Whether a comparison of integers may have made the elements: a quick search.
static bool mayBeOneHot(Value value) {
  SmallVector<Value> open{value};
  for (int visited = 0; !open.empty() && visited < kMostProducers; ++visited) {
    Operation *op = open.pop_back_val().getDefiningOp();
    if (!op)
      continue;
    auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
    if (linalgOp && linalgOp.getNumParallelLoops() == linalgOp.getNumLoops()) {
      for (auto compare : linalgOp.getBlock()->getOps<arith::CmpIOp>())
        if (compare.getPredicate() == arith::CmpIPredicate::eq)
          return true;
      llvm::append_range(open, linalgOp.getDpsInputs());
    } else if (isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(op)) {
      open.push_back(op->getOperand(0));
    }
  }
  return false;
}

//===----------------------------------------------------------------------===//
// Formulas
//===----------------------------------------------------------------------===//

static bool isNumber(const ElementExpressions &nodes, int node, int64_t number) {
  Attribute value;
  const ElementExpressions::Node &own = nodes[node];
  if (own.kind != ElementExpressions::Kind::op || !own.op ||
      !matchPattern(own.op, m_Constant(&value)))
    return false;
  if (auto real = dyn_cast<FloatAttr>(value))
    return real.getValue().isExactlyValue(static_cast<double>(number));
  auto integer = dyn_cast<IntegerAttr>(value);
  return integer && integer.getValue() == static_cast<uint64_t>(number);
}

/// A formula of 0 and 1 without conversions that keep these values.
static int withoutConversions(const ElementExpressions &nodes, int node) {
  while (true) {
    const ElementExpressions::Node &own = nodes[node];
    if (own.kind != ElementExpressions::Kind::op ||
        !isa<arith::ExtFOp, arith::TruncFOp, arith::UIToFPOp, arith::SIToFPOp, arith::ExtUIOp,
             arith::ExtSIOp, arith::TruncIOp, arith::FPToSIOp, arith::FPToUIOp>(own.op))
      return node;
    int inner = own.operands.front();
    bool isSigned = isa<arith::SIToFPOp, arith::ExtSIOp, arith::FPToSIOp>(own.op);
    if ((isSigned && nodes[inner].type.isInteger(1)) || // true is -1
        own.type.isInteger(1))
      return node;
    node = inner;
  }
}

/// Adds the conditions under which a formula is 1; it is 0 otherwise. Returns whether it is such.
static bool addIndicator(const ElementExpressions &nodes, int node, Factors &found) {
  int inner = withoutConversions(nodes, node);
  const ElementExpressions::Node &own = nodes[inner];
  if (own.kind != ElementExpressions::Kind::op)
    return false;
  if (own.type.isInteger(1)) {
    found.conditions.push_back(inner);
    return true;
  }
  if (isa<arith::SelectOp>(own.op) && nodes[own.operands[0]].type.isInteger(1) &&
      isNumber(nodes, own.operands[2], 0)) {
    size_t before = found.conditions.size();
    found.conditions.push_back(own.operands[0]);
    if (isNumber(nodes, own.operands[1], 1) || addIndicator(nodes, own.operands[1], found))
      return true;
    found.conditions.truncate(before);
    return false;
  }
  if (!isa<arith::MulFOp, arith::MulIOp>(own.op))
    return false;
  size_t before = found.conditions.size();
  if (addIndicator(nodes, own.operands[0], found) && addIndicator(nodes, own.operands[1], found))
    return true;
  found.conditions.truncate(before);
  return false;
}

static void addFactors(const ElementExpressions &nodes, int node, Factors &found) {
  if (addIndicator(nodes, node, found))
    return;
  const ElementExpressions::Node own = nodes[node];
  if (own.kind == ElementExpressions::Kind::op && isa<arith::MulFOp, arith::MulIOp>(own.op)) {
    addFactors(nodes, own.operands[0], found);
    addFactors(nodes, own.operands[1], found);
  } else if (own.kind == ElementExpressions::Kind::op && isa<arith::SelectOp>(own.op) &&
             nodes[own.operands[0]].type.isInteger(1) && isNumber(nodes, own.operands[2], 0)) {
    found.conditions.push_back(own.operands[0]);
    addFactors(nodes, own.operands[1], found);
  } else {
    found.others.push_back(node);
  }
}

/// Whether a condition compares the index of a loop with something else.
static bool comparesIndex(const ElementExpressions &nodes, int condition) {
  const ElementExpressions::Node &own = nodes[condition];
  if (own.kind != ElementExpressions::Kind::op)
    return false;
  if (isa<arith::AndIOp>(own.op))
    return comparesIndex(nodes, own.operands[0]) || comparesIndex(nodes, own.operands[1]);
  auto compare = dyn_cast<arith::CmpIOp>(own.op);
  return compare && compare.getPredicate() == arith::CmpIPredicate::eq;
}

//===----------------------------------------------------------------------===//
// Rewriting
//===----------------------------------------------------------------------===//

namespace {

/// Writes formulas in a body.
class FormulaWriter {
public:
  FormulaWriter(const ElementExpressions &nodes, unsigned numLoops)
      : nodes(nodes), numLoops(numLoops) {}

  /// Collects the tensors that a formula reads. Returns whether it can be written.
  bool collect(int node);
  Value write(OpBuilder &b, Location loc, int node, ValueRange arguments);

  SmallVector<Value> inputs;
  SmallVector<AffineMap> maps;

private:
  const ElementExpressions &nodes;
  unsigned numLoops;
  llvm::DenseMap<int, unsigned> inputOf; ///< by element
  llvm::DenseSet<int> seen;              ///< looked up only
  llvm::DenseMap<int, Value> written;    ///< looked up only
};

} // namespace

bool FormulaWriter::collect(int node) {
  if (!seen.insert(node).second)
    return true;
  const ElementExpressions::Node own = nodes[node];
  if (seen.size() > kMostOps)
    return false;
  if (own.kind == ElementExpressions::Kind::index)
    return isa<AffineDimExpr>(own.index);
  if (own.kind == ElementExpressions::Kind::op)
    return llvm::all_of(own.operands, [&](int operand) { return collect(operand); });
  if (own.kind != ElementExpressions::Kind::element)
    return false;
  for (AffineExpr index : own.indices) {
    auto number = dyn_cast<AffineConstantExpr>(index);
    if (!isa<AffineDimExpr>(index) && !(number && number.getValue() == 0))
      return false;
  }
  inputOf[node] = inputs.size();
  inputs.push_back(own.tensor);
  maps.push_back(AffineMap::get(numLoops, 0, own.indices, own.tensor.getContext()));
  return true;
}

Value FormulaWriter::write(OpBuilder &b, Location loc, int node, ValueRange arguments) {
  if (auto it = written.find(node); it != written.end())
    return it->second;
  const ElementExpressions::Node own = nodes[node];
  Value made;
  if (own.kind == ElementExpressions::Kind::index) {
    made = linalg::IndexOp::create(b, loc, cast<AffineDimExpr>(own.index).getPosition());
  } else if (own.kind == ElementExpressions::Kind::element) {
    made = arguments[inputOf.lookup(node)];
  } else {
    SmallVector<Value> operands;
    for (int operand : own.operands)
      operands.push_back(write(b, loc, operand, arguments));
    Operation *copy = b.clone(*own.op); // one value of the original may be two operands
    copy->setOperands(operands);
    made = copy->getResult(0);
  }
  return written[node] = made;
}

/// The product as a sum that selects, if operand `number` is one-hot; null otherwise.
static linalg::GenericOp select(const Product &product, unsigned number) {
  linalg::LinalgOp op = product.op;
  OpOperand *oneHot = op.getDpsInputOperand(number);
  OpOperand *other = op.getDpsInputOperand(1 - number);
  if (!mayBeOneHot(oneHot->get()))
    return {};
  Loops loops{op.getStaticLoopRanges()};
  SmallVector<unsigned> reductions;
  op.getReductionDims(reductions);
  AffineMap read = op.getMatchingIndexingMap(oneHot);
  const unsigned *reduced =
      llvm::find_if(reductions, [&](unsigned loop) { return read.isFunctionOfDim(loop); });
  if (reduced == reductions.end())
    return {};
  ElementExpressions nodes(loops, op, *reduced);
  int formula = nodes.evaluate(oneHot->get(), read.getResults());
  if (formula == ElementExpressions::kNone)
    return {};
  Factors factors;
  addFactors(nodes, formula, factors);
  // A matrix of indices only may be a band (NarrowBands.h).
  if (llvm::none_of(factors.conditions, [&](int condition) {
        return comparesIndex(nodes, condition) &&
               nodes.contains(condition, ElementExpressions::Kind::element);
      }))
    return {};
  FormulaWriter writer(nodes, op.getNumLoops());
  Type type = product.multiply->getResult(0).getType();
  for (int condition : factors.conditions)
    if (!writer.collect(condition))
      return {};
  for (int factor : factors.others)
    if (nodes[factor].type != type || !writer.collect(factor))
      return {};

  SmallVector<Value> inputs{other->get()};
  SmallVector<AffineMap> maps{op.getMatchingIndexingMap(other)};
  llvm::append_range(inputs, writer.inputs);
  llvm::append_range(maps, writer.maps);
  maps.push_back(op.getMatchingIndexingMap(op.getDpsInitOperand(0)));
  for (unsigned loop = 0; loop < op.getNumLoops(); ++loop)
    if (llvm::none_of(maps, [&](AffineMap map) { return map.isFunctionOfDim(loop); }))
      return {};
  OpBuilder b(op);
  Location loc = op.getLoc();
  Block &old = *op.getBlock();
  auto made = linalg::GenericOp::create(
      b, loc, op->getResultTypes(), inputs, op.getDpsInits(), maps, op.getIteratorTypesArray(),
      [&](OpBuilder &body, Location at, ValueRange arguments) {
        ValueRange leaves = arguments.drop_front().drop_back();
        IRMapping mapping;
        mapping.map(old.getArgument(1 - number), arguments.front());
        mapping.map(old.getArguments().back(), arguments.back());
        for (Operation &inner : old) {
          if (&inner != product.multiply) {
            // Conversions of the one-hot operand are not needed.
            if (llvm::all_of(inner.getOperands(), [&](Value operand) {
                  return operand.getParentBlock() != &old || mapping.contains(operand);
                }))
              body.clone(inner, mapping);
            continue;
          }
          Value term = mapping.lookupOrNull(inner.getOperand(0));
          if (!term)
            term = mapping.lookup(inner.getOperand(1));
          for (int factor : factors.others) {
            Value value = writer.write(body, at, factor, leaves);
            term = isa<FloatType>(type) ? arith::MulFOp::create(body, at, value, term).getResult()
                                        : arith::MulIOp::create(body, at, value, term).getResult();
          }
          Value found;
          for (int condition : factors.conditions) {
            Value holds = writer.write(body, at, condition, leaves);
            found = found ? arith::AndIOp::create(body, at, found, holds).getResult() : holds;
          }
          Value zero = arith::ConstantOp::create(body, at, body.getZeroAttr(type));
          mapping.map(inner.getResult(0),
                      arith::SelectOp::create(body, at, found, term, zero).getResult());
        }
      });
  if (!replaceableLoops(made).empty())
    return made;
  made.erase();
  return {};
}

void dist::selectProducts(func::FuncOp function) {
  SmallVector<Product> products;
  function.walk([&](linalg::LinalgOp op) {
    if (std::optional<Product> product = matchProduct(op))
      products.push_back(*product);
  });
  bool isChanged = false;
  for (const Product &product : products)
    for (unsigned number : {0, 1})
      if (linalg::GenericOp made = select(product, number)) {
        product.op->getResult(0).replaceAllUsesWith(made.getResult(0));
        isChanged = true;
        break;
      }
  if (isChanged)
    eraseDeadTensorOps(function);
}
