//===- GpuEmitRows.cpp - A team of threads for a row ----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A row is an iteration of the classes. Its own loops are dealt out to the threads of a team, a
// chunk each, round after round. Teams of up to a warp share a block and combine by shuffles; a
// larger team is a block and combines by shuffles, then through shared memory, always in the same
// order. Rows that begin at any address have chunks that begin at whole ones. While all rounds of a
// row fit into registers they are unrolled; longer rows are walked by loops, once for each member.
//
//===----------------------------------------------------------------------===//

#include "GpuEmitter.h"

#include "../CPU/KernelLanes.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;

namespace tessera::codegen {

static constexpr int64_t kWarp = 32;
static constexpr int64_t kTeamThreads = 128; ///< of a block of several teams
static constexpr int64_t kMaxThreads = 1024;
static constexpr int64_t kMaxRounds = 16;
static constexpr int64_t kVectorBytes = 16;
/// Rows of fewer vectors are not worth the work at their edges.
static constexpr int64_t kShortestShifted = 8;

/// Registers that the row may take in a thread of a block of `threads`: 64 Ki are shared by them,
/// 255 is the most, and addresses and temporaries need some.
static int64_t registersFor(int64_t threads) {
  return std::min<int64_t>(224, (64 << 10) / threads) * 5 / 8 - 8;
}

void GpuEmitter::planTeam() {
  for (const GpuMember &member : group.members)
    if (group.isColumns(member))
      allSums.push_back({&member, &member.accesses[member.outputs[0].operand],
                         member.volume() / group.count(), Slot()});
  std::map<int64_t, SmallVector<const GpuMember *>> byVolume;
  for (const GpuMember &member : group.members) {
    int64_t volume = 1;
    for (unsigned loop : GpuGroup::ownLoops(member))
      volume *= member.extents[loop];
    byVolume[volume].push_back(&member);
  }
  int64_t most = 1;
  bool shifted = false;
  for (auto &[volume, members] : byVolume) {
    if (volume == 1)
      continue;
    Space &space = spaces[volume];
    space.lanes = lanesFor(members, volume);
    space.chunks = volume / std::max<int64_t>(1, space.lanes);
    if (shift(members, volume, space))
      space.chunks = (volume + 2 * space.lanes - 2) / space.lanes;
    most = std::max(most, space.chunks);
    shifted |= space.leading != nullptr;
  }
  // Bytes of one chunk of all that waits from one member for another, at the worst place, or for
  // the end; and of all that one member needs at once.
  SmallVector<int64_t> waiting(group.members.size()), needed(group.members.size());
  int64_t summed = 0;
  for (const auto &[key, range] : ranges()) {
    int64_t bytes = std::max<int64_t>(1, spaces[key.volume].lanes) *
                    std::max<int64_t>(4, bytesOf(range.element));
    Value root = Value::getFromOpaquePointer(key.root);
    if (group.sumsInto(root)) {
      summed += bytes;
      continue;
    }
    unsigned end = group.writes(root) && live(root) ? group.members.size() : range.last;
    for (unsigned i = range.first; i < end; ++i)
      waiting[i] += bytes;
    needed[range.first] += bytes;
    if (range.last != range.first)
      needed[range.last] += bytes;
  }
  int64_t held = *llvm::max_element(waiting) + summed, working = *llvm::max_element(needed);
  auto rounds = [&](int64_t threads) { return (most + threads - 1) / threads; };
  auto fits = [&](int64_t threads) {
    return rounds(threads) <= kMaxRounds &&
           (rounds(threads) * held + working) / 4 <= registersFor(std::max(threads, kTeamThreads));
  };
  // Several rounds keep more loads under way than one; vectors of many elements make as many, and
  // take as long to compile.
  int64_t widest = 0;
  for (auto &[volume, space] : spaces)
    widest = std::max(widest, space.lanes);
  bool wide = widest >= 8;
  if (group.walk > 1) {
    // Few rows are under way at a time: a block for each of them.
    for (int64_t chunks : {1, 2, 4, 8}) {
      team = std::min(kMaxThreads,
                      static_cast<int64_t>(llvm::alignTo((most + chunks - 1) / chunks, kWarp)));
      if (team <= 256)
        break;
    }
  } else if (most <= (wide ? 1 : 2) * kWarp) {
    int64_t threads = wide ? most : (most + 1) / 2;
    team = std::min<int64_t>(kWarp, llvm::PowerOf2Ceil(std::max<int64_t>(1, threads)));
  } else {
    team = kWarp;
    // Every chunk at an edge is code of its own: few rounds, then.
    for (int64_t wish : {shifted || wide ? 2 : 4, 4, 8, 16}) {
      team = std::min(kMaxThreads,
                      static_cast<int64_t>(llvm::alignTo((most + wish - 1) / wish, kWarp)));
      if (team <= 256 || wish == 16)
        break;
    }
  }
  auto grow = [&] {
    while (!fits(team) && team < kMaxThreads)
      team = team < kWarp ? team * 2 : std::min(kMaxThreads, team + kWarp);
    return fits(team);
  };
  int64_t fewest = team;
  bool unrolled = grow();
  if (!unrolled && !allSums.empty()) {
    held -= summed;
    team = fewest;
    unrolled = grow();
    sumsIn = placeSums() ? SumsIn::shared : SumsIn::memory;
  }
  if (!unrolled)
    planLongRows();
  for (auto &[volume, space] : spaces)
    space.unrolled = unrolled;
  teams = team <= kWarp && group.walk == 1 ? kTeamThreads / team : 1;
  teams = std::min<int64_t>(teams,
                            llvm::PowerOf2Ceil(std::max<int64_t>(1, group.count() / group.walk)));
  // Shuffles name all lanes of a warp.
  teams = std::max(teams, kWarp / std::min(team, kWarp));
}

/// Lets chunks begin at whole addresses when more lanes come of it.
bool GpuEmitter::shift(ArrayRef<const GpuMember *> members, int64_t volume, Space &space) const {
  // A thread has the same columns of every row that it walks.
  if (group.walk > 1)
    return false;
  int64_t most = 0;
  for (const GpuMember *member : members)
    for (const GpuAccess &access : member->accesses) {
      FlatAccess inner = innerOf(*member, access);
      if (access.scalar || inner.dims.size() != 1 || inner.dims[0].step != 1)
        continue;
      if (int64_t bytes = elementsOf(*member, access) * bytesOf(access.element); bytes > most) {
        most = bytes;
        space.leader = member;
        space.leading = &access;
      }
    }
  int64_t lanes = space.leading ? kVectorBytes / bytesOf(space.leading->element) : 0;
  if (lanes <= std::max<int64_t>(1, space.lanes) || volume < kShortestShifted * lanes ||
      isAligned(*space.leader, *space.leading, lanes)) {
    space.leader = nullptr;
    space.leading = nullptr;
    return false;
  }
  space.lanes = lanes;
  return true;
}

/// Which lanes of a chunk at the row's edge are in the row.
Value GpuEmitter::within(const Chunk &chunk) {
  auto type = VectorType::get(chunk.lanes, b.getIndexType());
  SmallVector<int64_t> steps = llvm::to_vector(llvm::seq<int64_t>(0, chunk.lanes));
  Value lanes = arith::ConstantOp::create(b, loc, b.getIndexVectorAttr(steps));
  Value all =
      arith::AddIOp::create(b, loc, vector::BroadcastOp::create(b, loc, type, chunk.at), lanes);
  Value end =
      arith::ConstantOp::create(b, loc, DenseElementsAttr::get(type, b.getIndexAttr(chunk.volume)));
  // What lies before the row is a very large number.
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, all, end);
}

