//===- GpuLower.cpp - Lower launches to the LLVM and NVVM dialects --------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Emit/GpuLaunchBuilder.h"
#include "../GpuStages.h"
#include "../Stub/GpuRetarget.h"

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVM.h"
#include "mlir/Conversion/LLVMCommon/ConversionTarget.h"
#include "mlir/Conversion/LLVMCommon/Pattern.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/MemRefToLLVM/MemRefToLLVM.h"
#include "mlir/Conversion/NVGPUToNVVM/NVGPUToNVVM.h"
#include "mlir/Conversion/UBToLLVM/UBToLLVM.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVM.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Vector/Transforms/VectorRewritePatterns.h"

using namespace mlir;

namespace tessera::codegen {
namespace {

/// The index of the block or thread: a 32-bit register, never negative.
template <typename From, typename To> struct LowerIndex : ConvertOpToLLVMPattern<From> {
  using ConvertOpToLLVMPattern<From>::ConvertOpToLLVMPattern;

  LogicalResult matchAndRewrite(From op, typename From::Adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    if (op.getDimension() != gpu::Dimension::x)
      return rewriter.notifyMatchFailure(op, "launches have one dimension");
    Value index = To::create(rewriter, op.getLoc(), rewriter.getI32Type());
    rewriter.replaceOpWithNewOp<LLVM::ZExtOp>(op, this->getTypeConverter()->getIndexType(), index);
    return success();
  }
};

struct LowerBarrier : ConvertOpToLLVMPattern<gpu::BarrierOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult matchAndRewrite(gpu::BarrierOp op, OpAdaptor,
                                ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOpWithNewOp<NVVM::Barrier0Op>(op);
    return success();
  }
};

/// Shuffles are of entire warps and 32-bit words (overWords).
struct LowerShuffle : ConvertOpToLLVMPattern<gpu::ShuffleOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult matchAndRewrite(gpu::ShuffleOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    if (!op.getValue().getType().isInteger(32))
      return rewriter.notifyMatchFailure(op, "not an exchange of words");
    Location loc = op.getLoc();
    Type i32 = rewriter.getI32Type();
    auto constant = [&](int32_t value) -> Value {
      return LLVM::ConstantOp::create(rewriter, loc, i32, rewriter.getI32IntegerAttr(value));
    };
    NVVM::ShflKind kind = NVVM::ShflKind::bfly;
    if (op.getMode() == gpu::ShuffleMode::UP)
      kind = NVVM::ShflKind::up;
    else if (op.getMode() == gpu::ShuffleMode::IDX)
      kind = NVVM::ShflKind::idx;
    else if (op.getMode() != gpu::ShuffleMode::XOR)
      return rewriter.notifyMatchFailure(op, "an unknown exchange");
    // The first lane that `up` may read, the last one of the others.
    Value bound = constant(kind == NVVM::ShflKind::up ? 0 : 31);
    Value result = NVVM::ShflOp::create(rewriter, loc, i32, constant(-1), adaptor.getValue(),
                                        adaptor.getOffset(), bound, kind, UnitAttr());
    Value valid =
        LLVM::ConstantOp::create(rewriter, loc, rewriter.getI1Type(), rewriter.getBoolAttr(true));
    rewriter.replaceOp(op, {result, valid});
    return success();
  }
};

/// Brings the line of an element to the L2 cache.
struct LowerPrefetch : ConvertOpToLLVMPattern<memref::PrefetchOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult matchAndRewrite(memref::PrefetchOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Value address =
        getStridedElementPtr(rewriter, op.getLoc(), cast<MemRefType>(op.getMemref().getType()),
                             adaptor.getMemref(), adaptor.getIndices());
    // LLVM's intrinsic needs sm_90.
    LLVM::InlineAsmOp::create(rewriter, op.getLoc(), TypeRange(), address, "prefetch.L2 [$0];", "l",
                              /*has_side_effects=*/true, /*is_align_stack=*/false,
                              LLVM::tailcallkind::TailCallKind::None, /*asm_dialect=*/nullptr,
                              /*operand_attrs=*/nullptr);
    rewriter.eraseOp(op);
    return success();
  }
};

