//===- PartStream.cpp - A part on a device, in host memory ----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PartStream.h"

#include "tessera/Runtime/Execution/Gemm.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <optional>

namespace tessera::runtime {

PartStream::PartStream(const Processor &processor, const Program &program, const Part &part,
                       const Code &code, int64_t device, std::vector<std::byte *> slotList,
                       std::byte *packed)
    : part(&part), device(device), processor(&processor), program(&program), code(&code),
      slots(std::move(slotList)), packed(packed), plan(&processor.packed.planOf(program, part)),
      isPacked(plan->operands.size()), loops(static_cast<size_t>(code.numLoops)) {
  for (const Coordinate &coordinate : part.coordinates) {
    const sharding::Mesh &of = program.meshes[coordinate.mesh.value_or(part.mesh)];
    int64_t value =
        sharding::linearIndex(of, coordinate.axes, of.coordinate(of.positionOf(device)));
    std::memcpy(at(coordinate.slot), &value, sizeof(value));
  }
}

void PartStream::restart() {
  place = 0;
  beganNs = -1;
  // The caller may have written arguments. Constants stay.
  for (size_t i = 0; i < isPacked.size(); ++i)
    if (part->slots[plan->operands[i].product.b].space == Slot::Space::arena)
      isPacked[i] = false;
}

Expected<bool> PartStream::advance(Track *track) {
  const Instruction &instruction = code->instructions[place];
  if (track && beganNs < 0)
    beganNs = processor->clock.now();
  next = place + 1; // unless the step is a jump
  auto done = execute(instruction);
  if (!done || !*done)
    return done;
  if (!plan->writtenBy.empty())
    noteWrites(instruction);
  place = next;
  if (!track)
    return true;
  static constexpr const char *kNames[] = {"launch", "gemm", "collective", "wait",
                                           "send",   "recv", "copy",       "contract"};
  if (instruction.op <= Op::contract)
    track->add({instruction.step, kNames[static_cast<int>(instruction.op)], beganNs,
                processor->clock.now()});
  beganNs = -1;
  return true;
}

Expected<bool> PartStream::execute(const Instruction &instruction) {
  const auto &action = instruction.step->action;
  switch (instruction.op) {
  case Op::launch:
    launch(std::get<LaunchStep>(action));
    return true;
  case Op::gemm:
    gemm(std::get<GemmStep>(action), instruction.joined);
    return true;
  case Op::contract:
    contract(std::get<ContractStep>(action), instruction.joined);
    return true;
  case Op::collective:
  case Op::wait:
  case Op::send:
  case Op::recv:
    return communicate(instruction);
  case Op::copy:
    copy(std::get<CopyStep>(action));
    return true;
  case Op::loopBegin:
    TESSERA_RETURN_IF_ERROR(beginLoop(instruction));
    return true;
  case Op::loopNext: {
    LoopState &loop = loops[instruction.index];
    if (loop.next()) {
      setIndex(std::get<LoopStep>(action), loop.value());
      next = static_cast<size_t>(instruction.target);
    }
    return true;
  }
  case Op::jumpIfZero:
    if (valueOf(instruction.index) == 0)
      next = static_cast<size_t>(instruction.target);
    return true;
  case Op::jump:
    next = static_cast<size_t>(instruction.target);
    return true;
  }
  return true;
}

void PartStream::launch(const LaunchStep &step) {
  WorkerPool &pool = processor->pool;
  if (step.blocks != 1) {
    std::vector<int64_t> all(static_cast<size_t>(step.blocks));
    std::iota(all.begin(), all.end(), 0);
    runBlocks(blocksOf(step), all);
    return;
  }
  arguments.clear();
  for (int64_t slot : step.slots)
    arguments.push_back(at(slot));
  Kernel kernel = processor->kernels.kernel(step.kernel);
  int64_t tasks = processor->kernels.tasks(step.kernel);
  int64_t chunks = std::min(tasks, 4 * pool.size());
  if (!processor->splits || chunks <= 1) {
    kernel(arguments.data(), 0, tasks);
    return;
  }
  pool.parallelFor(chunks, [&](int64_t chunk) {
    kernel(arguments.data(), tasks * chunk / chunks, tasks * (chunk + 1) / chunks);
  });
}

BlockLaunch PartStream::blocksOf(const LaunchStep &step) const {
  std::vector<void *> pointers;
  for (int64_t slot : step.slots)
    pointers.push_back(at(slot));
  return {*program, step, processor->kernels.kernel(step.kernel),
          processor->kernels.tasks(step.kernel), std::move(pointers)};
}

template <typename Body> void PartStream::runAll(int64_t count, const Body &body) {
  if (processor->splits)
    processor->pool.parallelFor(count, body);
  else
    for (int64_t i = 0; i < count; ++i)
      body(i);
}

void PartStream::runBlocks(const BlockLaunch &launch, const std::vector<int64_t> &blocks) {
  auto count = static_cast<int64_t>(blocks.size());
  if (count == 0)
    return;
  const int64_t tasks = launch.numTasks();
  const int64_t most = processor->splits ? 4 * processor->pool.size() : 1;
  const int64_t chunks = std::clamp<int64_t>((most + count - 1) / count, 1, tasks);
  runAll(count * chunks, [&](int64_t i) {
    int64_t chunk = i % chunks;
    launch.run(blocks[i / chunks], tasks * chunk / chunks, tasks * (chunk + 1) / chunks);
  });
}

template <typename Run, typename WrittenBy>
void PartStream::runPieces(int64_t pieces, const Run &run, const Step *joined, int64_t result,
                           const WrittenBy &writtenBy) {
  if (!joined) {
    runAll(pieces, run);
    return;
  }
  const auto &launch = std::get<LaunchStep>(joined->action);
  auto known = joins.find(joined);
  if (known == joins.end()) {
    std::vector<ElementRange> written;
    for (int64_t piece = 0; piece < pieces; ++piece)
      written.push_back(writtenBy(piece));
    const Slot &slot = part->slots[result];
    known =
        joins.try_emplace(joined, written, slot.bytes / sizeOf(slot.dtype), launch.blocks).first;
  }
  BlockProgress &progress = known->second;
  BlockLaunch blocks = blocksOf(launch);
  const int64_t workers = processor->splits ? processor->pool.size() : 1;
  progress.begin();
  runAll(pieces, [&](int64_t piece) {
    run(piece);
    progress.finish(piece, workers, [&](int64_t block) { blocks.run(block); });
  });
  runBlocks(blocks, progress.left());
}

/// The elements of C from the first to the last of a piece.
static ElementRange writtenBy(const GemmStep &step, const GemmPiece &piece) {
  return {piece.batchBegin * step.strideC + piece.rowBegin * step.ldc + piece.columnBegin,
          (piece.batchEnd - 1) * step.strideC + (piece.rowEnd - 1) * step.ldc + piece.columnEnd -
              1};
}

void PartStream::noteWrites(const Instruction &instruction) {
  for (const Step *step : {instruction.step, instruction.joined}) {
    auto written = plan->writtenBy.find(step);
    if (written != plan->writtenBy.end())
      for (int64_t operand : written->second)
        isPacked[static_cast<size_t>(operand)] = false;
  }
}

const std::byte *PartStream::packedOperand(const GemmStep &step) {
  auto found = plan->ofProduct.find(&step);
  if (found == plan->ofProduct.end())
    return nullptr;
  const auto index = static_cast<size_t>(found->second);
  const PackedOperand &operand = plan->operands[index];
  if (operand.when == PackedOperand::When::load)
    return processor->packed.shared(operand);
  std::byte *to = packed + operand.offset;
  if (isPacked[index])
    return to;
  constexpr int64_t kColumns = GemmCut::kColumns;
  runAll((step.n + kColumns - 1) / kColumns, [&](int64_t block) {
    packColumns(step, at(step.b), block * kColumns, std::min(step.n, (block + 1) * kColumns), to);
  });
  isPacked[index] = operand.when == PackedOperand::When::changes;
  return to;
}

void PartStream::gemm(const GemmStep &step, const Step *joined) {
  const std::byte *panels = packedOperand(step);
  const void *bias = step.bias ? at(*step.bias) : nullptr;
  const RightOperand right = panels ? RightOperand::packed : RightOperand::plain;
  const int64_t workers = processor->splits ? processor->pool.size() : 1;
  // A joined kernel runs on what a piece has just written, so that pieces stay small.
  GemmCut cut = joined ? cutGemm(step) : cutGemm(step, right, workers);
  runPieces(
      cut.size(),
      [&](int64_t task) {
        multiply(step, at(step.a), panels ? panels : at(step.b), at(step.c), bias,
                 cut.piece(step, task), right);
      },
      joined, step.c, [&](int64_t task) { return writtenBy(step, cut.piece(step, task)); });
}

const PartStream::Contracting &PartStream::contractionOf(const ContractStep &step) {
  // Keep only contractions whose memory is small relative to their operands.
  constexpr int64_t kMostKept = 1 << 15;
  constexpr double kProductsPerTask = 1 << 22;
  auto known = contractions.find(&step);
  if (known != contractions.end())
    return known->second;
  Contracting made{Contraction(step), 1};
  auto most = static_cast<int64_t>(std::min(made.contraction.products() / kProductsPerTask,
                                            4.0 * static_cast<double>(processor->pool.size())));
  made.pieces = made.contraction.split(processor->splits ? most : 1);
  if (made.contraction.tableSize() <= kMostKept)
    return contractions.emplace(&step, std::move(made)).first->second;
  contracting = std::move(made);
  return *contracting;
}

void PartStream::contract(const ContractStep &step, const Step *joined) {
  const Contracting &made = contractionOf(step);
  auto *c = reinterpret_cast<float *>(at(step.c));
  runPieces(
      made.pieces, [&](int64_t piece) { made.contraction.run(piece, at(step.a), at(step.b), c); },
      joined, step.c, [&](int64_t piece) { return made.contraction.writtenBy(piece); });
}

void PartStream::copy(const CopyStep &step) const {
  constexpr int64_t kPiece = 1 << 19;
  std::byte *to = at(step.dst), *from = at(step.src);
  int64_t pieces = processor->splits ? step.bytes / kPiece : 1;
  // Slots may overlap where a planner shifts a buffer.
  if (pieces <= 1 || (to < from + step.bytes && from < to + step.bytes)) {
    std::memmove(to, from, static_cast<size_t>(step.bytes));
    return;
  }
  pieces = std::min(pieces, 4 * processor->pool.size());
  processor->pool.parallelFor(pieces, [&](int64_t piece) {
    int64_t begin = step.bytes * piece / pieces, end = step.bytes * (piece + 1) / pieces;
    std::memcpy(to + begin, from + begin, static_cast<size_t>(end - begin));
  });
}

int64_t PartStream::valueOf(int64_t slot) const {
  return readInteger(part->slots[slot].dtype, at(slot));
}

void PartStream::setIndex(const LoopStep &loop, int64_t value) const {
  std::memcpy(at(loop.iv), &value, sizeof(value));
}

Status PartStream::beginLoop(const Instruction &instruction) {
  const auto &loop = std::get<LoopStep>(instruction.step->action);
  auto valueOfBound = [&](const Bound &bound) {
    return bound.slot ? valueOf(*bound.slot) : bound.value;
  };
  LoopState &state = loops[instruction.index];
  auto begun = state.begin(valueOfBound(loop.lower), valueOfBound(loop.upper),
                           valueOfBound(loop.step), *instruction.step, device);
  if (!begun)
    return begun.status();
  if (*begun)
    setIndex(loop, state.value());
  else
    next = static_cast<size_t>(instruction.target);
  return {};
}

Expected<bool> advanceOne(const std::vector<PartStream *> &streams, Track *track) {
  // The smallest order first; among equal ones, the part that was added first.
  std::optional<std::pair<int64_t, size_t>> tried;
  while (true) {
    std::optional<std::pair<int64_t, size_t>> best;
    for (size_t i = 0; i < streams.size(); ++i) {
      if (streams[i]->finished())
        continue;
      std::pair<int64_t, size_t> key{streams[i]->order(), i};
      if ((!tried || key > *tried) && (!best || key < *best))
        best = key;
    }
    if (!best)
      return false;
    auto went = streams[best->second]->advance(track);
    if (!went || *went)
      return went;
    tried = best;
  }
}

} // namespace tessera::runtime
