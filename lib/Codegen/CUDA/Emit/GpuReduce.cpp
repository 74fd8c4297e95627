//===- GpuReduce.cpp - Combine the partial results of a row's threads -----===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GpuEmitter.h"

#include "../../Kernels/KernelLanes.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;

namespace tessera::codegen {

/// So many parts of a block's reduction are combined by each thread, more by shuffles.
static constexpr int64_t kFewParts = 8;

/// The neutral element of a reduction, in each of a chunk's lanes.
Value GpuEmitter::neutralOf(vector::CombiningKind kind, Type element, int64_t lanes) {
  return widen(b, loc, arith::ConstantOp::create(b, loc, neutralElement(kind, element)), lanes);
}

/// Combines a chunk's lanes, in order.
Value GpuEmitter::overLanes(Value value, vector::CombiningKind kind) {
  auto type = dyn_cast<VectorType>(value.getType());
  if (!type)
    return value;
  Value all = vector::ExtractOp::create(b, loc, value, 0);
  for (int64_t lane = 1; lane < type.getNumElements(); ++lane)
    all = vector::makeArithReduction(b, loc, kind, all,
                                     vector::ExtractOp::create(b, loc, value, lane));
  return all;
}

Value overWords(OpBuilder &b, Location loc, Value value, function_ref<Value(Value)> exchange) {
  Type type = value.getType(), i32 = b.getI32Type();
  unsigned bits = type.isIndex() ? 64 : type.getIntOrFloatBitWidth();
  Type integer = b.getIntegerType(bits);
  Value raw = value;
  if (type.isIndex())
    raw = arith::IndexCastOp::create(b, loc, integer, value);
  else if (isa<FloatType>(type))
    raw = arith::BitcastOp::create(b, loc, integer, value);
  if (bits == 64) {
    Value half = arith::ConstantIntOp::create(b, loc, 32, 64);
    Value low = exchange(arith::TruncIOp::create(b, loc, i32, raw));
    Value high =
        exchange(arith::TruncIOp::create(b, loc, i32, arith::ShRUIOp::create(b, loc, raw, half)));
    high = arith::ShLIOp::create(b, loc, arith::ExtUIOp::create(b, loc, integer, high), half);
    raw = arith::OrIOp::create(b, loc, high, arith::ExtUIOp::create(b, loc, integer, low));
  } else if (bits == 32) {
    raw = exchange(raw);
  } else {
    raw = arith::TruncIOp::create(b, loc, integer,
                                  exchange(arith::ExtUIOp::create(b, loc, i32, raw)));
  }
  if (type.isIndex())
    return arith::IndexCastOp::create(b, loc, type, raw);
  return isa<FloatType>(type) ? arith::BitcastOp::create(b, loc, type, raw).getResult() : raw;
}

Value GpuEmitter::shuffleXor(Value value, int64_t distance) {
  return overWords(b, loc, value, [&](Value word) -> Value {
    return gpu::ShuffleOp::create(b, loc, word, static_cast<int32_t>(distance), 32,
                                  gpu::ShuffleMode::XOR)
        .getShuffleResult();
  });
}

Value GpuEmitter::teamReduce(Value value, vector::CombiningKind kind) {
  Type type = value.getType();
  auto combine = [&](int64_t width) {
    for (int64_t distance = width / 2; distance > 0; distance /= 2)
      value = vector::makeArithReduction(b, loc, kind, value, shuffleXor(value, distance));
  };
  combine(std::min(team, kWarp));
  if (team <= kWarp)
    return value;
  ++sharedReductions;
  int64_t warps = team / kWarp;
  Value parts = launch.shared(type, warps);
  Value warp = divide(lane, kWarp), within = remainder(lane, kWarp);
  auto equal = [&](Value left, int64_t right) -> Value {
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, left, constant(right));
  };
  {
    auto branch = scf::IfOp::create(b, loc, equal(within, 0), /*withElse=*/false);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    memref::StoreOp::create(b, loc, value, parts, warp);
  }
  gpu::BarrierOp::create(b, loc);
  // Every thread adds up a few parts itself.
  if (warps <= kFewParts) {
    value = memref::LoadOp::create(b, loc, parts, constant(0));
    for (int64_t other = 1; other < warps; ++other)
      value = vector::makeArithReduction(b, loc, kind, value,
                                         memref::LoadOp::create(b, loc, parts, constant(other)));
    return value;
  }
  // Every group of `width` lanes reads all parts, so every lane gets the result.
  auto width = static_cast<int64_t>(llvm::PowerOf2Ceil(warps));
  Value which = remainder(within, width);
  if (width != warps) {
    Value there = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, which, constant(warps));
    Value safe = arith::SelectOp::create(b, loc, there, which, constant(0));
    Value part = memref::LoadOp::create(b, loc, parts, safe);
    value = arith::SelectOp::create(b, loc, there, part, neutralOf(kind, type, /*lanes=*/0));
  } else {
    value = memref::LoadOp::create(b, loc, parts, which);
  }
  combine(width);
  return value;
}

} // namespace tessera::codegen
