//===- GpuEmitRows.cpp - Rows scheme: a team of threads per row -----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A row is an iteration of the classes. Its own loops are distributed over the threads of a team,
// one chunk each, in rounds. Teams of up to a warp share a block and combine by shuffles; a larger
// team is a block and combines by shuffles, then through shared memory, always in the same order.
// Rows at unaligned addresses have chunks at aligned ones. The rounds of a row are unrolled if they
// all fit in registers; longer rows are processed by loops, one for each member.
//
//===----------------------------------------------------------------------===//

#include "GpuEmitter.h"

#include "../Kernels/KernelLanes.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;

namespace tessera::codegen {

/// The mask of a chunk's lanes that are within the row.
Value GpuEmitter::within(const Chunk &chunk) {
  auto type = VectorType::get(chunk.lanes, b.getIndexType());
  SmallVector<int64_t> steps = llvm::to_vector(llvm::seq<int64_t>(0, chunk.lanes));
  Value lanes = arith::ConstantOp::create(b, loc, b.getIndexVectorAttr(steps));
  Value all =
      arith::AddIOp::create(b, loc, vector::BroadcastOp::create(b, loc, type, chunk.at), lanes);
  Value end =
      arith::ConstantOp::create(b, loc, DenseElementsAttr::get(type, b.getIndexAttr(chunk.volume)));
  // Indices before the row are very large as unsigned numbers.
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, all, end);
}

/// `inner`: the chunk is known to be within the row.
void GpuEmitter::placeChunk(Chunk &chunk, const Space &space, Value index, bool inner) {
  int64_t width = std::max<int64_t>(1, space.lanes);
  chunk.slot = index;
  if (!space.leading) {
    if (!inner) {
      chunk.valid =
          arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, index, constant(space.chunks));
      index = arith::MinUIOp::create(b, loc, index, constant(space.chunks - 1));
    }
    chunk.at = multiply(index, width);
    return;
  }
  chunk.shifted = true;
  chunk.at = arith::SubIOp::create(b, loc, multiply(index, width), space.lead);
  if (!inner)
    chunk.full = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ule, chunk.at,
                                       constant(chunk.volume - width));
}

GpuEmitter::Chunk GpuEmitter::rowChunk(const Space &space, int64_t volume, int64_t number) {
  Chunk chunk;
  chunk.number = number;
  chunk.lanes = space.lanes;
  chunk.volume = volume;
  int64_t end = (number + 1) * team;
  bool inner = space.leading ? number > 0 && end * space.lanes <= volume : end <= space.chunks;
  placeChunk(chunk, space, add(lane, number * team), inner);
  return chunk;
}

void GpuEmitter::overChunks(const Space &space, int64_t volume, Values &carried,
                            function_ref<void(Chunk, Values &)> body) {
  int64_t rounds = (space.chunks + team - 1) / team;
  if (space.unrolled) {
    for (int64_t number = 0; number < rounds; ++number)
      body(rowChunk(space, volume, number), carried);
    return;
  }
  auto loop = scf::ForOp::create(b, loc, constant(0), constant(rounds), constant(1), carried);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Chunk chunk;
  chunk.number = -1;
  chunk.lanes = space.lanes;
  chunk.volume = volume;
  Value index = add(lane, multiply(loop.getInductionVar(), team));
  placeChunk(chunk, space, index, /*inner=*/!space.leading && space.chunks % team == 0);
  std::map<Key, Value> outside = cache;
  inLoop = true;
  Values current(loop.getRegionIterArgs());
  body(chunk, current);
  if (!current.empty())
    scf::YieldOp::create(b, loc, current);
  inLoop = false;
  cache = std::move(outside);
  carried = Values(loop.getResults());
}

