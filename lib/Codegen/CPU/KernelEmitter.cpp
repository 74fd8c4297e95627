//===- KernelEmitter.cpp - Vector loops from a planned nest ---------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelEmitter.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace tessera::codegen {

Value NestEmitter::constant(int64_t value) {
  return arith::ConstantIndexOp::create(b, loc, value);
}

void NestEmitter::blocks(unsigned loop, int64_t block, function_ref<void(int64_t)> body) {
  int64_t extent = nest.loops[loop].extent;
  int64_t main = block ? extent / block * block : 0;
  if (main == block && main > 0) {
    position[loop] = Position();
    body(block);
  } else if (main > 0) {
    auto forOp = scf::ForOp::create(b, loc, constant(0), constant(main), constant(block));
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(forOp.getBody());
    position[loop] = {forOp.getInductionVar(), 0};
    body(block);
  }
  if (main < extent) {
    position[loop] = {Value(), main};
    body(extent - main);
  }
  position[loop] = Position();
}

void NestEmitter::emit() {
  for (const NestOperand &operand : nest.operands)
    views.push_back(operand.scalar ? operand.operand->get() : view(operand));
  if (llvm::any_of(nest.loops, [](const NestLoop &loop) { return loop.extent == 0; }))
    return;
  outerLoops(0);
}

void NestEmitter::outerLoops(unsigned depth) {
  if (depth == plan.outer.size())
    return jamBlocks();
  blocks(plan.outer[depth], 1, [&](int64_t) { outerLoops(depth + 1); });
}

void NestEmitter::jamBlocks() {
  if (plan.jam < 0)
    return vectorBlocks(1);
  blocks(plan.jam, plan.jams, [&](int64_t jams) {
    currentJams = jams;
    vectorBlocks(jams);
  });
}

void NestEmitter::vectorBlocks(int64_t jams) {
  if (plan.vector < 0)
    return tile(jams, {Chunk()});
  if (vectorReduces())
    return reducedTile(jams);
  blocks(plan.vector, plan.lanes * plan.vectors,
         [&](int64_t elements) { tile(jams, chunksOf(elements)); });
}

SmallVector<NestEmitter::Chunk> NestEmitter::chunksOf(int64_t elements) const {
  SmallVector<Chunk> chunks;
  for (int64_t begin = 0; begin < elements; begin += plan.lanes)
    chunks.push_back({begin, std::min(plan.lanes, elements - begin)});
  return chunks;
}

void NestEmitter::tile(int64_t jams, ArrayRef<Chunk> chunks) {
  Values accumulators;
  loaded.clear();
  transposed.clear();
  for (int64_t jam = 0; jam < jams; ++jam)
    for (Chunk chunk : chunks)
      for (const NestOutput &output : nest.outputs)
        if (output.accumulates)
          accumulators.push_back(
              widen(b, loc, load(nest.operands[output.operand], jam, chunk), chunk.width));
  accumulators = innerLoops(0, accumulators, [&](Values current) {
    loaded.clear();
    transposed.clear();
    Values next;
    size_t at = 0, count = accumulators.size() / (jams * chunks.size());
    for (int64_t jam = 0; jam < jams; ++jam)
      for (Chunk chunk : chunks) {
        llvm::append_range(next, body(jam, chunk, ValueRange(current).slice(at, count)));
        at += count;
      }
    return next;
  });
  size_t at = 0;
  for (int64_t jam = 0; jam < jams; ++jam)
    for (Chunk chunk : chunks)
      for (const NestOutput &output : nest.outputs)
        if (output.accumulates)
          store(nest.operands[output.operand], jam, chunk, accumulators[at++]);
}

