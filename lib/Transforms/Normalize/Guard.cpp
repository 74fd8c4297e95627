//===- Guard.cpp - Reject programs that the pipeline does not support -----===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Dialect/Check/Check.h"
#include "tessera/Dialect/Dist/IR/Dist.h"
#include "tessera/Dialect/Dist/IR/ValueShardings.h"
#include "tessera/Dialect/Dist/Rules/ShardingRuleInterface.h"
#include "tessera/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/TypeSwitch.h"

namespace tessera::dist {
#define GEN_PASS_DEF_DISTGUARD
#include "tessera/Transforms/Passes.h.inc"
} // namespace tessera::dist

using namespace mlir;
using namespace tessera;

static constexpr int64_t kMaxElements = int64_t(1) << 48;

static bool isElementType(Type type) {
  if (type.isSignlessInteger()) // si32 and ui8 have no arithmetic
    return llvm::is_contained({1u, 8u, 16u, 32u, 64u}, type.getIntOrFloatBitWidth());
  return type.isF64() || type.isF32() || type.isF16() || type.isBF16() || type.isIndex();
}

/// Checks one type of a value, named by `describe`, at `op`.
static LogicalResult guardType(Operation *op, Type type, const Twine &what) {
  if (isa<dist::TokenType>(type))
    return success();
  auto tensor = dyn_cast<TensorType>(type);
  if (!tensor) {
    if (isElementType(type))
      return success();
    return op->emitError() << what << " has type " << type
                           << "; expected a tensor or a scalar of f64, f32, f16, bf16, i64, i32, "
                              "i16, i8, i1, index";
  }
  auto ranked = dyn_cast<RankedTensorType>(type);
  if (!ranked)
    return op->emitError() << what << " has type " << type
                           << " without a rank; shapes must be static";
  if (ranked.getEncoding())
    return op->emitError() << what << " has type " << type
                           << " with an encoding; tensors must be dense";
  if (!isElementType(ranked.getElementType()))
    return op->emitError() << what << " has type " << type << "; element types are f64, f32, f16, "
                           << "bf16, i64, i32, i16, i8, i1, index";
  int64_t elements = 1;
  for (auto [dim, extent] : llvm::enumerate(ranked.getShape())) {
    if (ShapedType::isDynamic(extent))
      return op->emitError() << what << " has type " << type << ": dimension " << dim
                             << " is dynamic; shapes must be static, give it an extent";
    if (extent > kMaxElements || (extent && elements > kMaxElements / extent))
      return op->emitError() << what << " has type " << type << " with more than 2^48 elements";
    elements *= extent;
  }
  return success();
}

