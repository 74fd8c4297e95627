//===- GpuEmitIndex.cpp - Indices of the loops of a launch ----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GpuEmitter.h"

using namespace mlir;

namespace tessera::codegen {

int64_t GpuEmitter::ownVolume(const GpuMember &member) {
  int64_t volume = 1;
  for (unsigned loop : GpuGroup::ownLoops(member))
    volume *= member.extents[loop];
  return volume;
}

/// Whether indices may exceed 32 bits: the iterations of a launch, or those of a row.
bool GpuEmitter::needsWideIndices(const GpuGroup &group, const GpuLaunchLimits &limits) {
  bool wide = group.count() >= limits.narrowIterations;
  for (const GpuMember &member : group.members)
    wide |= ownVolume(member) >= limits.narrowIterations;
  return wide;
}

Value GpuEmitter::evaluate(const FlatAccess &access, Value at) {
  Value result;
  int64_t below = 1;
  for (auto [i, dim] : llvm::enumerate(access.dims)) {
    if (dim.step != 0) {
      Value digit = divide(at, below);
      if (i + 1 < access.dims.size())
        digit = remainder(digit, dim.extent);
      result = add(result, multiply(digit, dim.step));
    }
    below *= dim.extent;
  }
  return result;
}

Value GpuEmitter::digit(ArrayRef<int64_t> extents, unsigned place, const Chunk &chunk) {
  int64_t below = 1, extent = extents[place];
  for (int64_t inner : extents.drop_front(place + 1))
    below *= inner;
  bool outermost = place == 0;
  auto scalar = [&](Value at) {
    Value quotient = divide(at, below);
    return outermost ? quotient : remainder(quotient, extent);
  };
  if (chunk.lanes == 0 || (below % chunk.lanes == 0 && !chunk.shifted))
    return scalar(chunk.at);
  auto type = VectorType::get(chunk.lanes, b.getIndexType());
  SmallVector<int64_t> steps = llvm::to_vector(llvm::seq<int64_t>(0, chunk.lanes));
  auto splat = [&](int64_t value) -> Value {
    return arith::ConstantOp::create(b, loc, DenseElementsAttr::get(type, b.getIndexAttr(value)));
  };
  Value lanes = arith::ConstantOp::create(b, loc, b.getIndexVectorAttr(steps));
  bool together = below == 1 && !chunk.shifted && (outermost || extent % chunk.lanes == 0);
  Value first = together ? scalar(chunk.at) : chunk.at;
  Value all =
      arith::AddIOp::create(b, loc, vector::BroadcastOp::create(b, loc, type, first), lanes);
  if (together) {
    consecutive[all] = first;
    return all;
  }
  if (chunk.full) {
    all = arith::MaxSIOp::create(b, loc, all, splat(0));
    all = arith::MinSIOp::create(b, loc, all, splat(chunk.volume - 1));
  }
  if (below != 1)
    all = arith::DivUIOp::create(b, loc, all, splat(below));
  return outermost ? all : arith::RemUIOp::create(b, loc, all, splat(extent)).getResult();
}

Value GpuEmitter::indexOf(const GpuMember &member, unsigned loop, const Chunk &chunk) {
  int c = member.classOf[loop];
  if (c >= 0) {
    if (!group.rows)
      return digit(group.extents, c, chunk);
    Chunk here;
    here.at = row;
    return digit(group.extents, c, here);
  }
  if (member.extents[loop] == 1)
    return constant(0);
  if (!group.rows)
    return ownIndex[loop];
  SmallVector<unsigned> own = GpuGroup::ownLoops(member);
  SmallVector<int64_t> extents;
  for (unsigned l : own)
    extents.push_back(member.extents[l]);
  return digit(extents, llvm::find(own, loop) - own.begin(), chunk);
}

} // namespace tessera::codegen
