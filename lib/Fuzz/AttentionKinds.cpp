//===- AttentionKinds.cpp - Attention -------------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ProgramBuilder.h"

#include "tessera/Dialect/Ext/IR/ExtDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::fuzz;

/// Two bits of a hash of the indices of a score and a word: whether a share is kept.
static Value isKept(OpBuilder &b, Location loc, ValueRange indices, Value word) {
  auto number = [&](int64_t value) -> Value {
    return arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(static_cast<int32_t>(value)));
  };
  Value hash = word;
  for (Value index : indices) {
    Value place = arith::IndexCastOp::create(b, loc, b.getI32Type(), index);
    hash = arith::MulIOp::create(b, loc, hash, number(0x9E3779B1));
    hash = arith::XOrIOp::create(b, loc, hash, arith::ShRUIOp::create(b, loc, hash, number(15)));
    hash = arith::AddIOp::create(b, loc, hash, place);
  }
  hash = arith::MulIOp::create(b, loc, hash, number(0x85EBCA77));
  Value bits = arith::ShRUIOp::create(b, loc, hash, number(30));
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, bits, number(0));
}

/// Attention, perhaps under a causal mask, and perhaps with a quarter of the shares dropped.
static bool attention(ProgramBuilder &p) {
  Entry q = p.any(3, 3, [](const Entry &entry) {
    return (entry.element().isF32() || entry.element().isF64()) &&
           !llvm::is_contained(entry.shape(), 0);
  });
  if (!q.value)
    return false;
  int64_t batch = q.shape()[0], queries = q.shape()[1], features = q.shape()[2];
  int64_t keys = p.anySize(), width = p.random.between(1, 5);
  constexpr double kMost = 4;
  Entry k = p.within(p.ofType({batch, keys, features}, q.element()), kMost);
  Entry v = p.ofType({batch, keys, width}, q.element());
  q = p.within(q, kMost);
  bool isCausal = p.random.percent(40), isDropped = p.random.percent(60);
  SmallVector<Value> operands{q.value, k.value, v.value};
  enum { b, m, n, f, g, numLoops };
  auto map = [&](ArrayRef<unsigned> loops) {
    SmallVector<AffineExpr> exprs;
    for (unsigned loop : loops)
      exprs.push_back(p.b.getAffineDimExpr(loop));
    return AffineMap::get(numLoops, 0, exprs, p.b.getContext());
  };
  SmallVector<AffineMap> maps{map({b, m, f}), map({b, n, f}), map({b, n, g})};
  if (isDropped) {
    operands.push_back(p.fresh({}, p.b.getI32Type()).value);
    maps.push_back(map({}));
  }
  maps.push_back(map({b, m, g}));
  auto type = RankedTensorType::get({batch, queries, width}, q.element());
  auto op =
      ext::AttentionOp::create(p.b, p.loc, TypeRange{type}, operands[0], operands[1], operands[2],
                               ArrayRef(operands).drop_front(3), p.b.getAffineMapArrayAttr(maps));
  // The arguments of both regions: a float, the word, indices.
  auto addRegion = [&](Region &region, auto body) {
    Block &block = region.emplaceBlock();
    block.addArgument(q.element(), p.loc);
    if (isDropped)
      block.addArgument(p.b.getI32Type(), p.loc);
    for (unsigned loop = 0; loop < numLoops; ++loop)
      block.addArgument(p.b.getIndexType(), p.loc);
    OpBuilder inner = OpBuilder::atBlockEnd(&block);
    ValueRange indices = ValueRange(block.getArguments()).take_back(numLoops);
    ext::YieldOp::create(inner, p.loc, body(inner, block.getArgument(0), indices));
  };
  auto constant = [&](OpBuilder &inner, const APFloat &value) -> Value {
    return arith::ConstantOp::create(inner, p.loc,
                                     cast<TypedAttr>(FloatAttr::get(q.element(), value)));
  };
  const llvm::fltSemantics &semantics = cast<FloatType>(q.element()).getFloatSemantics();
  addRegion(op.getScore(), [&](OpBuilder &inner, Value product, ValueRange indices) -> Value {
    if (!isCausal)
      return product;
    Value sees =
        arith::CmpIOp::create(inner, p.loc, arith::CmpIPredicate::sge, indices[m], indices[n]);
    Value least = constant(inner, APFloat::getInf(semantics, true));
    return arith::SelectOp::create(inner, p.loc, sees, product, least);
  });
  if (isDropped)
    addRegion(op.getWeights(), [&](OpBuilder &inner, Value share, ValueRange indices) -> Value {
      Value word = op.getWeights().getArgument(1);
      Value keeps = isKept(inner, p.loc, indices.take_front(3), word);
      APFloat portion(0.75);
      bool losesInfo = false;
      portion.convert(semantics, APFloat::rmNearestTiesToEven, &losesInfo);
      Value scaled = arith::DivFOp::create(inner, p.loc, share, constant(inner, portion));
      Value zero = constant(inner, APFloat::getZero(semantics));
      return arith::SelectOp::create(inner, p.loc, keeps, scaled, zero);
    });
  double most = v.magnitude() / 0.75;
  p.push(op.getOutput(), -most, most, false, std::max({q.steps, k.steps, v.steps}) + 4);
  return true;
}

void tessera::fuzz::addAttentionKinds(std::vector<Kind> &kinds) {
  kinds.push_back({"attention", 2, attention});
}
