//===- GpuAccess.cpp - Memory accesses of an op of a kernel ---------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GpuAccess.h"

#include "../../Kernels/KernelLanes.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

#include <numeric>

using namespace mlir;

namespace tessera::codegen {

Value rootOf(Value view) {
  while (auto op = view.getDefiningOp<ViewLikeOpInterface>())
    view = op.getViewSource();
  return view;
}

int64_t bytesOf(Type element) {
  return element.isIndex() ? 8 : (element.getIntOrFloatBitWidth() + 7) / 8;
}

int64_t GpuMember::volume() const {
  int64_t product = 1;
  for (int64_t extent : extents)
    product *= extent;
  return product;
}

bool GpuMember::isFill() const {
  return gathered.empty() && !hasReduction() &&
         llvm::all_of(accesses,
                      [](const GpuAccess &access) { return access.scalar || access.output; }) &&
         llvm::none_of(outputs, [](const NestOutput &output) { return output.readsOld; });
}

/// A divisor of all values of `index`.
static int64_t divisorOf(Value index) {
  if (std::optional<int64_t> known = getConstantIntValue(index))
    return *known;
  if (auto product = index.getDefiningOp<arith::MulIOp>())
    return divisorOf(product.getLhs()) * divisorOf(product.getRhs());
  if (auto sum = index.getDefiningOp<arith::AddIOp>())
    return std::gcd(divisorOf(sum.getLhs()), divisorOf(sum.getRhs()));
  return 1;
}

/// A divisor of the offset of `view` in its buffer.
static int64_t offsetDivisor(Value view) {
  int64_t result = 0;
  while (auto op = view.getDefiningOp<ViewLikeOpInterface>()) {
    Value source = op.getViewSource();
    if (auto slice = dyn_cast<memref::SubViewOp>(op.getOperation())) {
      SmallVector<int64_t> strides;
      int64_t offset;
      if (failed(cast<MemRefType>(source.getType()).getStridesAndOffset(strides, offset)))
        return 1;
      for (auto [at, stride] : llvm::zip_equal(slice.getMixedOffsets(), strides)) {
        if (ShapedType::isDynamic(stride))
          return 1;
        int64_t by = getConstantIntValue(at).value_or(0);
        if (auto value = dyn_cast<Value>(at))
          by = divisorOf(value);
        result = std::gcd(result, by * stride);
      }
    } else if (!isa<memref::ExpandShapeOp, memref::CollapseShapeOp, memref::CastOp>(
                   op.getOperation())) {
      return 1;
    }
    view = source;
  }
  return result;
}

/// Whether different iterations of an output's loops write different elements: (i, j) -> (j, 2 * i)
/// do, (i, j) -> (i + j) do not.
static bool isInjective(AffineMap map) {
  return llvm::all_of(map.getResults(), [&](AffineExpr expr) {
    unsigned loops = 0;
    for (unsigned loop = 0; loop < map.getNumDims(); ++loop)
      loops += expr.isFunctionOfDim(loop);
    return loops <= 1;
  });
}

FailureOr<GpuMember> GpuMember::get(linalg::GenericOp op, std::string &reason) {
  if (!hasLaneForm(op, reason))
    return failure();
  for (OpOperand &init : op.getDpsInitsMutable())
    if (!isInjective(op.getMatchingIndexingMap(&init))) {
      reason = "several iterations write one element";
      return failure();
    }
  FailureOr<Nest> nest = Nest::get(op, reason, /*merge=*/false);
  if (failed(nest))
    return failure();
  GpuMember member;
  member.op = op;
  member.outputs = nest->outputs;
  for (const NestLoop &loop : nest->loops) {
    member.extents.push_back(loop.extent);
    member.reduction.push_back(loop.reduction);
  }
  member.classOf.assign(member.extents.size(), -1);
  for (const NestOperand &operand : nest->operands) {
    GpuAccess access;
    access.operand = operand.operand;
    access.element = operand.element;
    access.scalar = operand.scalar;
    access.output = operand.output;
    access.base = operand.base;
    access.step = operand.step;
    for (auto [step, extent] : llvm::zip_equal(access.step, member.extents))
      if (extent <= 1)
        step = 0;
    if (!operand.scalar) {
      Value view = operand.operand->get();
      access.root = rootOf(view);
      SmallVector<int64_t> strides;
      int64_t offset;
      if (failed(cast<MemRefType>(view.getType()).getStridesAndOffset(strides, offset)))
        return failure();
      if (ShapedType::isDynamic(offset))
        access.view = view, access.divisor = offsetDivisor(view);
      else
        access.base += offset;
      if (llvm::any_of(access.step, [](int64_t step) { return step < 0; })) {
        reason = "a view with a negative stride";
        return failure();
      }
    }
    member.accesses.push_back(std::move(access));
  }
  op.getBody()->walk([&](memref::LoadOp load) {
    if (Value root = rootOf(load.getMemRef()); !llvm::is_contained(member.gathered, root))
      member.gathered.push_back(root);
  });
  return member;
}

FlatAccess FlatAccess::get(const GpuAccess &access, ArrayRef<int64_t> extents,
                           ArrayRef<unsigned> loops) {
  FlatAccess flat;
  for (unsigned loop : llvm::reverse(loops)) {
    Dim dim{extents[loop], access.step[loop]};
    if (dim.extent == 1)
      continue;
    if (!flat.dims.empty()) {
      Dim &inner = flat.dims.back();
      if (dim.step == inner.step * inner.extent) {
        inner.extent *= dim.extent;
        continue;
      }
    }
    flat.dims.push_back(dim);
  }
  if (flat.dims.size() == 1 && flat.dims[0].step == 0)
    flat.dims.clear();
  return flat;
}

int64_t FlatAccess::span() const {
  int64_t result = 0;
  for (const Dim &dim : dims)
    result += (dim.extent - 1) * dim.step;
  return result;
}

bool FlatAccess::isContiguous(int64_t lanes) const {
  // The extent of the outermost dimension need not be a multiple of `lanes`.
  return !dims.empty() && dims[0].step == 1 && (dims.size() == 1 || dims[0].extent % lanes == 0);
}

bool FlatAccess::isRepeated(int64_t lanes) const {
  return dims.empty() || (dims[0].step == 0 && dims[0].extent % lanes == 0);
}

int64_t FlatAccess::elements() const {
  int64_t result = 1;
  for (const Dim &dim : dims)
    if (dim.step != 0)
      result *= dim.extent;
  return result;
}

} // namespace tessera::codegen
