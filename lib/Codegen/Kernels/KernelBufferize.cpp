//===- KernelBufferize.cpp - Kernels on buffers ---------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelStages.h"

#include "tessera/Codegen/Kernels/DeadInit.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Bufferization/Transforms/OneShotAnalysis.h"
#include "mlir/Dialect/Bufferization/Transforms/OneShotModuleBufferize.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Linalg/Utils/Utils.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Dominance.h"
#include "mlir/Transforms/CSE.h"

using namespace mlir;

namespace tessera::codegen {

/// More than this many bytes of temporaries go to the heap: kernels run on the stacks of pool
/// workers.
static constexpr int64_t kMaxStackBytes = 64 << 10;
static constexpr int64_t kAlignment = 64;

/// Follows a chain of in-place updates back from `value` to its start, or to `stop`.
static Value updatedFrom(Value value, Value stop) {
  while (value != stop) {
    Operation *def = value.getDefiningOp();
    if (!def)
      return value;
    if (auto dps = dyn_cast<DestinationStyleOpInterface>(def))
      value = dps.getTiedOpOperand(cast<OpResult>(value))->get();
    else if (auto insert = dyn_cast<tensor::InsertOp>(def))
      value = insert.getDest();
    else if (auto insert = dyn_cast<tensor::InsertSliceOp>(def))
      value = insert.getDest();
    else if (auto loop = dyn_cast<scf::ForOp>(def))
      value = loop.getInitArgs()[cast<OpResult>(value).getResultNumber()];
    else
      return value;
  }
  return value;
}

/// The analysis treats an init that a body does not read as dead, and would allocate a new buffer
/// without a copy. If the op writes only a part of its init, this inserts the copy.
static void copyPartlyWrittenInits(func::FuncOp kernel) {
  kernel.walk([](linalg::LinalgOp op) {
    for (OpOperand &init : op.getDpsInitsMutable()) {
      auto type = dyn_cast<RankedTensorType>(init.get().getType());
      if (!type || op.payloadUsesValueFromOperand(&init) || isInitDead(op, init))
        continue;
      OpBuilder builder(op);
      init.set(bufferization::AllocTensorOp::create(builder, op.getLoc(), type, ValueRange(),
                                                    init.get()));
    }
  });
}

/// Equal empty tensors are one value, which the analysis gives one buffer although loops carry it
/// as several tensors: contents that are undefined cannot be overwritten. So each use has its own.
static void separateEmptyTensors(func::FuncOp kernel) {
  SmallVector<tensor::EmptyOp> empties;
  kernel.walk([&](tensor::EmptyOp op) { empties.push_back(op); });
  for (tensor::EmptyOp op : empties) {
    OpBuilder builder(op);
    while (!op->use_empty() && !op->hasOneUse())
      op->use_begin()->set(builder.clone(*op)->getResult(0));
  }
}

/// A loop's carried tensor must stay in one buffer: the yielded value is copied into it unless it
/// was computed there.
static void keepCarriedInPlace(func::FuncOp kernel) {
  kernel.walk([](scf::ForOp loop) {
    auto yield = cast<scf::YieldOp>(loop.getBody()->getTerminator());
    OpBuilder builder(yield);
    SmallVector<Value> copies;
    for (auto [value, carried] : llvm::zip_equal(yield.getOperands(), loop.getRegionIterArgs())) {
      auto type = dyn_cast<RankedTensorType>(value.getType());
      bool copy = type && updatedFrom(value, carried) != carried;
      copies.push_back(copy ? bufferization::AllocTensorOp::create(builder, loop.getLoc(), type,
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

/// Removes unchanged carries, the buffers, because the corresponding canonicalization drops the
/// loop's attributes. Returns whether there were any.
static bool dropCarriedBuffers(func::FuncOp kernel) {
  bool changed = false;
  SmallVector<scf::ForOp> loops;
  kernel.walk<WalkOrder::PreOrder>([&](scf::ForOp loop) { loops.push_back(loop); });
  for (scf::ForOp loop : loops) {
    auto yield = cast<scf::YieldOp>(loop.getBody()->getTerminator());
    SmallVector<Value> kept;
    SmallVector<unsigned> keptIndex;
    for (auto [i, argument] : llvm::enumerate(loop.getRegionIterArgs())) {
      if (isa<MemRefType>(argument.getType()) && yield.getOperand(i) == argument) {
        argument.replaceAllUsesWith(loop.getInitArgs()[i]);
        loop.getResult(i).replaceAllUsesWith(loop.getInitArgs()[i]);
      } else {
        kept.push_back(loop.getInitArgs()[i]);
        keptIndex.push_back(i);
      }
    }
    if (kept.size() == loop.getNumResults())
      continue;
    changed = true;
    OpBuilder b(loop);
    auto fresh = scf::ForOp::create(b, loop.getLoc(), loop.getLowerBound(), loop.getUpperBound(),
                                    loop.getStep(), kept);
    fresh->setDiscardableAttrs(loop->getDiscardableAttrDictionary());
    Block *body = fresh.getBody();
    if (!body->empty())
      body->getTerminator()->erase();
    body->getOperations().splice(body->end(), loop.getBody()->getOperations());
    loop.getInductionVar().replaceAllUsesWith(fresh.getInductionVar());
    SmallVector<Value> yielded;
    for (auto [to, from] : llvm::enumerate(keptIndex)) {
      loop.getRegionIterArg(from).replaceAllUsesWith(fresh.getRegionIterArg(to));
      loop.getResult(from).replaceAllUsesWith(fresh.getResult(to));
      yielded.push_back(yield.getOperand(from));
    }
    yield->setOperands(yielded);
    loop.erase();
  }
  return changed;
}

/// Moves temporaries to the function's entry, on the stack while they fit. Their contents never
/// outlive an iteration: loop carries have buffers before the loop.
static void placeTemporaries(func::FuncOp kernel, TemporaryBytes &temporaries) {
  SmallVector<memref::AllocOp> allocations;
  kernel.walk([&](memref::AllocOp op) { allocations.push_back(op); });
  Block &entry = kernel.getBody().front();
  OpBuilder end(entry.getTerminator());
  for (memref::AllocOp op : allocations) {
    OpBuilder begin = OpBuilder::atBlockBegin(&entry);
    MemRefType type = op.getType();
    int64_t bits = type.getElementType().isIndex() ? 64 : type.getElementTypeBitWidth();
    int64_t bytes = type.getNumElements() * ((bits + 7) / 8);
    bool stack = temporaries.stack + bytes <= kMaxStackBytes;
    (stack ? temporaries.stack : temporaries.heap) += bytes;
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

/// Vectors are read and written whole: plain loads and stores.
static void loadVectors(func::FuncOp kernel) {
  IRRewriter rewriter(kernel.getContext());
  kernel.walk([&](Operation *op) {
    rewriter.setInsertionPoint(op);
    if (auto read = dyn_cast<vector::TransferReadOp>(op))
      rewriter.replaceOpWithNewOp<vector::LoadOp>(read, read.getVectorType(), read.getBase(),
                                                  read.getIndices());
    else if (auto write = dyn_cast<vector::TransferWriteOp>(op))
      rewriter.replaceOpWithNewOp<vector::StoreOp>(write, write.getVector(), write.getBase(),
                                                   write.getIndices());
  });
}

LogicalResult bufferizeKernel(ModuleOp module, func::FuncOp kernel, TemporaryBytes &temporaries) {
  int64_t reads = kernel->getAttrOfType<IntegerAttr>(kKernelReadsAttr).getInt();
  separateEmptyTensors(kernel);
  copyPartlyWrittenInits(kernel);
  auto ret = cast<func::ReturnOp>(kernel.getBody().front().getTerminator());
  OpBuilder builder(ret);
  for (BlockArgument argument : kernel.getArguments())
    kernel.setArgAttr(argument.getArgNumber(), "bufferization.writable",
                      builder.getBoolAttr(argument.getArgNumber() >= reads));
  for (auto [i, value] : llvm::enumerate(ret.getOperands())) {
    Value destination = kernel.getArgument(reads + i);
    // Already computed there; if the analysis decides otherwise, a copy follows below.
    if (updatedFrom(value, destination) == destination)
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
  // Removing a buffer from an outer loop exposes it in an inner one, and vice versa for yielded
  // values.
  while (dropCarriedBuffers(kernel)) {
  }
  IRRewriter rewriter(kernel.getContext());
  DominanceInfo dominance(kernel);
  eliminateCommonSubExpressions(rewriter, dominance, kernel);
  // Values computed in their destination are copied onto themselves.
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
  // Ops created by bufferization (fills, maps).
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
  loadVectors(kernel);
  placeTemporaries(kernel, temporaries);
  return success();
}

} // namespace tessera::codegen