/// Replaces `current` by `next` in the chunk's lanes that are within the row.
void GpuEmitter::keepInside(const Chunk &chunk, ValueRange next, Values &current) {
  Value valid = chunk.full ? within(chunk) : chunk.valid;
  for (auto [value, before] : llvm::zip_equal(next, current))
    before = valid ? arith::SelectOp::create(b, loc, valid, value, before).getResult() : value;
}

void GpuEmitter::rowElements(const GpuMember &member, const Space &space, int64_t volume) {
  Values none;
  overChunks(space, volume, none,
             [&](Chunk chunk, Values &) { body(member, chunk, ValueRange()); });
}

void GpuEmitter::rowReduction(const GpuMember &member, const Space &space, int64_t volume) {
  Values accumulators, old;
  SmallVector<const NestOutput *> outputs;
  Chunk none;
  for (const NestOutput &output : member.outputs) {
    if (!output.accumulates)
      continue;
    outputs.push_back(&output);
    const GpuAccess &access = member.accesses[output.operand];
    old.push_back(load(member, access, none));
    accumulators.push_back(neutralOf(*output.kind, access.element, space.lanes));
  }
  overChunks(space, volume, accumulators, [&](Chunk chunk, Values &current) {
    keepInside(chunk, body(member, chunk, current), current);
  });
  for (auto [i, output] : llvm::enumerate(outputs)) {
    Value value = teamReduce(overLanes(accumulators[i], *output->kind), *output->kind);
    value = vector::makeArithReduction(b, loc, *output->kind, old[i], value);
    store(member, member.accesses[output->operand], none, value);
  }
}

void GpuEmitter::rowMember(const GpuMember &member) {
  int64_t volume = 1;
  for (unsigned loop : GpuGroup::ownLoops(member))
    volume *= member.extents[loop];
  if (volume == 1) {
    // The body of a reduction over a single element is an ordinary one.
    Values old;
    for (const NestOutput &output : member.outputs)
      if (output.accumulates)
        old.push_back(load(member, member.accesses[output.operand], Chunk()));
    body(member, Chunk(), old);
    return;
  }
  const Space &space = spaces[volume];
  // Its users compute it.
  if (!space.unrolled && !member.hasReduction() &&
      llvm::any_of(member.outputs, [&](const NestOutput &output) {
        return producerOf(keyInRow(member, member.accesses[output.operand])) == &member;
      }))
    return;
  if (rowOnline(member))
    return;
  if (member.hasReduction())
    rowReduction(member, space, volume);
  else
    rowElements(member, space, volume);
}

GpuShape GpuEmitter::emitRows() {
  planTeam();
  int64_t rows = group.count() / group.walk;
  GpuShape shape;
  shape.threads = team * teams;
  shape.blocks = (rows + teams - 1) / teams;
  lane = launch.threadIndex();
  row = launch.blockIndex();
  if (teams > 1) {
    row = add(multiply(row, teams), divide(lane, team));
    lane = remainder(lane, team);
    if (rows % teams != 0) {
      // All lanes take part in shuffles: a team beyond the end repeats the last row and discards
      // the result.
      rowValid = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, row, constant(rows));
      row = arith::MinUIOp::create(b, loc, row, constant(rows - 1));
    }
  }
  for (auto &[volume, space] : spaces)
    if (space.leading) {
      // The row's offset from an aligned address.
      Value at = evaluate(outerOf(*space.leader, *space.leading), row);
      if (space.leading->view && space.leading->divisor % space.lanes != 0)
        at = add(at, dynamicOffsets[space.leading->view]);
      at = add(at ? at : constant(0), space.leading->base);
      space.lead = remainder(at, space.lanes);
    }
  if (group.walk > 1) {
    row = multiply(row, group.walk);
    walkRows();
  } else {
    if (llvm::any_of(spaces, [](const auto &entry) { return !entry.second.unrolled; }))
      findOnlineSums();
    for (const GpuMember &member : group.members)
      rowMember(member);
  }
  flush(Value());
  return shape;
}

} // namespace tessera::codegen
  shape.resident = resident;