/// Rounds f32 to bf16, two at a time, by cvt.rn.bf16x2.f32. LLVM itself would round by five integer
/// instructions, since it selects a conversion only from sm_90 on.
struct LowerTruncToBf16 : ConvertOpToLLVMPattern<arith::TruncFOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult matchAndRewrite(arith::TruncFOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    auto vector = dyn_cast<VectorType>(op.getType());
    if (!getElementTypeOrSelf(op.getType()).isBF16() ||
        !getElementTypeOrSelf(op.getIn().getType()).isF32() || op.getRoundingmode() ||
        (vector && vector.getRank() != 1))
      return rewriter.notifyMatchFailure(op, "not f32 to the nearest bf16");
    Location loc = op.getLoc();
    auto constant = [&](int64_t value) -> Value {
      return LLVM::ConstantOp::create(rewriter, loc, rewriter.getI32Type(),
                                      rewriter.getI32IntegerAttr(value));
    };
    auto element = [&](Value all, int64_t i) -> Value {
      return LLVM::ExtractElementOp::create(rewriter, loc, all, constant(i));
    };
    auto pair = VectorType::get(2, rewriter.getBF16Type());
    auto round = [&](Value lower, Value upper) {
      return LLVM::CallIntrinsicOp::create(rewriter, loc, pair,
                                           rewriter.getStringAttr(kPackBf16Intrinsic),
                                           ValueRange{upper, lower})
          .getResult(0);
    };
    Value from = adaptor.getIn();
    if (!vector) {
      rewriter.replaceOp(op, element(round(from, from), 0));
      return success();
    }
    Value result = LLVM::PoisonOp::create(rewriter, loc, vector);
    int64_t count = vector.getNumElements();
    for (int64_t first = 0; first < count; first += 2) {
      int64_t last = std::min(first + 1, count - 1);
      Value both = round(element(from, first), element(from, last));
      for (int64_t i = first; i <= last; ++i)
        result = LLVM::InsertElementOp::create(rewriter, loc, result, element(both, i - first),
                                               constant(i));
    }
    rewriter.replaceOp(op, result);
    return success();
  }
};

/// Extends pairs of bf16 by one instruction each: the lower one by a shift of the word that has
/// both, the upper one by a mask.
struct LowerExtFromBf16 : ConvertOpToLLVMPattern<arith::ExtFOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult matchAndRewrite(arith::ExtFOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    auto vector = dyn_cast<VectorType>(op.getType());
    if (!vector || vector.getRank() != 1 || vector.getNumElements() % 2 != 0 ||
        !vector.getElementType().isF32() || !getElementTypeOrSelf(op.getIn().getType()).isBF16())
      return rewriter.notifyMatchFailure(op, "not pairs of bf16 to f32");
    Location loc = op.getLoc();
    Type i32 = rewriter.getI32Type();
    auto constant = [&](int64_t value) -> Value {
      return LLVM::ConstantOp::create(rewriter, loc, i32, rewriter.getIntegerAttr(i32, value));
    };
    int64_t pairs = vector.getNumElements() / 2;
    Value words =
        LLVM::BitcastOp::create(rewriter, loc, VectorType::get(pairs, i32), adaptor.getIn());
    Value result = LLVM::PoisonOp::create(rewriter, loc, vector);
    for (int64_t i = 0; i < pairs; ++i) {
      Value word = LLVM::ExtractElementOp::create(rewriter, loc, words, constant(i));
      Value lower = LLVM::ShlOp::create(rewriter, loc, word, constant(16));
      Value upper = LLVM::AndOp::create(rewriter, loc, word, constant(-65536));
      for (auto [place, bits] : {std::pair(2 * i, lower), std::pair(2 * i + 1, upper)})
        result = LLVM::InsertElementOp::create(
            rewriter, loc, result,
            LLVM::BitcastOp::create(rewriter, loc, rewriter.getF32Type(), bits), constant(place));
    }
    rewriter.replaceOp(op, result);
    return success();
  }
};

} // namespace

/// Checks that the remaining ops of the math dialect are instructions, since otherwise the
/// assembler would find an undefined function.
static LogicalResult checkMath(ModuleOp module) {
  WalkResult walk = module.walk([](Operation *op) {
    if (!isa<math::MathDialect>(op->getDialect()))
      return WalkResult::advance();
    if (isa<math::AbsFOp, math::AbsIOp, math::SqrtOp, math::FmaOp, math::FloorOp, math::CeilOp,
            math::TruncOp, math::RoundOp, math::RoundEvenOp, math::CopySignOp, math::CtPopOp,
            math::CountLeadingZerosOp, math::CountTrailingZerosOp, math::IsNaNOp, math::IsInfOp,
            math::IsFiniteOp>(op))
      return WalkResult::advance();
    bool isApproximate =
        isa<math::Exp2Op, math::TanhOp>(op) &&
        bitEnumContainsAll(
            cast<arith::ArithFastMathInterface>(op).getFastMathFlagsAttr().getValue(),
            arith::FastMathFlags::afn);
    if (isApproximate)
      return WalkResult::advance();
    op->emitError("'") << op->getName() << "' on " << getElementTypeOrSelf(op->getResult(0))
                       << " is not supported on GPUs";
    return WalkResult::interrupt();
  });
  return failure(walk.wasInterrupted());
}

