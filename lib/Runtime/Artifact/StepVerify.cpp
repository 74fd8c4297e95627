//===- StepVerify.cpp - Checks of a program's steps -----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Verifier.h"

#include <algorithm>
#include <cstdlib>
#include <limits>

namespace tessera::runtime {

using Use = Verifier::Use;

static std::string text(int64_t value) {
  return std::to_string(value);
}

Status StepVerifier::run() {
  for (size_t i = 0; i < base.program.parts.size(); ++i) {
    part = &base.program.parts[i];
    anyOrder = false;
    seenTokens.clear();
    TESSERA_RETURN_IF_ERROR(checkList(part->steps, "program.parts[" + text(i) + "].steps"));
  }
  return checkTransfers();
}

Status StepVerifier::checkList(const StepList &steps, const std::string &listPath) {
  // A collective is waited for in the list that starts it: it never spans the back edge of a loop
  // or an arm of a branch.
  std::set<int64_t> outer;
  outer.swap(open);
  for (size_t i = 0; i < steps.size(); ++i) {
    before = i ? &steps[i - 1] : nullptr;
    TESSERA_RETURN_IF_ERROR(checkStep(steps[i], listPath + "[" + text(i) + "]"));
  }
  if (!open.empty())
    return Status::error("token " + text(*open.begin()) + " is started here and has no wait")
        .in(listPath);
  open.swap(outer);
  return {};
}

Status StepVerifier::checkStep(const Step &step, const std::string &stepPath) {
  if (anyOrder && step.order <= lastOrder)
    return Status::error("order " + text(step.order) + " does not follow " + text(lastOrder))
        .in(stepPath);
  anyOrder = true;
  lastOrder = step.order;
  path = stepPath;
  // Nested lists report their own path.
  bool nests = std::holds_alternative<LoopStep>(step.action) ||
               std::holds_alternative<WhileStep>(step.action) ||
               std::holds_alternative<IfStep>(step.action);
  Status status = std::visit([&](const auto &action) { return check(action); }, step.action);
  return nests ? status : status.in(stepPath);
}

Status StepVerifier::check(const LaunchStep &launch) {
  if (launch.kernel < 0 || launch.kernel >= static_cast<int64_t>(base.program.kernels.size()))
    return Status::error("kernel " + text(launch.kernel) + " does not exist, the program has " +
                         text(base.program.kernels.size()));
  if (launch.reads < 0 || launch.reads > static_cast<int64_t>(launch.slots.size()))
    return Status::error("reads is " + text(launch.reads) + "; expected 0 to " +
                         text(launch.slots.size()) + ", the number of args");
  const std::vector<int64_t> *bytes =
      base.program.kernelBytes.empty() ? nullptr : &base.program.kernelBytes[launch.kernel];
  if (bytes && bytes->size() != launch.slots.size())
    return Status::error("kernel '" + base.program.kernels[launch.kernel] + "' has " +
                         text(bytes->size()) + " arguments, the launch gives " +
                         text(launch.slots.size()));
  for (size_t i = 0; i < launch.slots.size(); ++i) {
    Use use = static_cast<int64_t>(i) < launch.reads ? Use::read : Use::write;
    TESSERA_RETURN_IF_ERROR(
        base.checkSlot(*part, launch.slots[i], use).in("args[" + text(i) + "]"));
    if (int64_t held = part->slots[launch.slots[i]].bytes; bytes && held < (*bytes)[i])
      return Status::error("slot " + text(launch.slots[i]) + " holds " + text(held) +
                           " bytes, the kernel takes " + text((*bytes)[i]))
          .in("args[" + text(i) + "]");
  }
  TESSERA_RETURN_IF_ERROR(checkBlocks(launch));
  return launch.joins ? checkJoin(launch) : Status();
}

Status StepVerifier::checkMatrix(int64_t slot, Use use, DType dtype, int64_t batch, int64_t rows,
                                 int64_t columns, int64_t leading, int64_t stride) {
  TESSERA_RETURN_IF_ERROR(base.checkSlot(*part, slot, use));
  const Slot &buffer = part->slots[slot];
  if (buffer.dtype != dtype)
    return Status::error("slot " + text(slot) + " has elements of " +
                         std::string(toString(buffer.dtype)));
  if (leading < columns || stride < 0)
    return Status::error("leading dimension " + text(leading) + " for " + text(columns) +
                         " columns, or a negative stride; rows must not overlap");
  if (batch == 0 || rows == 0 || columns == 0)
    return {};
  // Strides are at most the capacity before they are multiplied, so nothing overflows.
  int64_t capacity = buffer.bytes / sizeOf(dtype);
  bool fits = columns <= capacity && (rows == 1 || leading <= capacity / (rows - 1)) &&
              (batch == 1 || stride <= capacity / (batch - 1));
  if (!fits || (batch - 1) * stride + (rows - 1) * leading + columns > capacity)
    return Status::error("the matrices reach beyond slot " + text(slot));
  return {};
}

Status StepVerifier::check(const GemmStep &gemm) {
  for (int64_t extent : {gemm.batch, gemm.m, gemm.n, gemm.k})
    if (extent < 0 || extent > (int64_t(1) << 31) - 1)
      return Status::error("extent " + text(extent) + " is out of range");
  DType result = gemm.resultDType.value_or(gemm.dtype);
  if (result != gemm.dtype && !(isHalf(gemm.dtype) && result == DType::f32))
    return Status::error("c_dtype must be dtype, or f32 if dtype is f16 or bf16");
  if (gemm.batch > 1 && gemm.strideC == 0 && gemm.m > 0 && gemm.n > 0)
    return Status::error("stride_c is 0: the batches would overwrite each other");
  TESSERA_RETURN_IF_ERROR(checkMatrix(gemm.a, Use::read, gemm.dtype, gemm.batch,
                                      gemm.transA ? gemm.k : gemm.m, gemm.transA ? gemm.m : gemm.k,
                                      gemm.lda, gemm.strideA)
                              .in("a"));
  TESSERA_RETURN_IF_ERROR(checkMatrix(gemm.b, Use::read, gemm.dtype, gemm.batch,
                                      gemm.transB ? gemm.n : gemm.k, gemm.transB ? gemm.k : gemm.n,
                                      gemm.ldb, gemm.strideB)
                              .in("b"));
  TESSERA_RETURN_IF_ERROR(
      checkMatrix(gemm.c, Use::write, result, gemm.batch, gemm.m, gemm.n, gemm.ldc, gemm.strideC)
          .in("c"));
  return checkEpilogue(gemm);
}

/// The least and the greatest accessed element of an operand; false on overflow.
static bool reachOf(const ContractStep &step, int operand, int64_t &least, int64_t &greatest) {
  least = greatest = step.starts[operand];
  for (const ContractLoop &loop : step.loops) {
    int64_t reach;
    if (__builtin_mul_overflow(loop.extent - 1, loop.strides[operand], &reach) ||
        __builtin_add_overflow(reach < 0 ? least : greatest, reach, reach < 0 ? &least : &greatest))
      return false;
  }
  return true;
}

/// Whether no two iterations of the loops of C write the same element: the stride of each loop
/// exceeds the reach of those with smaller strides.
static bool writesOnce(const ContractStep &step) {
  std::vector<std::pair<int64_t, int64_t>> loops; // stride, extent
  for (const ContractLoop &loop : step.loops)
    if (loop.strides[2] != 0 && loop.extent > 1)
      loops.emplace_back(std::abs(loop.strides[2]), loop.extent);
  std::sort(loops.begin(), loops.end());
  int64_t reach = 0;
  for (auto [stride, extent] : loops) {
    if (stride <= reach)
      return false;
    reach += stride * (extent - 1);
  }
  return true;
}

/// Whether no position in a bound overflows.
static bool isBound(const ContractStep &step, const ContractBounds &bound) {
  int64_t reach = 0, distance;
  for (size_t i = 0; i < step.loops.size(); ++i)
    if (bound.strides[i] == std::numeric_limits<int64_t>::min() ||
        __builtin_mul_overflow(step.loops[i].extent - 1, std::abs(bound.strides[i]), &distance) ||
        __builtin_add_overflow(reach, distance, &reach))
      return false;
  return true;
}

Status StepVerifier::check(const ContractStep &contract) {
  if (contract.dtype != DType::f32 && !isHalf(contract.dtype))
    return Status::error("unsupported element type " + std::string(toString(contract.dtype)) +
                         "; expected f32, f16 or bf16");
  // The offsets of all summands are kept in a table.
  constexpr int64_t kMost = (int64_t(1) << 31) - 1;
  int64_t summands = 1;
  for (const ContractLoop &loop : contract.loops) {
    if (loop.extent < 1 || loop.extent > kMost)
      return Status::error("extent " + text(loop.extent) + " is out of range");
    if (loop.strides[2] == 0 && __builtin_mul_overflow(summands, loop.extent, &summands))
      summands = kMost + 1;
    if (summands > kMost)
      return Status::error("more than 2^31 - 1 products are added to an element");
  }
  const int64_t slots[] = {contract.a, contract.b, contract.c};
  const char *const names[] = {"a", "b", "c"};
  for (int operand = 0; operand < 3; ++operand) {
    bool written = operand == 2;
    TESSERA_RETURN_IF_ERROR(
        base.checkSlot(*part, slots[operand], written ? Use::write : Use::read).in(names[operand]));
    const Slot &slot = part->slots[slots[operand]];
    DType dtype = written ? DType::f32 : contract.dtype;
    if (slot.dtype != dtype)
      return Status::error("slot " + text(slots[operand]) + " has elements of " +
                           std::string(toString(slot.dtype)))
          .in(names[operand]);
    int64_t least = 0, greatest = 0;
    if (!reachOf(contract, operand, least, greatest) || least < 0 ||
        greatest >= slot.bytes / sizeOf(dtype))
      return Status::error("the loops reach beyond slot " + text(slots[operand]))
          .in(names[operand]);
  }
  if (!writesOnce(contract))
    return Status::error("two iterations write the same element").in("c");
  for (const ContractBounds &bound : contract.within)
    if (bound.strides.size() != contract.loops.size())
      return Status::error("a bound has " + text(static_cast<int64_t>(bound.strides.size())) +
                           " strides for " + text(static_cast<int64_t>(contract.loops.size())) +
                           " loops")
          .in("within");
    else if (!isBound(contract, bound))
      return Status::error("a position in a bound is out of range").in("within");
  return {};
}

Status StepVerifier::checkEpilogue(const GemmStep &gemm) {
  if (!gemm.hasEpilogue())
    return {};
  if (gemm.dtype != DType::f32 && !isHalf(gemm.dtype))
    return Status::error("a product of " + std::string(toString(gemm.dtype)) +
                         " cannot have a bias or an epilogue; only f32, f16 and bf16 products can");
  if (gemm.k == 0)
    return Status::error("a product with k = 0 cannot have a bias or an epilogue");
  if (!gemm.bias)
    return {};
  TESSERA_RETURN_IF_ERROR(checkMatrix(*gemm.bias, Use::read, gemm.resultDType.value_or(gemm.dtype),
                                      1, 1, gemm.n, gemm.n, 0)
                              .in("bias"));
  const Slot &bias = part->slots[*gemm.bias], &c = part->slots[gemm.c];
  if (bias.space == c.space && bias.offset < c.offset + c.bytes &&
      c.offset < bias.offset + bias.bytes)
    return Status::error("the bias, slot " + text(*gemm.bias) +
                         ", overlaps slot c, which the product writes");
  return {};
}

Status StepVerifier::checkOperand(const Operand &operand, int64_t sourceMesh, int64_t targetMesh) {
  const Program &program = base.program;
  for (const sharding::Layout *layout : {&operand.source, &operand.target})
    if (layout->globalShape != operand.globalShape)
      return Status::error("source, target and global_shape differ");
  TESSERA_RETURN_IF_ERROR(
      base.checkLayout(program.meshes[sourceMesh], operand.source, operand.dtype).in("source"));
  TESSERA_RETURN_IF_ERROR(
      base.checkLayout(program.meshes[targetMesh], operand.target, operand.dtype).in("target"));
  // An element that no device holds cannot be sent.
  sharding::Redistribution move = sharding::redistribute(
      program.meshes[sourceMesh], operand.source, program.meshes[targetMesh], operand.target);
  if (!move.fills.empty() && operand.target.partial.empty())
    return Status::error("the target needs elements that no device holds");
  return {};
}

Status StepVerifier::check(const CollectiveStep &collective) {
  TESSERA_RETURN_IF_ERROR(base.checkMeshOfPart(*part, collective.mesh));
  int64_t targetMesh = collective.targetMesh.value_or(collective.mesh);
  TESSERA_RETURN_IF_ERROR(base.checkMeshOfPart(*part, targetMesh).in("target_mesh"));
  TESSERA_RETURN_IF_ERROR(
      base.checkAxes(base.program.meshes[collective.mesh], collective.axes).in("axes"));
  if (collective.kind == sharding::CollectiveKind::transfer)
    return Status::error("a transfer is not a collective step; write it as send and recv");
  if (!collectiveIds.insert(collective.id).second)
    return Status::error("id " + text(collective.id) + " is taken");
  if (collective.operands.empty())
    return Status::error("a collective must have at least one operand");
  for (size_t i = 0; i < collective.operands.size(); ++i) {
    const Operand &operand = collective.operands[i];
    std::string where = "operands[" + text(i) + "]";
    TESSERA_RETURN_IF_ERROR(checkOperand(operand, collective.mesh, targetMesh).in(where));
    TESSERA_RETURN_IF_ERROR(
        base.checkBuffer(*part, operand.src, Use::read, operand.source, operand.dtype)
            .in(where + ".src"));
    TESSERA_RETURN_IF_ERROR(
        base.checkBuffer(*part, operand.dst, Use::write, operand.target, operand.dtype)
            .in(where + ".dst"));
  }
  if (!collective.token)
    return {};
  if (!seenTokens.insert(*collective.token).second)
    return Status::error("token " + text(*collective.token) + " is taken");
  open.insert(*collective.token);
  return {};
}

Status StepVerifier::check(const TransferStep &transfer) {
  TESSERA_RETURN_IF_ERROR(base.checkMesh(transfer.sourceMesh));
  TESSERA_RETURN_IF_ERROR(base.checkMesh(transfer.targetMesh));
  TESSERA_RETURN_IF_ERROR(
      base.checkMeshOfPart(*part, transfer.isSend ? transfer.sourceMesh : transfer.targetMesh));
  if (transfer.operands.empty())
    return Status::error("a transfer must have at least one operand");
  for (size_t i = 0; i < transfer.operands.size(); ++i) {
    const Operand &operand = transfer.operands[i];
    std::string where = "operands[" + text(i) + "]";
    TESSERA_RETURN_IF_ERROR(
        checkOperand(operand, transfer.sourceMesh, transfer.targetMesh).in(where));
    TESSERA_RETURN_IF_ERROR(
        (transfer.isSend
             ? base.checkBuffer(*part, operand.src, Use::read, operand.source, operand.dtype)
             : base.checkBuffer(*part, operand.dst, Use::write, operand.target, operand.dtype))
            .in(where + (transfer.isSend ? ".src" : ".dst")));
  }
  auto &sides = transfer.isSend ? sends : recvs;
  if (!sides.emplace(transfer.id, Side{&transfer, path}).second)
    return Status::error("id " + text(transfer.id) + " is taken");
  return {};
}

Status StepVerifier::checkTransfers() const {
  for (auto &[id, recv] : recvs)
    if (!sends.count(id))
      return Status::error("nothing sends transfer " + text(id)).in(recv.path);
  for (auto &[id, send] : sends) {
    auto it = recvs.find(id);
    if (it == recvs.end())
      return Status::error("nothing receives transfer " + text(id)).in(send.path);
    if (collectiveIds.count(id))
      return Status::error("id " + text(id) + " is also a collective's").in(send.path);
    const TransferStep &a = *send.step, &b = *it->second.step;
    bool same = a.sourceMesh == b.sourceMesh && a.targetMesh == b.targetMesh &&
                a.operands.size() == b.operands.size();
    for (size_t i = 0; same && i < a.operands.size(); ++i)
      same = a.operands[i].dtype == b.operands[i].dtype &&
             a.operands[i].source == b.operands[i].source &&
             a.operands[i].target == b.operands[i].target;
    if (!same)
      return Status::error("the send and the recv of transfer " + text(id) + " differ")
          .in(it->second.path);
  }
  return {};
}

Status StepVerifier::check(const WaitStep &wait) {
  if (!seenTokens.count(wait.token))
    return Status::error("token " + text(wait.token) + " is not started before this wait");
  open.erase(wait.token);
  return {};
}

Status StepVerifier::check(const CopyStep &copy) {
  TESSERA_RETURN_IF_ERROR(base.checkSlot(*part, copy.src, Use::read).in("src"));
  TESSERA_RETURN_IF_ERROR(base.checkSlot(*part, copy.dst, Use::write).in("dst"));
  if (copy.bytes < 0 || copy.bytes > part->slots[copy.src].bytes ||
      copy.bytes > part->slots[copy.dst].bytes)
    return Status::error(text(copy.bytes) + " bytes do not fit into both slots");
  return {};
}

Status StepVerifier::checkBound(const Bound &bound) {
  if (!bound.slot)
    return {};
  TESSERA_RETURN_IF_ERROR(base.checkSlot(*part, *bound.slot, Use::read));
  const Slot &slot = part->slots[*bound.slot];
  bool integer = slot.dtype == DType::index || slot.dtype == DType::i64 || slot.dtype == DType::i32;
  if (!integer || slot.bytes < sizeOf(slot.dtype))
    return Status::error("slot " + text(*bound.slot) + " does not hold an integer");
  return {};
}

Status StepVerifier::checkCondition(int64_t slot) {
  TESSERA_RETURN_IF_ERROR(base.checkSlot(*part, slot, Use::read));
  if (part->slots[slot].dtype != DType::i1 || part->slots[slot].bytes < 1)
    return Status::error("slot " + text(slot) + " does not hold an i1");
  return {};
}

Status StepVerifier::check(const LoopStep &loop) {
  std::string where = path;
  TESSERA_RETURN_IF_ERROR(base.checkIndexSlot(*part, loop.iv).in(where + ".iv"));
  TESSERA_RETURN_IF_ERROR(checkBound(loop.lower).in(where + ".lower"));
  TESSERA_RETURN_IF_ERROR(checkBound(loop.upper).in(where + ".upper"));
  TESSERA_RETURN_IF_ERROR(checkBound(loop.step).in(where + ".step"));
  if (!loop.step.slot && loop.step.value < 1)
    return Status::error("the step of a loop must be positive").in(where + ".step");
  return checkList(loop.body, where + ".body");
}

Status StepVerifier::check(const WhileStep &loop) {
  std::string where = path;
  TESSERA_RETURN_IF_ERROR(checkCondition(loop.condition).in(where + ".condition"));
  TESSERA_RETURN_IF_ERROR(checkList(loop.before, where + ".before"));
  return checkList(loop.body, where + ".body");
}

Status StepVerifier::check(const IfStep &branch) {
  std::string where = path;
  TESSERA_RETURN_IF_ERROR(checkCondition(branch.condition).in(where + ".condition"));
  TESSERA_RETURN_IF_ERROR(checkList(branch.thenSteps, where + ".then"));
  return checkList(branch.elseSteps, where + ".else");
}

} // namespace tessera::runtime
