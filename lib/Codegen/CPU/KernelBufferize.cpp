//===- KernelBufferize.cpp - Kernels on buffers -------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelStages.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Bufferization/Transforms/OneShotAnalysis.h"
#include "mlir/Dialect/Bufferization/Transforms/OneShotModuleBufferize.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Linalg/Utils/Utils.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;

namespace tessera::codegen {

/// More than this many bytes of temporaries go to the heap: kernels run on the stacks of pool
/// workers.
static constexpr int64_t kMaxStackBytes = 64 << 10;
static constexpr int64_t kAlignment = 64;

/// A loop's carried tensor must stay in one buffer: what the body yields is copied into it unless
/// it was computed there.
static void keepCarriedInPlace(func::FuncOp kernel) {
  kernel.walk([](scf::ForOp loop) {
    auto yield = cast<scf::YieldOp>(loop.getBody()->getTerminator());
    OpBuilder builder(yield);
    SmallVector<Value> copies;
    for (auto [i, value] : llvm::enumerate(yield.getOperands())) {
      Value carried = loop.getRegionIterArg(i);
      Value root = value;
      // The chain of in-place updates that ends in the carried buffer itself.
      while (root != carried) {
        Operation *def = root.getDefiningOp();
        if (!def)
          break;
        if (auto dps = dyn_cast<DestinationStyleOpInterface>(def))
          root = dps.getTiedOpOperand(cast<OpResult>(root))->get();
        else if (auto insert = dyn_cast<tensor::InsertOp>(def))
          root = insert.getDest();
        else if (auto inner = dyn_cast<scf::ForOp>(def))
          root = inner.getInitArgs()[cast<OpResult>(root).getResultNumber()];
        else
          break;
      }
      bool copy = root != carried && isa<RankedTensorType>(value.getType());
      copies.push_back(copy ? bufferization::AllocTensorOp::create(
                                  builder, loop.getLoc(), cast<RankedTensorType>(value.getType()),
                                  ValueRange(), value)
                            : Value());
    }
    for (auto [i, copy] : llvm::enumerate(copies))
      if (copy)
        yield.setOperand(i, bufferization::MaterializeInDestinationOp::create(
                                builder, loop.getLoc(), copy, loop.getRegionIterArg(i))
                                .getResult());
  });
}

/// Moves temporaries to the function's entry, on the stack while they fit. Their contents never
/// outlive a loop's trip: what a loop carries has a buffer of its own before the loop.
static void placeTemporaries(func::FuncOp kernel, KernelInfo &info) {
  SmallVector<memref::AllocOp> allocations;
  kernel.walk([&](memref::AllocOp op) { allocations.push_back(op); });
  Block &entry = kernel.getBody().front();
  OpBuilder end(entry.getTerminator());
  for (memref::AllocOp op : allocations) {
    OpBuilder begin = OpBuilder::atBlockBegin(&entry);
    MemRefType type = op.getType();
    int64_t bits = type.getElementType().isIndex() ? 64 : type.getElementTypeBitWidth();
    int64_t bytes = type.getNumElements() * ((bits + 7) / 8);
    bool stack = info.stackBytes + bytes <= kMaxStackBytes;
    (stack ? info.stackBytes : info.heapBytes) += bytes;
    Value buffer;
    IntegerAttr alignment = begin.getI64IntegerAttr(kAlignment);
    if (stack) {
      buffer = memref::AllocaOp::create(begin, op.getLoc(), type, alignment);
    } else {
      buffer = memref::AllocOp::create(begin, op.getLoc(), type, alignment);
      memref::DeallocOp::create(end, op.getLoc(), buffer);
    }
    op.getResult().replaceAllUsesWith(buffer);
    op.erase();
  }
}

LogicalResult bufferizeKernel(ModuleOp module, func::FuncOp kernel, KernelInfo &info) {
  int64_t reads = kernel->getAttrOfType<IntegerAttr>(kKernelReadsAttr).getInt();
  auto ret = cast<func::ReturnOp>(kernel.getBody().front().getTerminator());
  OpBuilder builder(ret);
  for (BlockArgument argument : kernel.getArguments())
    kernel.setArgAttr(argument.getArgNumber(), "bufferization.writable",
                      builder.getBoolAttr(argument.getArgNumber() >= reads));
  for (auto [i, value] : llvm::enumerate(ret.getOperands())) {
    Value destination = kernel.getArgument(reads + i);
    if (value == destination)
      continue;
    // Another destination's buffer may have been overwritten when it is copied.
    if (auto argument = dyn_cast<BlockArgument>(value);
        argument && argument.getArgNumber() >= reads) {
      OpBuilder entry = OpBuilder::atBlockBegin(&kernel.getBody().front());
      value = bufferization::AllocTensorOp::create(
          entry, value.getLoc(), cast<RankedTensorType>(value.getType()), ValueRange(), value);
    }
    ret.setOperand(i, bufferization::MaterializeInDestinationOp::create(builder, ret.getLoc(),
                                                                        value, destination)
                          .getResult());
  }
  keepCarriedInPlace(kernel);

  bufferization::OneShotBufferizationOptions options;
  options.bufferizeFunctionBoundaries = true;
  options.bufferAlignment = kAlignment;
  options.setFunctionBoundaryTypeConversion(bufferization::LayoutMapOption::IdentityLayoutMap);
  options.unknownTypeConverterFn = [](TensorType type, Attribute space,
                                      const bufferization::BufferizationOptions &) {
    return bufferization::getMemRefTypeWithStaticIdentityLayout(type, space);
  };
  options.memCpyFn = [](OpBuilder &b, Location loc, Value from, Value to) {
    if (from != to)
      linalg::makeMemRefCopyOp(b, loc, from, to);
    return success();
  };
  bufferization::BufferizationState state;
  if (failed(bufferization::runOneShotModuleBufferize(module, options, state)))
    return failure();

  // The results are the destinations: nothing is returned.
  ret = cast<func::ReturnOp>(kernel.getBody().front().getTerminator());
  builder.setInsertionPoint(ret);
  for (auto [i, value] : llvm::enumerate(ret.getOperands()))
    if (value != kernel.getArgument(reads + i))
      linalg::makeMemRefCopyOp(builder, ret.getLoc(), value, kernel.getArgument(reads + i));
  ret->eraseOperands(0, ret.getNumOperands());
  kernel.setFunctionType(builder.getFunctionType(kernel.getArgumentTypes(), TypeRange()));
  kernel.removeResAttrsAttr();
  kernel.removeArgAttrsAttr();

  SmallVector<memref::CopyOp> copies;
  kernel.walk([&](memref::CopyOp op) { copies.push_back(op); });
  for (memref::CopyOp op : copies) {
    builder.setInsertionPoint(op);
    linalg::makeMemRefCopyOp(builder, op.getLoc(), op.getSource(), op.getTarget());
    op.erase();
  }
  // What was computed in its destination is copied onto itself.
  SmallVector<linalg::GenericOp> idle;
  kernel.walk([&](linalg::GenericOp op) {
    if (op.getNumDpsInputs() == 1 && op.getNumDpsInits() == 1 &&
        op.getInputs()[0] == op.getOutputs()[0] &&
        op.getIndexingMapsArray()[0] == op.getIndexingMapsArray()[1] &&
        llvm::hasSingleElement(*op.getBody()) &&
        op.getBody()->getTerminator()->getOperand(0) == op.getBody()->getArgument(0))
      idle.push_back(op);
  });
  for (linalg::GenericOp op : idle)
    op.erase();
  // Ops that bufferization itself made (fills, maps).
  IRRewriter rewriter(kernel.getContext());
  SmallVector<linalg::LinalgOp> named;
  kernel.walk([&](linalg::LinalgOp op) {
    if (!isa<linalg::GenericOp>(op))
      named.push_back(op);
  });
  for (linalg::LinalgOp op : named) {
    rewriter.setInsertionPoint(op);
    if (failed(linalg::generalizeNamedOp(rewriter, op)))
      return op.emitOpError("has no generic form");
  }
  placeTemporaries(kernel, info);
  return success();
}

} // namespace tessera::codegen