/// Shared memory is one dynamic array, whose size is given at the launch.
static void useDynamicShared(ModuleOp module, int64_t alignment) {
  OpBuilder b = OpBuilder::atBlockBegin(module.getBody());
  auto type = LLVM::LLVMArrayType::get(b.getI8Type(), 0);
  auto global = LLVM::GlobalOp::create(
      b, module.getLoc(), type, /*isConstant=*/false, LLVM::Linkage::External, "tessera_shared",
      Attribute(), static_cast<uint64_t>(alignment), static_cast<unsigned>(kSharedSpace));
  bool used = false;
  for (auto function : module.getOps<LLVM::LLVMFuncOp>()) {
    unsigned last = function.getNumArguments() - 1;
    BlockArgument argument = function.getArgument(last);
    if (!argument.use_empty()) {
      b.setInsertionPointToStart(&function.getBody().front());
      argument.replaceAllUsesWith(LLVM::AddressOfOp::create(b, function.getLoc(), global));
      used = true;
    }
    function.getBody().front().eraseArgument(last);
    if (ArrayAttr attributes = function.getArgAttrsAttr())
      function.setArgAttrsAttr(b.getArrayAttr(attributes.getValue().drop_back()));
    LLVM::LLVMFunctionType old = function.getFunctionType();
    function.setFunctionType(
        LLVM::LLVMFunctionType::get(old.getReturnType(), old.getParams().drop_back()));
  }
  if (!used)
    global.erase();
}

LogicalResult lowerLaunches(ModuleOp module) {
  MLIRContext *context = module.getContext();
  if (failed(checkMath(module)) || failed(flattenKernel(module)))
    return failure();
  std::map<std::string, int64_t> threads, resident;
  int64_t alignment = 16; // of shared memory
  for (auto function : module.getOps<func::FuncOp>()) {
    threads[function.getName().str()] = function->getAttrOfType<IntegerAttr>(kBlockAttr).getInt();
    auto blocks = function->getAttrOfType<IntegerAttr>(kResidentAttr);
    resident[function.getName().str()] = blocks ? blocks.getInt() : 1;
    function->removeAttr(kResidentAttr);
    function->removeAttr(kBlockAttr);
    function->removeAttr(kSharedAttr);
    if (auto most = function->getAttrOfType<IntegerAttr>(kSharedAlignmentAttr))
      alignment = std::max(alignment, most.getInt());
    function->removeAttr(kSharedAlignmentAttr);
  }
  LowerToLLVMOptions options(context);
  options.useBarePtrCallConv = true;
  LLVMTypeConverter converter(context, options);
  RewritePatternSet patterns(context);
  patterns.add<LowerIndex<gpu::ThreadIdOp, NVVM::ThreadIdXOp>,
               LowerIndex<gpu::BlockIdOp, NVVM::BlockIdXOp>, LowerBarrier, LowerShuffle>(converter);
  patterns.add<LowerTruncToBf16, LowerExtFromBf16, LowerPrefetch>(converter, /*benefit=*/3);
  arith::populateCeilFloorDivExpandOpsPatterns(patterns);
  arith::populateArithToLLVMConversionPatterns(converter, patterns);
  populateMathToLLVMConversionPatterns(converter, patterns, /*approximateLog1p=*/false);
  populateFinalizeMemRefToLLVMConversionPatterns(converter, patterns);
  vector::populateVectorInsertExtractStridedSliceTransforms(patterns);
  populateVectorToLLVMConversionPatterns(converter, patterns);
  cf::populateControlFlowToLLVMConversionPatterns(converter, patterns);
  ub::populateUBToLLVMConversionPatterns(converter, patterns);
  populateNVGPUToNVVMConversionPatterns(converter, patterns);
  populateFuncToLLVMConversionPatterns(converter, patterns);
  LLVMConversionTarget target(*context);
  target.addLegalOp<ModuleOp>();
  target.addLegalDialect<NVVM::NVVMDialect>();
  if (failed(applyFullConversion(module, target, std::move(patterns))))
    return failure();
  useDynamicShared(module, alignment);
  Builder b(context);
  for (auto function : module.getOps<LLVM::LLVMFuncOp>()) {
    useMemoryTypes(function);
    function->setAttr(NVVM::NVVMDialect::getKernelFuncAttrName(), b.getUnitAttr());
    function->setAttr(
        NVVM::NVVMDialect::getMaxntidAttrName(),
        b.getDenseI32ArrayAttr({static_cast<int32_t>(threads[function.getName().str()])}));
    // Otherwise ptxas limits registers to 64 to allow more blocks, and spills.
    function->setAttr(
        NVVM::NVVMDialect::getMinctasmAttrName(),
        b.getI32IntegerAttr(static_cast<int32_t>(resident[function.getName().str()])));
  }
  return success();
}

} // namespace tessera::codegen
