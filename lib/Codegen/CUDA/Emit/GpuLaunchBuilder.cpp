//===- GpuLaunchBuilder.cpp - Build the function of one launch ------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GpuLaunchBuilder.h"

#include "../Groups/GpuAccess.h"
#include "../Stub/GpuRetarget.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;

namespace tessera::codegen {

GpuLaunchBuilder::GpuLaunchBuilder(ModuleOp module, StringRef symbol, Location loc)
    : b(module.getContext()), loc(loc) {
  b.setInsertionPointToEnd(module.getBody());
  Type shared = MemRefType::get({0}, b.getI8Type(), MemRefLayoutAttrInterface(),
                                b.getI64IntegerAttr(kSharedSpace));
  function = func::FuncOp::create(b, loc, symbol, b.getFunctionType({shared}, {}));
  b.setInsertionPointToStart(function.addEntryBlock());
  block = gpu::BlockIdOp::create(b, loc, gpu::Dimension::x);
  thread = gpu::ThreadIdOp::create(b, loc, gpu::Dimension::x);
  anchor = func::ReturnOp::create(b, loc);
  // The body is placed between the ops of the entry and the return; this op marks the boundary.
  b.setInsertionPoint(anchor);
  anchor = arith::ConstantIndexOp::create(b, loc, 0);
  b.setInsertionPointAfter(anchor);
}

/// Reads an index by code that is neither hoisted nor merged with an equal one.
static Value readIndex(OpBuilder &b, Location loc, StringRef code) {
  auto made = LLVM::InlineAsmOp::create(
      b, loc, b.getI32Type(), ValueRange(), b.getStringAttr(code), b.getStringAttr("=r"),
      /*has_side_effects=*/b.getUnitAttr(), /*is_align_stack=*/UnitAttr(),
      LLVM::TailCallKindAttr::get(b.getContext(), LLVM::TailCallKind::None), LLVM::AsmDialectAttr(),
      ArrayAttr());
  return arith::IndexCastUIOp::create(b, loc, b.getIndexType(), made.getRes());
}

Value GpuLaunchBuilder::readThread() {
  return readIndex(b, loc, kReadThreadCode);
}

void GpuLaunchBuilder::readIndicesAgain() {
  block = readIndex(b, loc, kReadBlockCode);
  thread = readThread();
}

OpBuilder GpuLaunchBuilder::entry() {
  return OpBuilder(anchor);
}

Value GpuLaunchBuilder::buffer(Value root, bool write) {
  // Constants are not arguments.
  if (auto global = root.getDefiningOp<memref::GetGlobalOp>()) {
    if (!mapping.contains(root))
      mapping.map(root, entry().clone(*global)->getResult(0));
    return mapping.lookup(root);
  }
  for (auto [i, known] : llvm::enumerate(buffers))
    if (known.root == root) {
      known.written |= write;
      return function.getArgument(i);
    }
  unsigned at = buffers.size();
  (void)function.insertArgument(at, root.getType(), {}, loc);
  buffers.push_back({root, write});
  Value argument = function.getArgument(at);
  mapping.map(root, argument);
  return argument;
}

Value GpuLaunchBuilder::flat(Value root, bool write) {
  Value argument = buffer(root, write);
  Value &view = flattened[root];
  if (!view) {
    auto type = cast<MemRefType>(root.getType());
    OpBuilder e = entry();
    auto flat = MemRefType::get({type.getNumElements()}, type.getElementType());
    view = memref::ReinterpretCastOp::create(
        e, loc, flat, argument, OpFoldResult(e.getIndexAttr(0)),
        ArrayRef<OpFoldResult>{e.getIndexAttr(type.getNumElements())},
        ArrayRef<OpFoldResult>{e.getIndexAttr(1)});
  }
  return view;
}

FailureOr<Value> GpuLaunchBuilder::capture(Value value) {
  if (Value known = mapping.lookupOrNull(value))
    return known;
  Operation *def = value.getDefiningOp();
  bool isBuffer = isa<MemRefType>(value.getType());
  if (!def || isa<memref::AllocOp, memref::AllocaOp>(def)) {
    if (isBuffer)
      return buffer(value, /*write=*/false);
    reason = "a scalar of unknown origin";
    return failure();
  }
  if (def->getNumRegions() || !(isPure(def) || isa<memref::LoadOp>(def))) {
    reason =
        ("the result of '" + def->getName().getStringRef() + "' is used by another launch").str();
    return failure();
  }
  if (auto load = dyn_cast<memref::LoadOp>(def);
      load && changed && changed(load, rootOf(load.getMemRef()))) {
    reason = "a scalar is read before its buffer is overwritten";
    return failure();
  }
  for (Value operand : def->getOperands())
    if (failed(capture(operand)))
      return failure();
  if (auto load = dyn_cast<memref::LoadOp>(def))
    scalarReads.push_back(rootOf(load.getMemRef()));
  Operation *clone = entry().clone(*def, mapping);
  for (auto [from, to] : llvm::zip_equal(def->getResults(), clone->getResults()))
    mapping.map(from, to);
  return mapping.lookup(value);
}

Value GpuLaunchBuilder::shared(Type element, int64_t elements, int64_t alignment) {
  sharedBytes = llvm::alignTo(sharedBytes, alignment);
  sharedAlignment = std::max(sharedAlignment, alignment);
  OpBuilder e = entry();
  auto type = MemRefType::get({elements}, element, MemRefLayoutAttrInterface(),
                              e.getI64IntegerAttr(kSharedSpace));
  Value offset = arith::ConstantIndexOp::create(e, loc, sharedBytes);
  sharedBytes += elements * bytesOf(element);
  Value all = function.getArgument(function.getNumArguments() - 1);
  return memref::ViewOp::create(e, loc, type, all, offset, ValueRange());
}

void GpuLaunchBuilder::finish(int64_t threads, int64_t resident) {
  if (resident > 1)
    function->setAttr(kResidentAttr, b.getI64IntegerAttr(resident));
  function->setAttr(kBlockAttr, b.getI64IntegerAttr(threads));
  function->setAttr(kSharedAttr, b.getI64IntegerAttr(sharedBytes));
  function->setAttr(kSharedAlignmentAttr, b.getI64IntegerAttr(sharedAlignment));
}

} // namespace tessera::codegen