/// A window is a buffer of the local view; in the global view no device might hold some elements.
/// Only reshards that were inserted make windows (`inserted`).
static LogicalResult guardWindows(func::FuncOp function, bool inserted) {
  if (dist::isLocalView(function))
    return success();
  auto guard = [](Operation *at, Attribute attr, const Twine &what) -> LogicalResult {
    auto sharding = dyn_cast_or_null<dist::ShardingAttr>(attr);
    if (!sharding || sharding.getWindows().empty())
      return success();
    return at->emitError() << what
                           << " is annotated with windows, which are buffers of the local view; "
                              "give the axes that cut each dimension";
  };
  StringRef name = dist::DistDialect::kSharding;
  for (unsigned index = 0; index < function.getNumArguments(); ++index)
    if (failed(guard(function, function.getArgAttr(index, name), "argument " + Twine(index))))
      return failure();
  for (unsigned index = 0; index < function.getNumResults(); ++index)
    if (failed(guard(function, function.getResultAttr(index, name), "result " + Twine(index))))
      return failure();
  WalkResult result = function.walk([&](Operation *op) -> WalkResult {
    if (auto constraint = dyn_cast<dist::ShardTensorOp>(op))
      return guard(op, constraint.getShardingAttr(), "the value");
    if (auto reshard = dyn_cast<dist::ReshardOp>(op); reshard && !inserted)
      return guard(op, reshard.getShardingAttr(), "the value");
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

/// Values of a single device are not part of the global view: collectives and coordinates are valid
/// only in functions of the local view.
static LogicalResult guardDistOp(Operation *op) {
  if (isa<dist::ProcessMeshOp, dist::ShardTensorOp, dist::ReshardOp, dist::RearrangeOp,
          dist::StopGradientOp, dist::CheckpointOp>(op) ||
      isa_and_nonnull<dist::CheckpointOp>(op->getParentOp()))
    return success();
  auto function = op->getParentOfType<func::FuncOp>();
  if (function && dist::isLocalView(function))
    return success();
  return op->emitError() << "'" << op->getName()
                         << "' is not allowed in the global view, where values have no device; "
                         << "write dist.reshard, or mark the function dist.view = \"local\"";
}

/// Checks the constant offsets and strides of a slice against the bounds of its tensor: with a
/// negative stride MLIR's verifier misses accesses before the first element. A dynamic offset is
/// clamped, so some offset must be possible.
static LogicalResult guardSlice(OffsetSizeAndStrideOpInterface slice, RankedTensorType whole) {
  for (auto [dim, extent] : llvm::enumerate(whole.getShape())) {
    int64_t offset = slice.getStaticOffsets()[dim], size = slice.getStaticSizes()[dim];
    int64_t stride = slice.getStaticStrides()[dim];
    if (ShapedType::isDynamic(size) || ShapedType::isDynamic(stride) || size == 0)
      continue;
    __int128 span = static_cast<__int128>(size - 1) * stride;
    if (ShapedType::isDynamic(offset)) {
      if ((span < 0 ? -span : span) >= extent)
        return slice.emitError() << "'" << slice->getName() << "' takes size " << size
                                 << ", stride " << stride << " of dimension " << dim << " of "
                                 << whole << ": no offset has the whole window inside; take a size "
                                 << "of at most "
                                 << (extent == 0   ? 0
                                     : stride == 0 ? size
                                                   : (extent - 1) / std::abs(stride) + 1);
      continue;
    }
    __int128 last = offset + span;
    if (offset < 0 || offset >= extent || last < 0 || last >= extent)
      return slice.emitError() << "'" << slice->getName() << "' takes offset " << offset
                               << ", size " << size << ", stride " << stride << " of dimension "
                               << dim << " of " << whole
                               << "; its first and last element must be inside";
  }
  return success();
}

/// A dynamic `low` is clamped so that the source is inside of the result.
static LogicalResult guardPad(tensor::PadOp pad) {
  for (auto [dim, extent] : llvm::enumerate(pad.getSourceType().getShape())) {
    int64_t low = pad.getStaticLow()[dim];
    bool isDynamic = ShapedType::isDynamic(low);
    int64_t least = extent + (isDynamic ? 0 : std::max<int64_t>(low, 0));
    if ((isDynamic || ShapedType::isDynamic(pad.getStaticHigh()[dim])) &&
        least > pad.getType().getDimSize(dim))
      return pad.emitError() << "'tensor.pad' places " << pad.getSourceType() << " in "
                             << pad.getType() << ": dimension " << dim
                             << " does not fit; give the result an extent of at least " << least;
  }
  return success();
}

/// Offsets and strides may be dynamic; the size of a write must be static, and a read tensor must
/// not be empty. (Results of reads have static types.)
static LogicalResult guardPlaces(Operation *op) {
  if (auto insert = dyn_cast<tensor::InsertSliceOp>(op))
    for (auto [dim, size] : llvm::enumerate(insert.getStaticSizes()))
      if (ShapedType::isDynamic(size))
        return op->emitError() << "'" << op->getName() << "' has a dynamic size in dimension "
                               << dim << "; sizes must be constants";
  auto hasNone = [&](RankedTensorType type, ArrayRef<int64_t> dims) -> LogicalResult {
    for (int64_t dim : dims)
      if (type.getDimSize(dim) == 0)
        return op->emitError() << "'" << op->getName() << "' names an element of " << type
                               << ", which has none; give dimension " << dim << " an extent";
    return success();
  };
  auto all = [](RankedTensorType type) {
    return llvm::to_vector(llvm::seq<int64_t>(0, type.getRank()));
  };
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](tensor::ExtractSliceOp op) { return guardSlice(op, op.getSourceType()); })
      .Case([&](tensor::InsertSliceOp op) { return guardSlice(op, op.getDestType()); })
      .Case([&](tensor::PadOp op) { return guardPad(op); })
      .Case([&](tensor::ExtractOp op) {
        auto type = dyn_cast<RankedTensorType>(op.getTensor().getType());
        return type ? hasNone(type, all(type)) : success();
      })
      .Case([&](tensor::InsertOp op) {
        auto type = dyn_cast<RankedTensorType>(op.getType());
        return type ? hasNone(type, all(type)) : success();
      })
      .Case([&](tensor::GatherOp op) {
        return llvm::is_contained(op.getType().getShape(), 0)
                   ? success()
                   : hasNone(op.getSourceType(), op.getGatherDims());
      })
      .Case([&](tensor::ScatterOp op) {
        return llvm::is_contained(op.getSourceType().getShape(), 0)
                   ? success()
                   : hasNone(op.getDestType(), op.getScatterDims());
      })
      .Default([](Operation *) { return success(); });
}

/// An op of another dialect provides its own sharding rule. The pipeline moves, copies and erases
/// it, so it must have no side effects.
static LogicalResult guardForeignOp(Operation *op) {
  if (isMemoryEffectFree(op))
    return success();
  return op->emitError()
         << "'" << op->getName()
         << "' may have side effects; an op that implements ShardingRuleOpInterface must be Pure";
}

/// Ops of the listed dialects with effects or structure that later passes do not support.
static LogicalResult guardOp(Operation *op) {
  if (isa<check::CheckDialect>(op->getDialect()))
    return success();
  if (isa<dist::DistDialect>(op->getDialect()))
    return guardDistOp(op);
  if (isa<ModuleOp>(op))
    return op->getParentOp() ? op->emitError("a module inside a module is not supported")
                             : success();
  if (isa<func::FuncOp, func::ReturnOp, func::CallOp>(op))
    return success();
  bool isListed =
      isa<arith::ArithDialect, math::MathDialect, linalg::LinalgDialect, tensor::TensorDialect>(
          op->getDialect());
  if (!isListed && isa<dist::ShardingRuleOpInterface>(op))
    return guardForeignOp(op);
  if (!isListed && op->hasTrait<OpTrait::IsTerminator>() &&
      isa_and_nonnull<dist::ShardingRuleOpInterface>(op->getParentOp()))
    return success(); // terminator of such an op's region
  if (isa<scf::ForOp, scf::WhileOp, scf::IfOp, scf::YieldOp, scf::ConditionOp>(op))
    return success();
  if (!isListed || op->getName().getStringRef() == "tensor.parallel_insert_slice" ||
      isa<tensor::CastOp, tensor::BitcastOp, tensor::ReshapeOp, tensor::DimOp, tensor::RankOp>(op))
    return op->emitError()
           << "'" << op->getName()
           << "' is not supported; programs are written in func, linalg, tensor, arith, "
           << "math, scf (for, while, if) and dist, and in ops that implement "
           << "ShardingRuleOpInterface";
  return guardPlaces(op);
}

namespace {
struct DistGuard : dist::impl::DistGuardBase<DistGuard> {
  using Base::Base;

  void runOnOperation() override {
    WalkResult result = getOperation()->walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (!op->isRegistered())
        return (
            op->emitError() << "'" << op->getName()
                            << "' is unregistered; programs are written in func, linalg, tensor, "
                            << "arith, math, scf and dist",
            WalkResult::interrupt());
      if (failed(guardOp(op)))
        return WalkResult::interrupt();
      if (auto function = dyn_cast<func::FuncOp>(op)) {
        for (auto [index, type] : llvm::enumerate(function.getArgumentTypes()))
          if (failed(guardType(op, type, "argument " + Twine(index))))
            return WalkResult::interrupt();
        for (auto [index, type] : llvm::enumerate(function.getResultTypes()))
          if (failed(guardType(op, type, "result " + Twine(index))))
            return WalkResult::interrupt();
        if (!function.isDeclaration() && !function.getBody().hasOneBlock())
          return (op->emitError("has branches between blocks; write control flow with scf"),
                  WalkResult::interrupt());
        if (function.isDeclaration())
          return (op->emitError() << "'" << function.getSymName()
                                  << "' has no body; external functions are not supported",
                  WalkResult::interrupt());
        return failed(guardWindows(function, resharded)) ? WalkResult::interrupt()
                                                         : WalkResult::advance();
      }
      for (auto [index, type] : llvm::enumerate(op->getResultTypes()))
        if (failed(guardType(op, type, "result " + Twine(index))))
          return WalkResult::interrupt();
      return WalkResult::advance();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }
};
} // namespace