/// `inner`: it is known that the chunk lies within the row.
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

Value GpuEmitter::shuffleXor(Value value, int64_t distance) {
  Type type = value.getType(), i32 = b.getI32Type();
  auto exchange = [&](Value word) -> Value {
    return gpu::ShuffleOp::create(b, loc, word, static_cast<int32_t>(distance), 32,
                                  gpu::ShuffleMode::XOR)
        .getShuffleResult();
  };
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

Value GpuEmitter::teamReduce(Value value, vector::CombiningKind kind) {
  Type type = value.getType();
  auto combine = [&](int64_t width) {
    for (int64_t distance = width / 2; distance > 0; distance /= 2)
      value = vector::makeArithReduction(b, loc, kind, value, shuffleXor(value, distance));
  };
  combine(std::min(team, kWarp));
  if (team <= kWarp)
    return value;
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
  // Every group of `width` lanes reads all parts, so that every lane gets the result.
  auto width = static_cast<int64_t>(llvm::PowerOf2Ceil(warps));
  Value which = remainder(within, width);
  if (width != warps) {
    Value there = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, which, constant(warps));
    Value safe = arith::SelectOp::create(b, loc, there, which, constant(0));
    Value part = memref::LoadOp::create(b, loc, parts, safe);
    Value neutral = arith::ConstantOp::create(b, loc, neutralElement(kind, type));
    value = arith::SelectOp::create(b, loc, there, part, neutral);
  } else {
    value = memref::LoadOp::create(b, loc, parts, which);
  }
  combine(width);
  return value;
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
    TypedAttr neutral = neutralElement(*output.kind, access.element);
    if (space.lanes)
      neutral =
          DenseElementsAttr::get(VectorType::get(space.lanes, access.element), Attribute(neutral));
    accumulators.push_back(arith::ConstantOp::create(b, loc, neutral));
  }
  overChunks(space, volume, accumulators, [&](Chunk chunk, Values &current) {
    Values next = body(member, chunk, current);
    Value valid = chunk.full ? within(chunk) : chunk.valid;
    for (auto [value, before] : llvm::zip_equal(next, current))
      before = valid ? arith::SelectOp::create(b, loc, valid, value, before).getResult() : value;
  });
  for (auto [i, output] : llvm::enumerate(outputs)) {
    Value value = accumulators[i];
    if (space.lanes) {
      Value sum;
      for (int64_t l = 0; l < space.lanes; ++l) {
        Value part = vector::ExtractOp::create(b, loc, value, l);
        sum = sum ? vector::makeArithReduction(b, loc, *output->kind, sum, part) : part;
      }
      value = sum;
    }
    value = teamReduce(value, *output->kind);
    value = vector::makeArithReduction(b, loc, *output->kind, old[i], value);
    store(member, member.accesses[output->operand], none, value);
  }
}

