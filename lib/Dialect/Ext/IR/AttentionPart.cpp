//===- AttentionPart.cpp - A device's part of an attention ----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionPart.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::ext;
using sharding::FactorKind;

unsigned ext::dimOf(AffineMap map, unsigned loop) {
  return *map.getResultPosition(getAffineDimExpr(loop, map.getContext()));
}

Part::Part(dist::PartitionContext &context)
    : context(context), parts(partsOf(context.op)), factors(parts.factors()),
      shifts(factors.size(), 0) {
  for (unsigned index = 0; index < context.op->getNumOperands(); ++index)
    operands.push_back(context.getMaskedOperand(index));
  for (auto [loop, factor] : llvm::enumerate(factors))
    if (factor >= 0 && context.getRule().factors[factor].kind == FactorKind::reduction &&
        context.isUneven(factor))
      limits.push_back({loop, parts.domain.extents[loop]});
  auto isCut = [&](unsigned query) { return !context.getFactorAxes()[factors[query]].empty(); };
  band = keyBandOf(parts);
  ring = ringQueryOf(parts);
  if (band && !isCut(band->query))
    band.reset();
  if (ring && !isCut(*ring))
    ring.reset();
  if (!band && !ring)
    return;
  unsigned query = band ? band->query : *ring, key = parts.domain.key;
  if (band) {
    factors[key] = factors[query];
    shifts[key] = band->first;
    leaveOutBeyond(key);
  }
  if (isa<AttentionBackwardOp>(context.op) && context.isUneven(factors[query]))
    leaveOutBeyond(query); // gradients by keys sum over queries
}

Value Part::globalIndex(OpBuilder &at, Location loc, unsigned loop, Value local) const {
  int64_t factor = factors[loop];
  if (factor < 0 || context.getFactorAxes()[factor].empty())
    return local;
  Value index = context.getGlobalIteration(at, loc, factor, local);
  if (shifts[loop] == 0)
    return index;
  return arith::AddIOp::create(at, loc, index,
                               arith::ConstantIndexOp::create(at, loc, shifts[loop]));
}

void Part::leaveOutBeyond(unsigned loop) {
  Local write{context.builder, context.op->getLoc()};
  int64_t extent = parts.domain.extents[loop];
  limits.push_back({loop, extent});
  Value begin = globalIndex(context.builder, write.loc, loop, write.index(0));
  for (auto [operand, map] : llvm::zip(operands, parts.maps))
    if (hasLoop(map, loop))
      operand = write.zeroOutside(operand, dimOf(map, loop), begin, extent);
}
