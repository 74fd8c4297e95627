//===- GpuEmitSlices.cpp - Several threads for a column -------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A flat group that reduces has one result per iteration. If these are too few threads for a GPU,
// several threads of a block share each: thread `slice` of S takes the elements slice, slice + S,
// ... of one reduced loop, and all of them combine the S partial results in shared memory, in
// order. Each then has the result, for the members that need it; the first one stores.
//
//===----------------------------------------------------------------------===//

#include "GpuEmitter.h"

#include "../../Kernels/KernelLanes.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

using namespace mlir;

namespace tessera::codegen {

/// Threads that keep a GPU busy with loads: half of those that an H100 holds.
static constexpr int64_t kFullThreads = 132 * 1024;
static constexpr int64_t kMostSlices = 32;
/// Loads of a slice that do not wait for each other, and the most elements whose loads they are.
static constexpr int64_t kInFlight = 16, kMostTogether = 8;
/// The fewest elements of a slice.
static constexpr int64_t kShortestSlice = 2;

/// The reduced loop whose iterations are distributed: the longest one.
static unsigned slicedLoopOf(const GpuMember &member) {
  SmallVector<unsigned> own = GpuGroup::ownLoops(member);
  return *llvm::max_element(
      own, [&](unsigned a, unsigned b) { return member.extents[a] < member.extents[b]; });
}

/// The number of threads for each of the `chunks` of results; 1 if they are enough by themselves.
int64_t GpuEmitter::slicesFor(int64_t chunks) const {
  int64_t shortest = 0;
  std::map<void *, Key> keys;
  std::set<void *> written;
  for (const GpuMember &member : group.members) {
    for (const GpuAccess &access : member.accesses)
      if (access.output)
        written.insert(access.root.getAsOpaquePointer());
    if (GpuGroup::ownLoops(member).empty())
      continue;
    // Partial results need a neutral element, and all outputs must be results of the reduction.
    if (isWindow(member) || llvm::any_of(member.outputs, [](const NestOutput &output) {
          return !output.accumulates || !output.kind;
        }))
      return 1;
    int64_t extent = member.extents[slicedLoopOf(member)];
    shortest = shortest ? std::min(shortest, extent) : extent;
  }
  // Values pass between members in registers alone: only one thread of a column stores.
  for (const GpuMember &member : group.members)
    for (const GpuAccess &access : member.accesses) {
      void *root = access.root.getAsOpaquePointer();
      if (access.scalar || !written.count(root))
        continue;
      Key key = keyOf(member, access, Chunk());
      auto [known, fresh] = keys.try_emplace(root, key);
      if (!fresh && (known->second < key || key < known->second))
        return 1;
    }
  for (const GpuMember &member : group.members)
    if (llvm::any_of(member.gathered,
                     [&](Value root) { return written.count(root.getAsOpaquePointer()) != 0; }))
      return 1;
  int64_t most = std::min({kMostSlices, kFullThreads / chunks, shortest / kShortestSlice});
  return most > 1 ? static_cast<int64_t>(llvm::bit_floor(static_cast<uint64_t>(most))) : 1;
}

void GpuEmitter::slicedMember(const GpuMember &member, const Chunk &chunk) {
  Values old, partial;
  SmallVector<const NestOutput *> outputs;
  for (const NestOutput &output : member.outputs) {
    const GpuAccess &access = member.accesses[output.operand];
    outputs.push_back(&output);
    old.push_back(widen(b, loc, load(member, access, chunk), chunk.lanes));
    partial.push_back(neutralOf(*output.kind, access.element, chunk.lanes));
  }
  std::map<Key, Value> outside = cache;
  inLoop = true;
  slicedLoop = slicedLoopOf(member);
  partial = ownLoops(member, 0, partial, [&](Values current) {
    cache = outside;
    return body(member, chunk, current);
  });
  slicedLoop = std::nullopt;
  inLoop = false;
  cache = std::move(outside);

  SmallVector<Slot> parts(outputs.size());
  Chunk mine = chunk;
  auto at = [&](Value which) { return add(multiply(which, sliceColumns), column); };
  mine.slot = at(slice);
  for (auto [value, output, part] : llvm::zip_equal(partial, outputs, parts)) {
    part.memory = launch.shared(member.accesses[output->operand].element,
                                slices * sliceColumns * std::max<int64_t>(1, chunk.lanes));
    storeSlot(part, value, mine);
  }
  gpu::BarrierOp::create(b, loc);
  auto loop = scf::ForOp::create(b, loc, constant(0), constant(slices), constant(1), old);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    mine.slot = at(loop.getInductionVar());
    Values sums;
    for (auto [i, output] : llvm::enumerate(outputs))
      sums.push_back(vector::makeArithReduction(
          b, loc, *output->kind, loop.getRegionIterArg(i),
          loadSlot(parts[i], member.accesses[output->operand].element, mine)));
    scf::YieldOp::create(b, loc, sums);
  }
  for (auto [i, output] : llvm::enumerate(outputs))
    store(member, member.accesses[output->operand], chunk, loop.getResult(i));
}

