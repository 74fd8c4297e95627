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

#include "../../Kernels/KernelLanes.h"

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

/// Calls `body` with the chunks that a thread processes at once: in an unrolled row one after the
/// other, otherwise as many as fit into registers, all of them inside the row, in a loop; then the
/// others one by one. A thread has the same chunks in every loop over the space.
void GpuEmitter::overBursts(const Space &space, int64_t volume, Values &carried,
                            function_ref<void(ArrayRef<Chunk>, Values &)> body) {
  if (space.unrolled) {
    for (int64_t number = 0; number < (space.chunks + team - 1) / team; ++number)
      body(rowChunk(space, volume, number), carried);
    return;
  }
  // A chunk that begins before the row, or ends behind it, has code of its own.
  int64_t first = space.leading ? 1 : 0;
  int64_t inside = space.leading ? volume / space.lanes - 1 : space.chunks;
  int64_t loops = burst > 1 ? inside / (burst * team) : 0, done = loops * burst * team;
  auto emit = [&](int64_t count, function_ref<void(Value, Values &)> work) {
    auto loop = scf::ForOp::create(b, loc, constant(0), constant(count), constant(1), carried);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    std::map<Key, Value> outside = cache;
    inLoop = true;
    Values current(loop.getRegionIterArgs());
    work(loop.getInductionVar(), current);
    if (!current.empty())
      scf::YieldOp::create(b, loc, current);
    inLoop = false;
    cache = std::move(outside);
    carried = Values(loop.getResults());
  };
  Chunk chunk;
  chunk.lanes = space.lanes;
  chunk.volume = volume;
  // Only accesses to chunk -1 are counted.
  if (loops > 0)
    emit(loops, [&](Value iteration, Values &current) {
      Value base = add(add(lane, multiply(iteration, burst * team)), first);
      SmallVector<Chunk> chunks(burst, chunk);
      for (auto [i, part] : llvm::enumerate(chunks)) {
        part.number = i == 0 ? -1 : static_cast<int64_t>(i);
        placeChunk(part, space, add(base, static_cast<int64_t>(i) * team), /*inner=*/true);
      }
      body(chunks, current);
    });
  chunk.number = loops > 0 ? burst : -1;
  int64_t rest = space.chunks - done, rounds = (rest + team - 1) / team;
  if (rounds > 0)
    emit(rounds, [&](Value iteration, Values &current) {
      Value index = add(lane, multiply(iteration, team));
      if (done > 0) {
        Value later = add(index, done);
        if (first > 0) {
          Value isFirst =
              arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, index, constant(0));
          later = arith::SelectOp::create(b, loc, isFirst, index, later);
        }
        index = later;
      }
      placeChunk(chunk, space, index, /*inner=*/!space.leading && rest % team == 0);
      body(chunk, current);
    });
  endFilling();
}

void GpuEmitter::overChunks(const Space &space, int64_t volume, Values &carried,
                            function_ref<void(Chunk, Values &)> body) {
  overBursts(space, volume, carried, [&](ArrayRef<Chunk> chunks, Values &current) {
    for (const Chunk &chunk : chunks)
      body(chunk, current);
  });
}

/// Loads the member's operands of several chunks before it stores the result of one.
void GpuEmitter::loadFirst(const GpuMember &member, ArrayRef<Chunk> chunks) {
  if (chunks.size() == 1)
    return;
  for (const Chunk &chunk : chunks)
    for (const GpuAccess &access : member.accesses)
      if (!access.scalar && !access.output &&
          !member.op.getMatchingBlockArgument(access.operand).use_empty())
        load(member, access, chunk);
}

/// Replaces `current` by `next` in the chunk's lanes that are within the row.
void GpuEmitter::keepInside(const Chunk &chunk, ValueRange next, Values &current) {
  Value valid = chunk.full ? within(chunk) : chunk.valid;
  for (auto [value, before] : llvm::zip_equal(next, current))
    before = valid ? arith::SelectOp::create(b, loc, valid, value, before).getResult() : value;
}

/// Loads the operands with one element per row before a loop over its chunks, except for `later`.
void GpuEmitter::loadPerRow(const GpuMember &member, const Key *later) {
  for (const GpuAccess &access : member.accesses) {
    if (access.scalar || access.output)
      continue;
    Key key = keyInRow(member, access);
    bool isLater = later && !(key < *later) && !(*later < key);
    if (!key.vector && !isLater && !member.op.getMatchingBlockArgument(access.operand).use_empty())
      load(member, access, Chunk());
  }
}

void GpuEmitter::rowElements(const GpuMember &member, const Space &space, int64_t volume) {
  Values none;
  loadPerRow(member);
  overBursts(space, volume, none, [&](ArrayRef<Chunk> chunks, Values &) {
    loadFirst(member, chunks);
    for (const Chunk &chunk : chunks)
      body(member, chunk, ValueRange());
  });
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
  loadPerRow(member);
  overBursts(space, volume, accumulators, [&](ArrayRef<Chunk> chunks, Values &current) {
    loadFirst(member, chunks);
    for (const Chunk &chunk : chunks)
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
  shape.resident = resident;
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
