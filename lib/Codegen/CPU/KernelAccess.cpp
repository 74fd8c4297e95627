//===- KernelAccess.cpp - Loads and stores of the emitter -----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelEmitter.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;

namespace tessera::codegen {

/// The operand's buffer as one dimension of elements: the nest's addresses are then plain indices,
/// and a vector is contiguous in any dimension.
Value NestEmitter::view(const NestOperand &operand) {
  Value buffer = operand.operand->get();
  auto type = cast<MemRefType>(buffer.getType());
  auto metadata = memref::ExtractStridedMetadataOp::create(b, loc, buffer);
  auto flat = MemRefType::get({operand.span}, type.getElementType(),
                              StridedLayoutAttr::get(b.getContext(), ShapedType::kDynamic, {1}),
                              type.getMemorySpace());
  return memref::ReinterpretCastOp::create(b, loc, flat, metadata.getBaseBuffer(),
                                           OpFoldResult(metadata.getOffset()),
                                           ArrayRef<OpFoldResult>{b.getIndexAttr(operand.span)},
                                           ArrayRef<OpFoldResult>{b.getIndexAttr(1)});
}

Value NestEmitter::address(const NestOperand &operand, int64_t jam, int64_t begin) {
  int64_t offset = operand.base;
  Value variable;
  for (auto [i, step] : llvm::enumerate(operand.step)) {
    if (step == 0)
      continue;
    offset += step * (position[i].offset + (int(i) == plan.jam ? jam : 0) +
                      (int(i) == plan.vector ? begin : 0));
    if (!position[i].iv)
      continue;
    Value term = position[i].iv;
    if (step != 1)
      term = arith::MulIOp::create(b, loc, term, constant(step));
    variable = variable ? arith::AddIOp::create(b, loc, variable, term) : term;
  }
  if (!variable)
    return constant(offset);
  return offset ? arith::AddIOp::create(b, loc, variable, constant(offset)) : variable;
}

Value NestEmitter::load(const NestOperand &operand, int64_t jam, Chunk chunk) {
  unsigned number = operand.operand->getOperandNumber();
  if (operand.scalar)
    return views[number];
  int64_t step = plan.vector < 0 ? 0 : operand.step[plan.vector];
  bool jammed = plan.jam >= 0 && operand.step[plan.jam] != 0;
  int64_t width = step ? chunk.width : 0, begin = step ? chunk.begin : 0;
  auto key = std::make_tuple(number, jammed ? jam : 0, begin, width);
  // An output is written between its copies' loads: never shared.
  if (!operand.output)
    if (auto it = loaded.find(key); it != loaded.end())
      return it->second;

  Value value;
  if (width == 0) {
    value = memref::LoadOp::create(b, loc, views[number], address(operand, jam, begin));
  } else if (step == 1) {
    value = vector::LoadOp::create(b, loc, VectorType::get(width, operand.element), views[number],
                                   address(operand, jam, begin));
  } else if (plan.transpose && !operand.output && operand.step[plan.jam] == 1 &&
             chunk.width == plan.lanes && (jam / plan.lanes + 1) * plan.lanes <= currentJams) {
    value = loadTransposed(operand, jam);
  } else if (step >= 2 && step <= 4 && !operand.output) {
    // Everything between the first and the last element, then every step-th of it.
    auto wide = VectorType::get((width - 1) * step + 1, operand.element);
    Value all = vector::LoadOp::create(b, loc, wide, views[number], address(operand, jam, begin));
    SmallVector<int64_t> mask;
    for (int64_t lane = 0; lane < width; ++lane)
      mask.push_back(lane * step);
    value = vector::ShuffleOp::create(b, loc, all, all, mask);
  } else {
    Values lanes;
    for (int64_t lane = 0; lane < width; ++lane)
      lanes.push_back(
          memref::LoadOp::create(b, loc, views[number], address(operand, jam, begin + lane)));
    value = vector::FromElementsOp::create(b, loc, VectorType::get(width, operand.element), lanes);
  }
  if (!operand.output)
    loaded[key] = value;
  return value;
}

/// Vector `jam` of square blocks side by side, contiguous in the jammed direction. The first
/// request for a vector of a block loads the whole block and transposes it in log2(lanes) rounds of
/// interleaving.
Value NestEmitter::loadTransposed(const NestOperand &operand, int64_t jam) {
  unsigned number = operand.operand->getOperandNumber();
  if (auto it = transposed.find({number, jam}); it != transposed.end())
    return it->second;
  int64_t n = plan.lanes, first = jam / n * n;
  Values rows;
  for (int64_t lane = 0; lane < n; ++lane)
    rows.push_back(vector::LoadOp::create(b, loc, VectorType::get(n, operand.element),
                                          views[number], address(operand, first, lane)));
  // Interleaving row i with row i + n/2 rotates the bits of (row, lane) by one place; after log2(n)
  // rounds rows and lanes have changed places.
  SmallVector<int64_t> low, high;
  for (int64_t i = 0; i < n / 2; ++i) {
    low.append({i, n + i});
    high.append({n / 2 + i, n + n / 2 + i});
  }
  for (int64_t round = 1; round < n; round *= 2) {
    Values next;
    for (int64_t i = 0; i < n / 2; ++i) {
      next.push_back(vector::ShuffleOp::create(b, loc, rows[i], rows[i + n / 2], low));
      next.push_back(vector::ShuffleOp::create(b, loc, rows[i], rows[i + n / 2], high));
    }
    rows = std::move(next);
  }
  for (int64_t i = 0; i < n; ++i)
    transposed[{number, first + i}] = rows[i];
  return rows[jam - first];
}

void NestEmitter::store(const NestOperand &operand, int64_t jam, Chunk chunk, Value value) {
  unsigned number = operand.operand->getOperandNumber();
  auto type = dyn_cast<VectorType>(value.getType());
  if (!type) {
    memref::StoreOp::create(b, loc, value, views[number], address(operand, jam, chunk.begin));
  } else if (operand.step[plan.vector] == 1) {
    vector::StoreOp::create(b, loc, value, views[number], address(operand, jam, chunk.begin));
  } else {
    for (int64_t lane = 0; lane < type.getNumElements(); ++lane)
      memref::StoreOp::create(b, loc, vector::ExtractOp::create(b, loc, value, lane), views[number],
                              address(operand, jam, chunk.begin + lane));
  }
}

} // namespace tessera::codegen