void GpuEmitter::rowMember(const GpuMember &member) {
  int64_t volume = 1;
  for (unsigned loop : GpuGroup::ownLoops(member))
    volume *= member.extents[loop];
  if (volume == 1) {
    // Of a reduction over nothing but one element the body is an ordinary one.
    Values old;
    for (const NestOutput &output : member.outputs)
      if (output.accumulates)
        old.push_back(load(member, member.accesses[output.operand], Chunk()));
    body(member, Chunk(), old);
    return;
  }
  const Space &space = spaces[volume];
  // Computed where it is needed.
  if (!space.unrolled && !member.hasReduction() &&
      llvm::any_of(member.outputs, [&](const NestOutput &output) {
        return producerOf(keyInRow(member, member.accesses[output.operand])) == &member;
      }))
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
      // All lanes take part in shuffles: a team beyond the end does the last row again, and keeps
      // it to itself.
      rowValid = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, row, constant(rows));
      row = arith::MinUIOp::create(b, loc, row, constant(rows - 1));
    }
  }
  for (auto &[volume, space] : spaces)
    if (space.leading) {
      // How far the row begins behind a whole address.
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
    for (const GpuMember &member : group.members)
      rowMember(member);
  }
  flush(Value());
  return shape;
}

} // namespace tessera::codegen
