//===- GpuEmitFlat.cpp - Flat scheme: a thread per few iterations ---------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GpuEmitter.h"

#include "../../Kernels/KernelLanes.h"

using namespace mlir;

namespace tessera::codegen {

/// Limit on the chunks of a window that stay in registers.
static constexpr int64_t kWindow = 16;
/// Fewer threads leave most multiprocessors of an H100 without work.
static constexpr int64_t kFewThreads = 132 * 128;

int64_t GpuEmitter::flatLanes() const {
  SmallVector<const GpuMember *> all;
  for (const GpuMember &member : group.members)
    all.push_back(&member);
  return lanesFor(all, group.count());
}

GpuEmitter::Values GpuEmitter::ownLoops(const GpuMember &member, unsigned depth,
                                        Values accumulators, function_ref<Values(Values)> body) {
  SmallVector<unsigned> own = GpuGroup::ownLoops(member);
  if (depth == own.size())
    return body(accumulators);
  unsigned loop = own[depth];
  if (slicedLoop == loop)
    return sliceLoop(member, accumulators, [&](Value at, Values current) {
      ownIndex[loop] = at;
      return ownLoops(member, depth + 1, current, body);
    });
  auto forOp = scf::ForOp::create(b, loc, constant(0), constant(member.extents[loop]), constant(1),
                                  accumulators);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(forOp.getBody());
  ownIndex[loop] = forOp.getInductionVar();
  Values results = ownLoops(member, depth + 1, Values(forOp.getRegionIterArgs()), body);
  if (!results.empty())
    scf::YieldOp::create(b, loc, results);
  return Values(forOp.getResults());
}

/// Whether the member reduces windows of few elements that another member also reads, such as a
/// pooling and its argmax. Its loops are unrolled, so that the loaded elements stay in registers.
bool GpuEmitter::isWindow(const GpuMember &member) const {
  SmallVector<unsigned> own = GpuGroup::ownLoops(member);
  int64_t volume = 1, loads = 0;
  for (unsigned loop : own)
    volume *= member.extents[loop];
  auto walksOwn = [&](const GpuMember &m, const GpuAccess &access) {
    return !access.scalar && !access.output &&
           llvm::any_of(GpuGroup::ownLoops(m), [&](unsigned loop) { return access.step[loop]; });
  };
  bool shared = false;
  for (const GpuAccess &access : member.accesses) {
    if (!walksOwn(member, access))
      continue;
    ++loads;
    for (const GpuMember &other : group.members)
      shared |= &other != &member && llvm::any_of(other.accesses, [&](const GpuAccess &use) {
        return walksOwn(other, use) && use.root == access.root;
      });
  }
  return shared && member.gathered.empty() && volume * loads <= kWindow;
}

GpuEmitter::Values GpuEmitter::overWindow(const GpuMember &member, Values accumulators,
                                          function_ref<Values(Values)> body) {
  SmallVector<unsigned> own = GpuGroup::ownLoops(member);
  int64_t volume = 1;
  for (unsigned loop : own)
    volume *= member.extents[loop];
  windowed = &member;
  window.assign(member.extents.size(), 0);
  for (int64_t number = 0; number < volume; ++number) {
    int64_t rest = number;
    for (unsigned loop : llvm::reverse(own)) {
      window[loop] = rest % member.extents[loop];
      rest /= member.extents[loop];
      ownIndex[loop] = constant(window[loop]);
    }
    accumulators = body(accumulators);
  }
  windowed = nullptr;
  return accumulators;
}

void GpuEmitter::flatMember(const GpuMember &member, const Chunk &chunk) {
  ownIndex.assign(member.extents.size(), Value());
  if (GpuGroup::ownLoops(member).empty()) {
    Values old;
    for (const NestOutput &output : member.outputs)
      if (output.accumulates)
        old.push_back(load(member, member.accesses[output.operand], chunk));
    body(member, chunk, old);
    return;
  }
  if (slices > 1)
    return slicedMember(member, chunk);
  Values accumulators;
  for (const NestOutput &output : member.outputs)
    if (output.accumulates)
      accumulators.push_back(
          widen(b, loc, load(member, member.accesses[output.operand], chunk), chunk.lanes));
  auto work = [&](Values current) { return body(member, chunk, current); };
  if (isWindow(member)) {
    accumulators = overWindow(member, accumulators, work);
  } else {
    // The cache has the values passed between members, so loads in the loops find them there
    // (GpuGroup.cpp).
    std::map<Key, Value> outside = cache;
    inLoop = true;
    accumulators = ownLoops(member, 0, accumulators, work);
    inLoop = false;
    cache = std::move(outside);
  }
  unsigned next = 0;
  for (const NestOutput &output : member.outputs)
    if (output.accumulates)
      store(member, member.accesses[output.operand], chunk, accumulators[next++]);
}

void GpuEmitter::flatBody(Chunk chunk) {
  cache.clear();
  for (const GpuMember &member : group.members)
    flatMember(member, chunk);
  flush(Value());
}

GpuShape GpuEmitter::emitFlat() {
  int64_t count = group.count(), lanes = flatLanes(), width = std::max<int64_t>(1, lanes);
  int64_t chunks = (count + width - 1) / width;
  slices = info.scheme == GpuScheme::plain ? slicesFor(chunks) : 1;
  if (slices > 1) {
    // Few threads each have one column rather than a vector of them.
    bool few = chunks * slices < kFewThreads && slicesFor(count) == slices;
    return few || count % width != 0 ? emitSlices(count, 0) : emitSlices(count, lanes);
  }
  GpuShape shape;
  shape.threads = std::min(kBlockThreads, static_cast<int64_t>(llvm::alignTo(chunks, 32)));
  shape.blocks = (chunks + shape.threads - 1) / shape.threads;

  Chunk chunk;
  chunk.lanes = lanes;
  chunk.volume = count;
  Value number = add(multiply(launch.blockIndex(), shape.threads), launch.threadIndex());
  chunk.at = multiply(number, width);
  auto below = [&](Value at, int64_t limit) -> Value {
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, at, constant(limit));
  };
  int64_t whole = count / width;
  OpBuilder::InsertionGuard guard(b);
  if (whole != shape.blocks * shape.threads) {
    auto branch = scf::IfOp::create(b, loc, below(number, whole), /*withElse=*/count % width != 0);
    if (count % width != 0) {
      // One thread processes the remaining elements sequentially.
      b.setInsertionPointToStart(branch.elseBlock());
      auto last = scf::IfOp::create(
          b, loc, arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, number, constant(whole)),
          /*withElse=*/false);
      b.setInsertionPointToStart(last.thenBlock());
      auto loop = scf::ForOp::create(b, loc, constant(whole * width), constant(count), constant(1));
      b.setInsertionPointToStart(loop.getBody());
      Chunk single = chunk;
      single.lanes = 0;
      single.at = loop.getInductionVar();
      // These accesses are already counted with the vectors.
      GpuLaunchInfo counted = info;
      flatBody(single);
      info = counted;
      info.narrow.push_back("scalar accesses: the last " + std::to_string(count % width) +
                            " elements");
    }
    b.setInsertionPointToStart(branch.thenBlock());
  }
  flatBody(chunk);
  return shape;
}

} // namespace tessera::codegen
