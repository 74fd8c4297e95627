//===- Evaluator.cpp - Values of one device while a program runs ----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Evaluator.h"

#include "tessera/Dialect/Dist/Rules/DynamicIndices.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace tessera::interpreter;

//===----------------------------------------------------------------------===//
// Evaluator
//===----------------------------------------------------------------------===//

const Tensor &Evaluator::get(Value value) const {
  auto it = values.find(value);
  assert(it != values.end() && "SSA: a value is computed before it is used");
  return it->second;
}

SmallVector<Tensor> Evaluator::get(ValueRange list) const {
  return llvm::map_to_vector(list, [&](Value value) { return get(value); });
}

SmallVector<int64_t> Evaluator::getInts(ArrayRef<OpFoldResult> mixed) const {
  return llvm::map_to_vector(mixed, [&](OpFoldResult entry) -> int64_t {
    if (std::optional<int64_t> constant = getConstantIntValue(entry))
      return *constant;
    return getInt(cast<Value>(entry));
  });
}

int64_t tessera::interpreter::clampedIndex(int64_t index, int64_t extent, int64_t size,
                                           int64_t stride) {
  dist::OffsetBounds bounds = dist::offsetBounds(extent, size, stride);
  return std::max(std::min(index, bounds.greatest), bounds.least);
}

void Evaluator::set(Value value, Tensor tensor) {
  values[value] = std::move(tensor);
}

Tensor Evaluator::undefined(Type elementType, ArrayRef<int64_t> shape) const {
  return Tensor::filled(elementType, shape,
                        poisonOf(*ElementType::get(elementType), program.options.poison));
}

InFlightDiagnostic Evaluator::error(Operation *op) const {
  InFlightDiagnostic diagnostic = mlir::emitError(op->getLoc());
  diagnostic << who << "'" << op->getName() << "' ";
  return diagnostic;
}

//===----------------------------------------------------------------------===//
// ElementBody
//===----------------------------------------------------------------------===//

unsigned ElementBody::slotOf(Value value) {
  auto [it, isNew] = slotOfValue.try_emplace(value, slots.size());
  if (isNew)
    slots.push_back(evaluator->get(value).item());
  return it->second;
}

/// An element of a tensor defined outside the body.
static ScalarKernel extractFrom(Tensor source) {
  return [source](const Scalar *in, Scalar *out) -> const char * {
    SmallVector<int64_t, 4> index;
    for (int64_t d = 0; d < source.rank(); ++d)
      index.push_back(clampedIndex(in[d].i, source.shape()[d]));
    int64_t linear = source.linearize(index);
    if (linear < 0)
      return "reads a tensor without elements";
    *out = source.load(linear);
    return nullptr;
  };
}

FailureOr<ScalarKernel> ElementBody::kernelOf(Operation *op) {
  if (auto index = dyn_cast<linalg::IndexOp>(op)) {
    SmallVector<int64_t> *current = iteration.get();
    uint64_t dim = index.getDim();
    return ScalarKernel([=](const Scalar *, Scalar *out) -> const char * {
      *out = Scalar::ofInt((*current)[dim]);
      return nullptr;
    });
  }
  if (llvm::is_contained(wide, op))
    return getWideKernel(op);
  if (auto extract = dyn_cast<tensor::ExtractOp>(op))
    return extractFrom(evaluator->get(extract.getTensor()));
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    if (Tensor value = toTensor(constant.getValue()); value && value.rank() == 0)
      return ScalarKernel([=](const Scalar *, Scalar *out) -> const char * {
        *out = value.item();
        return nullptr;
      });
  }
  bool scalars = llvm::none_of(op->getOperandTypes(), llvm::IsaPred<ShapedType>);
  if (ScalarKernel kernel = scalars ? getScalarKernel(op) : ScalarKernel())
    return kernel;
  return evaluator->error(op) << "is not known to the interpreter inside an element-wise body";
}

FailureOr<ElementBody> ElementBody::prepare(Block &block, Evaluator &evaluator,
                                            ArrayRef<Operation *> wide) {
  ElementBody body(evaluator);
  body.wide.assign(wide.begin(), wide.end());
  for (BlockArgument argument : block.getArguments()) {
    body.slotOfValue[argument] = body.slots.size();
    body.slots.emplace_back();
  }
  FailureOr<Sequence> sequence = body.sequenceOf(block);
  if (failed(sequence))
    return failure();
  body.body = std::move(*sequence);
  return body;
}

FailureOr<ElementBody::Sequence> ElementBody::sequenceOf(Block &block) {
  Sequence sequence;
  for (Operation &op : block.without_terminator()) {
    Step step{&op, {}, {}, {}, {}};
    if (auto branch = dyn_cast<scf::IfOp>(op)) {
      for (Block *arm : {branch.thenBlock(), branch.elseBlock()}) {
        FailureOr<Sequence> taken = arm ? sequenceOf(*arm) : FailureOr<Sequence>(Sequence());
        if (failed(taken))
          return failure();
        step.arms.push_back(std::move(*taken));
      }
    } else {
      FailureOr<ScalarKernel> kernel = kernelOf(&op);
      if (failed(kernel))
        return failure();
      step.kernel = std::move(*kernel);
    }
    for (Value operand : op.getOperands())
      if (!isa<ShapedType>(operand.getType()))
        step.operands.push_back(slotOf(operand));
    for (Value result : op.getResults()) {
      step.results.push_back(slots.size());
      slotOfValue[result] = slots.size();
      slots.emplace_back();
    }
    sequence.steps.push_back(std::move(step));
  }
  for (Value value : block.getTerminator()->getOperands())
    sequence.yields.push_back(slotOf(value));
  return sequence;
}

LogicalResult ElementBody::run(const Sequence &sequence) {
  SmallVector<Scalar, 4> in, out;
  for (const Step &step : sequence.steps) {
    if (!step.arms.empty()) {
      const Sequence &taken = step.arms[slots[step.operands.front()].i ? 0 : 1];
      if (failed(run(taken)))
        return failure();
      for (auto [slot, yielded] : llvm::zip_equal(step.results, taken.yields))
        slots[slot] = slots[yielded];
      continue;
    }
    in.clear();
    for (unsigned slot : step.operands)
      in.push_back(slots[slot]);
    out.resize(step.results.size());
    if (const char *reason = step.kernel(in.data(), out.data()))
      return evaluator->error(step.op) << reason;
    for (auto [slot, value] : llvm::zip_equal(step.results, out))
      slots[slot] = value;
  }
  return success();
}

LogicalResult ElementBody::run(ArrayRef<Scalar> arguments, ArrayRef<int64_t> at) {
  iteration->assign(at.begin(), at.end());
  llvm::copy(arguments, slots.begin());
  return run(body);
}