/// The loop over the slice's elements. Several are in flight at a time.
GpuEmitter::Values GpuEmitter::sliceLoop(const GpuMember &member, Values accumulators,
                                         function_ref<Values(Value, Values)> body) {
  int64_t extent = member.extents[*slicedLoop], each = extent / slices;
  int64_t loads = llvm::count_if(member.accesses, [&](const GpuAccess &access) {
    return !access.scalar && !access.output && access.step[*slicedLoop] != 0;
  });
  int64_t together = std::min(
      each, std::clamp<int64_t>(kInFlight / std::max<int64_t>(1, loads), 1, kMostTogether));
  auto element = [&](Value number) { return add(slice, multiply(number, slices)); };
  std::optional<GpuLaunchInfo> counted; // all elements, by the first one's accesses
  auto one = [&](Value number, Values current) {
    current = body(element(number), current);
    if (counted)
      info = *counted;
    counted = info;
    return current;
  };
  auto loop = scf::ForOp::create(b, loc, constant(0), constant(each / together * together),
                                 constant(together), accumulators);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Values current(loop.getRegionIterArgs());
    for (int64_t next = 0; next < together; ++next)
      current = one(add(loop.getInductionVar(), next), current);
    scf::YieldOp::create(b, loc, current);
  }
  Values current(loop.getResults());
  for (int64_t number = each / together * together; number < each; ++number)
    current = one(constant(number), current);
  if (extent % slices == 0)
    return current;
  Value inside =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, slice, constant(extent % slices));
  auto last = scf::IfOp::create(b, loc, TypeRange(ValueRange(current)), inside, /*withElse=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(last.elseBlock());
  scf::YieldOp::create(b, loc, current);
  b.setInsertionPointToStart(last.thenBlock());
  scf::YieldOp::create(b, loc, one(constant(each), current));
  return Values(last.getResults());
}

/// Emits the group with `slices` threads for each chunk of results.
GpuShape GpuEmitter::emitSlices(int64_t count, int64_t lanes) {
  int64_t width = std::max<int64_t>(1, lanes), chunks = count / width;
  sliceColumns = std::min(kBlockThreads / slices,
                          static_cast<int64_t>(llvm::PowerOf2Ceil(static_cast<uint64_t>(chunks))));
  GpuShape shape;
  shape.threads = slices * sliceColumns;
  shape.blocks = (chunks + sliceColumns - 1) / sliceColumns;
  slice = divide(launch.threadIndex(), sliceColumns);
  column = remainder(launch.threadIndex(), sliceColumns);
  Value number = add(multiply(launch.blockIndex(), sliceColumns), column);
  Chunk chunk;
  chunk.lanes = lanes;
  chunk.volume = count;
  chunk.valid = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, slice, constant(0));
  if (chunks % sliceColumns != 0) {
    // All threads reach the barrier: those beyond the end repeat the last chunk.
    Value inside =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, number, constant(chunks));
    chunk.valid = arith::AndIOp::create(b, loc, chunk.valid, inside);
    number = arith::MinUIOp::create(b, loc, number, constant(chunks - 1));
  }
  chunk.at = multiply(number, width);
  flatBody(chunk);
  return shape;
}

} // namespace tessera::codegen
