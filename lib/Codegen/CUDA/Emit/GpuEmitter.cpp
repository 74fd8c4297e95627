//===- GpuEmitter.cpp - Emit the code of one thread of a launch -----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GpuEmitter.h"

#include "../../Kernels/KernelLanes.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;

namespace tessera::codegen {

LogicalResult GpuEmitter::captureAll() {
  for (const GpuMember &member : group.members) {
    for (const GpuAccess &access : member.accesses) {
      Value value = access.scalar ? access.operand->get() : access.view;
      if (!value)
        continue;
      FailureOr<Value> captured = launch.capture(value);
      if (failed(captured))
        return failure();
      if (access.view && !dynamicOffsets.contains(access.view))
        dynamicOffsets[access.view] =
            memref::ExtractStridedMetadataOp::create(b, loc, *captured).getOffset();
    }
    WalkResult walk = member.op.getBody()->walk([&](Operation *inner) {
      for (Value operand : inner->getOperands()) {
        if (member.op.getRegion().isAncestor(operand.getParentRegion()))
          continue;
        if (failed(launch.capture(operand)))
          return WalkResult::interrupt();
      }
      return WalkResult::advance();
    });
    if (walk.wasInterrupted())
      return failure();
  }
  for (Value root : launch.scalarReads)
    note(root, /*store=*/false, bytesOf(cast<MemRefType>(root.getType()).getElementType()),
         "a scalar");
  return success();
}

/// The number of elements that a body's load reads: one per iteration of the loops that its indices
/// depend on, and at most the elements of the buffer.
static int64_t placesOf(const GpuMember &member, memref::LoadOp load) {
  SmallVector<bool> used(member.extents.size());
  SmallVector<Value> work(load.getIndices());
  llvm::DenseSet<Operation *> seen;
  while (!work.empty()) {
    Value value = work.pop_back_val();
    Operation *def = value.getDefiningOp();
    if (!def) {
      // An element of an operand depends on the operand's loops.
      auto argument = cast<BlockArgument>(value);
      for (const GpuAccess &access : member.accesses)
        if (member.op.getMatchingBlockArgument(access.operand) == argument)
          for (auto [loop, step] : llvm::enumerate(access.step))
            used[loop] = used[loop] || step != 0;
      continue;
    }
    if (auto index = dyn_cast<linalg::IndexOp>(def))
      used[index.getDim()] = true;
    if (def->getBlock() == member.op.getBody() && seen.insert(def).second)
      llvm::append_range(work, def->getOperands());
  }
  int64_t result = 1;
  for (auto [extent, counts] : llvm::zip_equal(member.extents, used))
    result *= counts ? extent : 1;
  return std::min(result, cast<MemRefType>(rootOf(load.getMemRef()).getType()).getNumElements());
}

/// Loads the elements of a chunk at computed indices as a vector if they are contiguous, such as
/// rows of a table. Null if they are not.
Value GpuEmitter::loadTogether(memref::LoadOp load, const IRMapping &mapping, const Chunk &chunk) {
  int64_t bytes = bytesOf(load.getType());
  auto fail = [&](int64_t width, StringRef why) {
    note(rootOf(load.getMemRef()), /*store=*/false, width, why);
    return Value();
  };
  Values at;
  for (Value index : load.getIndices())
    at.push_back(mapping.lookupOrDefault(index));
  auto isVector = [](Value value) { return isa<VectorType>(value.getType()); };
  if (chunk.lanes == 0 || llvm::none_of(at, isVector))
    return fail(bytes, "one computed index");
  Value first = consecutive.lookup(at.back());
  SmallVector<int64_t> strides;
  int64_t offset;
  if (!first || llvm::any_of(ArrayRef(at).drop_back(), isVector) ||
      failed(load.getMemRefType().getStridesAndOffset(strides, offset)) || strides.back() != 1)
    return fail(bytes, "computed indices");
  auto fits = [&](int64_t step) { return !ShapedType::isDynamic(step) && step % chunk.lanes == 0; };
  if (!fits(offset) || !llvm::all_of(ArrayRef(strides).drop_back(), fits))
    return fail(bytes, "unaligned computed rows");
  if (chunk.lanes * bytes < kAccessBytes)
    fail(chunk.lanes * bytes, "other operands allow no more lanes");
  at.back() = first;
  return vector::LoadOp::create(b, loc, VectorType::get(chunk.lanes, load.getType()),
                                mapping.lookupOrDefault(load.getMemRef()), at,
                                /*nontemporal=*/false,
                                llvm::MaybeAlign(std::min(kAccessBytes, chunk.lanes * bytes)));
}

GpuEmitter::Values GpuEmitter::body(const GpuMember &member, const Chunk &chunk,
                                    ValueRange accumulators) {
  linalg::GenericOp op = member.op;
  IRMapping mapping = launch.mapping;
  for (const GpuAccess &access : member.accesses) {
    BlockArgument argument = op.getMatchingBlockArgument(access.operand);
    if (!access.output && !argument.use_empty())
      mapping.map(argument, load(member, access, chunk));
  }
  unsigned next = 0;
  for (const NestOutput &output : member.outputs) {
    const GpuAccess &access = member.accesses[output.operand];
    BlockArgument argument = op.getMatchingBlockArgument(access.operand);
    if (output.accumulates)
      mapping.map(argument, accumulators[next++]);
    else if (output.readsOld)
      mapping.map(argument, load(member, access, chunk));
  }
  for (Operation &inner : op.getBody()->without_terminator()) {
    if (auto index = dyn_cast<linalg::IndexOp>(inner)) {
      mapping.map(index.getResult(), indexOf(member, index.getDim(), chunk));
      continue;
    }
    if (auto gathered = dyn_cast<memref::LoadOp>(inner)) {
      if (chunk.number <= 0)
        info.readBytes += placesOf(member, gathered) * bytesOf(gathered.getType());
      if (Value wide = loadTogether(gathered, mapping, chunk)) {
        mapping.map(gathered.getResult(), wide);
        continue;
      }
    }
    mapping.map(inner.getResult(0), cloneInLanes(b, inner, mapping, chunk.lanes));
  }
  Values results;
  Operation *yield = op.getBody()->getTerminator();
  SmallVector<Value> values;
  for (Value value : yield->getOperands())
    values.push_back(mapping.lookupOrDefault(value));
  for (auto [value, output] : llvm::zip_equal(values, member.outputs)) {
    if (output.accumulates)
      results.push_back(widen(b, loc, value, chunk.lanes));
    else
      store(member, member.accesses[output.operand], chunk, value);
  }
  return results;
}

FailureOr<GpuShape> GpuEmitter::emit() {
  if (failed(captureAll()))
    return failure();
  if (group.count() == 0)
    return GpuShape();
  info.scheme = GpuScheme::pointwise;
  for (const GpuMember &member : group.members)
    if (member.hasReduction() && !group.rows)
      info.scheme = GpuScheme::plain;
  if (group.tiles) {
    info.scheme = GpuScheme::permute;
    return emitPermute();
  }
  if (group.rows)
    info.scheme = GpuScheme::rows;
  FailureOr<GpuShape> shape = group.rows ? emitRows() : emitFlat();
  int64_t threads = group.rows ? team : 1; // number of threads that share a member's loops
  for (const GpuMember &member : group.members)
    info.serialIterations =
        std::max(info.serialIterations, (ownVolume(member) + threads - 1) / threads * group.walk);
  return shape;
}

} // namespace tessera::codegen