void NestEmitter::reducedTile(int64_t jams) {
  int64_t extent = nest.loops[plan.vector].extent;
  int64_t block = plan.lanes * plan.vectors;
  int64_t main = extent / block * block;
  SmallVector<Chunk> full = chunksOf(main ? block : 0), rest = chunksOf(extent - main);
  // The accumulators of the whole blocks serve the remainder's whole vectors as well; its odd end
  // has one of its own.
  SmallVector<int64_t> widths;
  for (const Chunk &chunk : full)
    widths.push_back(chunk.width);
  SmallVector<unsigned> place;
  unsigned next = 0;
  for (const Chunk &chunk : rest) {
    if (next < full.size() && widths[next] == chunk.width) {
      place.push_back(next++);
    } else {
      place.push_back(widths.size());
      widths.push_back(chunk.width);
    }
  }
  SmallVector<const NestOutput *> outputs;
  for (const NestOutput &output : nest.outputs)
    if (output.accumulates)
      outputs.push_back(&output);

  // accumulators[(jam * widths + chunk) * outputs + output]
  Values accumulators;
  for (int64_t jam = 0; jam < jams; ++jam)
    for (int64_t width : widths)
      for (const NestOutput *output : outputs) {
        Type element = nest.operands[output->operand].element;
        auto type = VectorType::get(width, element);
        accumulators.push_back(arith::ConstantOp::create(
            b, loc,
            DenseElementsAttr::get(type, Attribute(neutralElement(*output->kind, element)))));
      }
  auto run = [&](Values values, ArrayRef<Chunk> chunks, ArrayRef<unsigned> places) {
    loaded.clear();
    transposed.clear();
    for (int64_t jam = 0; jam < jams; ++jam)
      for (auto [chunk, where] : llvm::zip_equal(chunks, places)) {
        size_t at = (jam * widths.size() + where) * outputs.size();
        Values results = body(jam, chunk, ValueRange(values).slice(at, outputs.size()));
        llvm::copy(results, values.begin() + at);
      }
    return values;
  };
  SmallVector<unsigned> identity = llvm::to_vector(llvm::seq<unsigned>(0, full.size()));
  accumulators = innerLoops(0, accumulators, [&](Values values) {
    if (main == block) {
      position[plan.vector] = Position();
      values = run(values, full, identity);
    } else if (main > 0) {
      auto forOp = scf::ForOp::create(b, loc, constant(0), constant(main), constant(block), values);
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(forOp.getBody());
      position[plan.vector] = {forOp.getInductionVar(), 0};
      scf::YieldOp::create(b, loc, run(Values(forOp.getRegionIterArgs()), full, identity));
      values = Values(forOp.getResults());
    }
    position[plan.vector] = {Value(), main};
    if (!rest.empty())
      values = run(values, rest, place);
    position[plan.vector] = Position();
    return values;
  });

  // Vectors of equal width are combined first, then across lanes: a fixed order.
  auto reassociate = arith::FastMathFlagsAttr::get(b.getContext(), arith::FastMathFlags::reassoc);
  loaded.clear();
  for (int64_t jam = 0; jam < jams; ++jam)
    for (auto [o, output] : llvm::enumerate(outputs)) {
      const NestOperand &operand = nest.operands[output->operand];
      Value total = load(operand, jam, Chunk());
      for (int64_t width : {plan.lanes, int64_t(0)}) {
        Value sum;
        for (auto [w, chunkWidth] : llvm::enumerate(widths)) {
          if ((chunkWidth == plan.lanes) != (width == plan.lanes))
            continue;
          Value part = accumulators[(jam * widths.size() + w) * outputs.size() + o];
          sum = sum ? vector::makeArithReduction(b, loc, *output->kind, sum, part) : part;
        }
        if (!sum)
          continue;
        bool floats = isa<FloatType>(operand.element);
        Value across =
            floats ? vector::ReductionOp::create(b, loc, *output->kind, sum, reassociate.getValue())
                         .getResult()
                   : vector::ReductionOp::create(b, loc, *output->kind, sum).getResult();
        total = vector::makeArithReduction(b, loc, *output->kind, total, across);
      }
      store(operand, jam, Chunk(), total);
    }
}

NestEmitter::Values NestEmitter::innerLoops(unsigned depth, Values accumulators,
                                            function_ref<Values(Values)> body) {
  if (depth == plan.inner.size())
    return body(accumulators);
  unsigned loop = plan.inner[depth];
  auto forOp = scf::ForOp::create(b, loc, constant(0), constant(nest.loops[loop].extent),
                                  constant(1), accumulators);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(forOp.getBody());
  position[loop] = {forOp.getInductionVar(), 0};
  Values results = innerLoops(depth + 1, Values(forOp.getRegionIterArgs()), body);
  if (!results.empty())
    scf::YieldOp::create(b, loc, results);
  position[loop] = Position();
  return Values(forOp.getResults());
}

//===----------------------------------------------------------------------===//
// The body
//===----------------------------------------------------------------------===//

Value NestEmitter::indexOf(unsigned origin, int64_t jam, Chunk chunk) {
  for (auto [i, loop] : llvm::enumerate(nest.loops)) {
    if (!llvm::is_contained(loop.origins, origin))
      continue;
    int64_t offset = position[i].offset + (int(i) == plan.jam ? jam : 0) +
                     (int(i) == plan.vector ? chunk.begin : 0);
    Value index = constant(offset);
    if (position[i].iv)
      index = arith::AddIOp::create(b, loc, position[i].iv, index);
    if (int(i) != plan.vector || chunk.width == 0)
      return index;
    auto type = VectorType::get(chunk.width, b.getIndexType());
    Value steps = vector::StepOp::create(b, loc, type);
    return arith::AddIOp::create(b, loc, vector::BroadcastOp::create(b, loc, type, index), steps);
  }
  return constant(0); // a loop of one trip
}

NestEmitter::Values NestEmitter::body(int64_t jam, Chunk chunk, ValueRange accumulators) {
  linalg::GenericOp op = nest.op;
  IRMapping mapping;
  for (const NestOperand &operand : nest.operands) {
    BlockArgument argument = op.getMatchingBlockArgument(operand.operand);
    if (!operand.output && !argument.use_empty())
      mapping.map(argument, load(operand, jam, chunk));
  }
  unsigned next = 0;
  for (const NestOutput &output : nest.outputs) {
    const NestOperand &operand = nest.operands[output.operand];
    BlockArgument argument = op.getMatchingBlockArgument(operand.operand);
    if (output.accumulates)
      mapping.map(argument, accumulators[next++]);
    else if (output.readsOld)
      mapping.map(argument, load(operand, jam, chunk));
  }
  for (Operation &inner : op.getBody()->without_terminator()) {
    if (auto index = dyn_cast<linalg::IndexOp>(inner))
      mapping.map(index.getResult(), indexOf(index.getDim(), jam, chunk));
    else
      mapping.map(inner.getResult(0), cloneInLanes(b, inner, mapping, chunk.width));
  }
  Values results;
  Operation *yield = op.getBody()->getTerminator();
  for (auto [i, output] : llvm::enumerate(nest.outputs)) {
    Value value = widen(b, loc, mapping.lookupOrDefault(yield->getOperand(i)), chunk.width);
    if (output.accumulates)
      results.push_back(value);
    else
      store(nest.operands[output.operand], jam, chunk, value);
  }
  return results;
}

} // namespace tessera::codegen
