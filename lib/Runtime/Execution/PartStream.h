//===- PartStream.h - A part on a device, in host memory --------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Kernels, products, copies and control flow are local to a device; backends
// implement communication.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_EXECUTION_PARTSTREAM_H
#define TESSERA_LIB_RUNTIME_EXECUTION_PARTSTREAM_H

#include "BlockLaunch.h"
#include "Code.h"
#include "KernelLibrary.h"
#include "PackedWeights.h"
#include "Recorder.h"
#include "WorkerPool.h"
#include "tessera/Runtime/Execution/Contract.h"

#include <optional>
#include <unordered_map>

namespace tessera::runtime {

/// The resources that execute the steps of host devices.
struct Processor {
  const KernelLibrary &kernels;
  const PackedWeights &packed;
  WorkerPool &pool;
  const Clock &clock;
  bool splits = false; ///< fewer devices than workers: large kernels and products become tasks
};

/// One part on one device: a program counter that advances until it must wait.
class PartStream {
public:
  /// `slots` by index of the part's slots; `packed`: the memory of its packed operands. Writes the
  /// device's coordinates into their slots.
  PartStream(const Processor &processor, const Program &program, const Part &part, const Code &code,
             int64_t device, std::vector<std::byte *> slots, std::byte *packed);
  virtual ~PartStream() = default;

  /// Back to the first step.
  virtual void restart();
  bool finished() const { return place == code->instructions.size(); }
  /// Order of the next step.
  int64_t order() const { return code->instructions[place].order; }
  /// Executes the next step; false when it must wait for others.
  Expected<bool> advance(Track *track);
  /// Describes the wait of a stream that cannot advance.
  virtual std::string describeWait() const = 0;

protected:
  using Op = Instruction::Op;
  /// A collective, wait, send or recv; false when it must wait for others, then it is called again.
  virtual Expected<bool> communicate(const Instruction &instruction) = 0;
  const Instruction &current() const { return code->instructions[place]; }
  std::byte *at(int64_t slot) const { return slots[slot]; }

  const Part *part;
  int64_t device; ///< process id

private:
  Expected<bool> execute(const Instruction &instruction);
  void launch(const LaunchStep &step);
  void gemm(const GemmStep &step, const Step *joined);
  /// The packed right operand of a product, which is packed now if that is due; null if the product
  /// reads it as it is.
  const std::byte *packedOperand(const GemmStep &step);
  /// Operands in memory that the instruction has written are packed again when they are read.
  void noteWrites(const Instruction &instruction);
  void contract(const ContractStep &step, const Step *joined);
  /// body(0) … body(count - 1), on several workers if the processor splits.
  template <typename Body> void runAll(int64_t count, const Body &body);
  BlockLaunch blocksOf(const LaunchStep &step) const;
  void runBlocks(const BlockLaunch &launch, const std::vector<int64_t> &blocks);
  /// Computes pieces of a product, and the blocks of the launch that joins it, if any.
  /// `writtenBy(piece)` is an ElementRange of the slot `result`.
  template <typename Run, typename WrittenBy>
  void runPieces(int64_t pieces, const Run &run, const Step *joined, int64_t result,
                 const WrittenBy &writtenBy);
  /// A step's tables, and in how many pieces it is computed.
  struct Contracting {
    Contraction contraction;
    int64_t pieces;
  };
  const Contracting &contractionOf(const ContractStep &step);
  void copy(const CopyStep &step) const;
  Status beginLoop(const Instruction &instruction);
  int64_t valueOf(int64_t slot) const;
  void setIndex(const LoopStep &loop, int64_t value) const;

  const Processor *processor;
  const Program *program;
  const Code *code;
  std::vector<std::byte *> slots;
  std::byte *packed;
  const PackPlan *plan;
  std::vector<bool> isPacked;    ///< by operand of the plan
  std::vector<void *> arguments; ///< of the current launch; grows once
  size_t place = 0;
  size_t next = 0;      ///< the next `place`
  int64_t beganNs = -1; ///< when the step at `place` was first tried; -1 before
  std::vector<LoopState> loops;
  std::unordered_map<const ContractStep *, Contracting> contractions; ///< those with small tables
  std::optional<Contracting> contracting;                ///< the last one with large tables
  std::unordered_map<const Step *, BlockProgress> joins; ///< by the launch that joins a product
};

/// Advances the first of a device's streams that can, in the merged order of their steps; waiting
/// streams do not block others. False if all wait or are finished.
Expected<bool> advanceOne(const std::vector<PartStream *> &streams, Track *track);

} // namespace tessera::runtime

#endif // TESSERA_LIB_RUNTIME_EXECUTION_PARTSTREAM_H
