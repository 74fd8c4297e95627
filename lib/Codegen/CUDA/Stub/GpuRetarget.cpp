//===- GpuRetarget.cpp - Retarget launches to the emulator ----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Turns the same kernel that becomes PTX into a CPU function: special registers of a GPU are read
// from a `tessera_stub_thread`, and its instructions become calls through the table of
// StubKernel.h. Nothing else changes, so the emulation computes the same results as the GPU.
//
//===----------------------------------------------------------------------===//

#include "GpuRetarget.h"
#include "GpuWarpgroups.h"
#include "tessera/Runtime/Gpu/StubKernel.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;

namespace tessera::codegen {

namespace {

class Retarget {
public:
  Retarget(LLVM::LLVMFuncOp body, LLVM::GlobalOp table, ArrayRef<int64_t> bytes,
           bool reportsAccesses)
      : body(body), table(table), b(body.getContext()), loc(body.getLoc()), bytes(bytes),
        reportsAccesses(reportsAccesses), pointer(LLVM::LLVMPointerType::get(body.getContext())) {}

  void run() {
    removeAddressSpaces();
    addThread();
    SmallVector<Operation *> ops;
    body.walk([&](Operation *op) { ops.push_back(op); });
    resolution = resolutionOf(ops);
    for (Operation *op : ops) {
      b.setInsertionPoint(op);
      if (auto load = dyn_cast<LLVM::LoadOp>(op))
        checkAccess(load, load.getAddr(), load.getType(), load.getAlignment());
      else if (auto store = dyn_cast<LLVM::StoreOp>(op))
        checkAccess(store, store.getAddr(), store.getValue().getType(), store.getAlignment());
      else if (auto code = dyn_cast<LLVM::InlineAsmOp>(op); code && onProducts(code))
        continue;
      else if (Value value = replacement(op))
        replace(op, value);
      else if (isa<NVVM::Barrier0Op>(op)) {
        call(offsetof(tessera_stub_api, barrier), Type(), {thread});
        op->erase();
      } else if (auto wait = dyn_cast<NVVM::SyncWarpOp>(op)) {
        onWarp(wait.getMask(), constantWord(0), TESSERA_STUB_WARP_BARRIER);
        op->erase();
      } else if (auto load = dyn_cast<NVVM::LdMatrixOp>(op))
        replace(op, loadMatrices(load));
      else if (auto product = dyn_cast<NVVM::MmaOp>(op))
        replace(op, multiplyMatrices(product));
      else if (isa<NVVM::CpAsyncOp, NVVM::CpAsyncCommitGroupOp, NVVM::CpAsyncWaitGroupOp>(op))
        copyAsync(op);
      else if (isa<LLVM::InlineAsmOp>(op)) // a prefetch, without effect on values
        op->erase();
      else if (auto cast = dyn_cast<LLVM::AddrSpaceCastOp>(op)) // of the CPU's only address space
        replace(op, cast.getArg());
    }
    rename();
  }

private:
  /// The last argument: a `const tessera_stub_thread *`.
  void addThread() {
    thread = body.getBody().front().addArgument(pointer, loc);
    LLVM::LLVMFunctionType type = body.getFunctionType();
    SmallVector<Type> parameters(type.getParams());
    parameters.push_back(pointer);
    body.setFunctionType(LLVM::LLVMFunctionType::get(type.getReturnType(), parameters));
    if (ArrayAttr attributes = body.getArgAttrsAttr()) {
      SmallVector<Attribute> all(attributes.getValue());
      all.push_back(b.getDictionaryAttr({}));
      body.setArgAttrsAttr(b.getArrayAttr(all));
    }
  }

  void replace(Operation *op, Value value) {
    op->getResult(0).replaceAllUsesWith(value);
    op->erase();
  }

  Value replacement(Operation *op) {
    if (isa<NVVM::ThreadIdXOp>(op))
      return field(offsetof(tessera_stub_thread, thread), b.getI32Type());
    if (isa<NVVM::BlockIdXOp>(op))
      return field(offsetof(tessera_stub_thread, block), b.getI32Type());
    if (auto code = dyn_cast<LLVM::InlineAsmOp>(op); code && code->getNumResults() > 0)
      return field(code.getAsmString() == kReadThreadCode ? offsetof(tessera_stub_thread, thread)
                                                          : offsetof(tessera_stub_thread, block),
                   b.getI32Type());
    if (auto address = dyn_cast<LLVM::AddressOfOp>(op);
        address && address.getGlobalName() == "tessera_shared")
      return field(offsetof(tessera_stub_thread, shared), pointer);
    if (auto intrinsic = dyn_cast<LLVM::CallIntrinsicOp>(op);
        intrinsic && intrinsic.getIntrin() == kExp2Intrinsic)
      return approximate(offsetof(tessera_stub_api, exp2_approx), intrinsic.getArgs()[0],
                         constantWord(1));
    if (auto exp2 = dyn_cast<LLVM::Exp2Op>(op))
      return approximate(offsetof(tessera_stub_api, exp2_approx), exp2.getIn(), constantWord(0));
    if (auto tanh = dyn_cast<LLVM::TanhOp>(op))
      return approximate(offsetof(tessera_stub_api, tanh_approx), tanh.getIn(), ValueRange());
    if (auto intrinsic = dyn_cast<LLVM::CallIntrinsicOp>(op);
        intrinsic && intrinsic.getIntrin() == kPackBf16Intrinsic)
      return packBf16(intrinsic);
    if (auto intrinsic = dyn_cast<LLVM::CallIntrinsicOp>(op);
        intrinsic && intrinsic.getIntrin() == kRoundTf32Intrinsic)
      return roundToTf32(intrinsic.getArgs()[0]);
    if (isa<LLVM::FAddOp, LLVM::FSubOp, LLVM::FMulOp>(op) &&
        getElementTypeOrSelf(op->getResult(0)).getIntOrFloatBitWidth() == 16)
      return computeInF32(op);
    if (auto vote = dyn_cast<NVVM::VoteSyncOp>(op)) {
      Value word = LLVM::ZExtOp::create(b, loc, b.getI32Type(), vote.getPred());
      return onWarp(vote.getMask(), word, TESSERA_STUB_BALLOT);
    }
    if (auto shuffle = dyn_cast<NVVM::ShflOp>(op)) {
      Value mode = constantWord(modeOf(shuffle.getKind()));
      return call(offsetof(tessera_stub_api, shuffle), b.getI32Type(),
                  {thread, shuffle.getThreadMask(), shuffle.getVal(), shuffle.getOffset(),
                   shuffle.getMaskAndClamp(), mode});
    }
    return {};
  }

  Value onWarp(Value members, Value value, int64_t mode) {
    return call(offsetof(tessera_stub_api, shuffle), b.getI32Type(),
                {thread, members, value, constantWord(0), constantWord(0), constantWord(mode)});
  }

  static int64_t modeOf(NVVM::ShflKind kind) {
    switch (kind) {
    case NVVM::ShflKind::bfly:
      return TESSERA_STUB_SHUFFLE_XOR;
    case NVVM::ShflKind::up:
      return TESSERA_STUB_SHUFFLE_UP;
    case NVVM::ShflKind::down:
      return TESSERA_STUB_SHUFFLE_DOWN;
    case NVVM::ShflKind::idx:
      return TESSERA_STUB_SHUFFLE_INDEX;
    }
    llvm_unreachable("unknown shuffle");
  }

  /// Rounds a float to the nearest bf16, ties to even, in the upper half of a word; the lower half
  /// is unspecified.
  Value roundToBf16(Value x) {
    Value bits = LLVM::BitcastOp::create(b, loc, b.getI32Type(), x);
    Value odd = LLVM::AndOp::create(b, loc, LLVM::LShrOp::create(b, loc, bits, constantWord(16)),
                                    constantWord(1));
    Value half = LLVM::AddOp::create(b, loc, odd, constantWord(0x7fff));
    Value rounded = LLVM::AddOp::create(b, loc, bits, half);
    Value isNaN = LLVM::FCmpOp::create(b, loc, LLVM::FCmpPredicate::uno, x, x);
    return LLVM::SelectOp::create(b, loc, isNaN, constantWord(0x7fff0000), rounded);
  }

  /// An operation on 16-bit floats, element by element. Elements of bf16 are moved as integers,
  /// since LLVM calls functions that may be missing to move them otherwise.
  Value computeInF32(Operation *op) {
    Type type = op->getResult(0).getType(), element = getElementTypeOrSelf(type);
    Type f32 = b.getF32Type(), i16 = b.getI16Type();
    bool isBf16 = element.isBF16();
    auto one = [&](ValueRange operands) -> Value {
      IRMapping wide;
      for (auto [from, operand] : llvm::zip_equal(op->getOperands(), operands)) {
        Value value = operand;
        if (isBf16) {
          Value word = LLVM::ShlOp::create(
              b, loc, LLVM::ZExtOp::create(b, loc, b.getI32Type(), value), constantWord(16));
          value = LLVM::BitcastOp::create(b, loc, f32, word);
        } else {
          value = LLVM::FPExtOp::create(b, loc, f32, value);
        }
        wide.map(from, value);
      }
      Operation *made = b.clone(*op, wide);
      made->getResult(0).setType(f32);
      if (!isBf16)
        return LLVM::FPTruncOp::create(b, loc, element, made->getResult(0));
      Value word = LLVM::LShrOp::create(b, loc, roundToBf16(made->getResult(0)), constantWord(16));
      return LLVM::TruncOp::create(b, loc, i16, word);
    };
    auto vector = dyn_cast<VectorType>(type);
    auto moved = [&](Value value, Type to) -> Value {
      if (!isBf16)
        return value;
      return LLVM::BitcastOp::create(b, loc, vector ? Type(vector.clone(to)) : to, value);
    };
    SmallVector<Value> operands;
    for (Value operand : op->getOperands())
      operands.push_back(moved(operand, i16));
    if (!vector)
      return moved(one(operands), element);
    Value result = LLVM::PoisonOp::create(b, loc, operands[0].getType());
    for (int64_t i = 0; i < vector.getNumElements(); ++i) {
      SmallVector<Value> elements;
      for (Value operand : operands)
        elements.push_back(LLVM::ExtractElementOp::create(b, loc, operand, constantWord(i)));
      result = LLVM::InsertElementOp::create(b, loc, result, one(elements), constantWord(i));
    }
    return moved(result, element);
  }

  /// Rounds a float to the nearest number of 10 bits of mantissa, ties away from zero.
  Value roundToTf32(Value x) {
    constexpr int32_t kHalf = 1 << 12, kKept = ~((1 << 13) - 1), kNaN = 0x7fffffff;
    Value bits = LLVM::BitcastOp::create(b, loc, b.getI32Type(), x);
    Value rounded = LLVM::AndOp::create(
        b, loc, LLVM::AddOp::create(b, loc, bits, constantWord(kHalf)), constantWord(kKept));
    Value isNaN = LLVM::FCmpOp::create(b, loc, LLVM::FCmpPredicate::uno, x, x);
    return LLVM::SelectOp::create(b, loc, isNaN, constantWord(kNaN), rounded);
  }

  Value packBf16(LLVM::CallIntrinsicOp op) {
    Value upper = LLVM::AndOp::create(b, loc, roundToBf16(op.getArgs()[0]),
                                      constantWord(static_cast<int32_t>(0xffff0000)));
    Value lower = LLVM::LShrOp::create(b, loc, roundToBf16(op.getArgs()[1]), constantWord(16));
    Value word = LLVM::OrOp::create(b, loc, upper, lower);
    return LLVM::BitcastOp::create(b, loc, op->getResult(0).getType(), word);
  }

  /// Calls a function for each element of `x`.
  Value approximate(int64_t offset, Value x, ValueRange others) {
    Type f32 = b.getF32Type();
    auto one = [&](Value element) {
      SmallVector<Value> arguments{element};
      llvm::append_range(arguments, others);
      return call(offset, f32, arguments);
    };
    auto vector = dyn_cast<VectorType>(x.getType());
    if (!vector)
      return one(x);
    Value result = LLVM::PoisonOp::create(b, loc, vector);
    for (int64_t i = 0; i < vector.getNumElements(); ++i)
      result = LLVM::InsertElementOp::create(
          b, loc, result, one(LLVM::ExtractElementOp::create(b, loc, x, constantWord(i))),
          constantWord(i));
    return result;
  }

  void copyAsync(Operation *op) {
    if (auto copy = dyn_cast<NVVM::CpAsyncOp>(op)) {
      checkBounds(copy.getSrc(), LLVM::LLVMArrayType::get(b.getI8Type(), copy.getSize()));
      b.setInsertionPoint(op);
      Value bytes = constantWord(copy.getSize());
      Value read = copy.getCpSize() ? copy.getCpSize() : bytes;
      report(copy.getSrc(), LLVM::ZExtOp::create(b, loc, b.getI64Type(), read), /*writes=*/false);
      call(offsetof(tessera_stub_api, copy_async), Type(),
           {thread, copy.getDst(), copy.getSrc(), bytes, read});
    } else if (auto wait = dyn_cast<NVVM::CpAsyncWaitGroupOp>(op)) {
      call(offsetof(tessera_stub_api, wait_copies), Type(), {thread, constantWord(wait.getN())});
    } else {
      call(offsetof(tessera_stub_api, commit_copies), Type(), {thread});
    }
    op->erase();
  }

  /// Replaces code of products of warpgroups; false if it is other code.
  bool onProducts(LLVM::InlineAsmOp op) {
    StringRef code = op.getAsmString();
    std::optional<WarpgroupProduct> product = WarpgroupProduct::read(code);
    unsigned groups = 0;
    StringRef waited = code;
    bool waits = waited.consume_front(kWaitProducts) && !waited.consumeInteger(10, groups);
    if (product) {
      multiplyByWarpgroup(op, *product);
    } else if (waits || code == kFenceProducts) {
      // The values that pass.
      for (auto [i, value] : llvm::enumerate(op.getOperands()))
        LLVM::StoreOp::create(b, loc, value, sumWord(static_cast<int64_t>(i)), /*alignment=*/4);
      auto count = static_cast<int64_t>(op.getNumOperands());
      if (waits)
        call(offsetof(tessera_stub_api, wait_products), Type(),
             {thread, constantWord(groups), constantWord(count), sumWord(0)});
      else
        call(offsetof(tessera_stub_api, fence_products), Type(), {thread});
      if (count > 0)
        op->getResult(0).replaceAllUsesWith(resultOf(op, [&](int64_t i) { return sumWord(i); }));
    } else if (code == kCommitProducts) {
      call(offsetof(tessera_stub_api, commit_products), Type(), {thread});
    } else if (code == kFenceProxy) {
      call(offsetof(tessera_stub_api, fence_proxy), Type(), {thread});
    } else {
      return false;
    }
    op->erase();
    return true;
  }

  void multiplyByWarpgroup(LLVM::InlineAsmOp op, const WarpgroupProduct &product) {
    OperandRange operands = op.getOperands();
    int64_t numSums = product.columns / 2;
    if (product.accumulates)
      for (int64_t i = 0; i < numSums; ++i)
        LLVM::StoreOp::create(b, loc, operands[i], sumWord(i), /*alignment=*/4);
    operands = operands.drop_front(product.accumulates ? numSums : 0);
    Value left = LLVM::ZeroOp::create(b, loc, pointer);
    Value descriptor = constantOf(b.getI64Type(), 0);
    if (product.leftInRegisters) {
      for (int64_t i = 0; i < 4; ++i)
        LLVM::StoreOp::create(b, loc, operands[i], word(i), /*alignment=*/4);
      left = word(0);
    } else {
      descriptor = operands.front();
    }
    int64_t form = (product.isBf16 ? TESSERA_STUB_PRODUCT_BF16 : 0) |
                   (product.accumulates ? TESSERA_STUB_PRODUCT_ACCUMULATES : 0) |
                   (product.transposesRight ? TESSERA_STUB_PRODUCT_TRANSPOSED_B : 0);
    call(offsetof(tessera_stub_api, multiply_warpgroup), Type(),
         {thread, constantWord(product.columns), constantWord(form), left, descriptor,
          operands.back(), sumWord(0)});
    op->getResult(0).replaceAllUsesWith(resultOf(op, [&](int64_t i) { return sumWord(i); }));
  }

  /// Words for the values of a product, or of a wait.
  Value sumWord(int64_t number) {
    if (!sums) {
      OpBuilder entry = OpBuilder::atBlockBegin(&body.getBody().front());
      Value count = LLVM::ConstantOp::create(entry, loc, entry.getI32Type(),
                                             entry.getI32IntegerAttr(kSumWords));
      sums = LLVM::AllocaOp::create(entry, loc, pointer, entry.getI32Type(), count);
    }
    return at(sums, 4 * number);
  }

  /// Allocates words that the emulator reads and writes on the thread's stack.
  Value words() {
    if (!stack) {
      OpBuilder entry = OpBuilder::atBlockBegin(&body.getBody().front());
      Value count = LLVM::ConstantOp::create(entry, loc, entry.getI32Type(),
                                             entry.getI32IntegerAttr(kStackWords));
      stack = LLVM::AllocaOp::create(entry, loc, pointer, entry.getI32Type(), count);
    }
    return stack;
  }

  Value word(int64_t number) { return at(words(), 4 * number); }

  Value constantWord(int64_t value) {
    return LLVM::ConstantOp::create(b, loc, b.getI32Type(), b.getI32IntegerAttr(value));
  }

  Value resultOf(Operation *op, int64_t first) {
    return resultOf(op, [&](int64_t i) { return word(first + i); });
  }

  /// Converts words to the result of `op`: a struct, or its single element.
  Value resultOf(Operation *op, function_ref<Value(int64_t)> wordOf) {
    Type type = op->getResult(0).getType();
    auto all = dyn_cast<LLVM::LLVMStructType>(type);
    if (!all)
      return LLVM::LoadOp::create(b, loc, type, wordOf(0));
    Value result = LLVM::PoisonOp::create(b, loc, type);
    for (auto [i, each] : llvm::enumerate(all.getBody())) {
      Value element = LLVM::LoadOp::create(b, loc, each, wordOf(static_cast<int64_t>(i)));
      result = LLVM::InsertValueOp::create(b, loc, result, element, static_cast<int64_t>(i));
    }
    return result;
  }

  Value loadMatrices(NVVM::LdMatrixOp op) {
    bool transposed = op.getLayout() == NVVM::MMALayout::col;
    call(offsetof(tessera_stub_api, load_matrices), Type(),
         {thread, constantWord(op.getNum()), constantWord(transposed), op.getPtr(), word(0)});
    return resultOf(op, 0);
  }

  Value multiplyMatrices(NVVM::MmaOp op) {
    // a at word 0, b at 4, c at 6, d at 10.
    int64_t next = 0;
    for (ValueRange operands : {op.getOperandA(), op.getOperandB(), op.getOperandC()})
      for (Value operand : operands)
        LLVM::StoreOp::create(b, loc, operand, word(next++), /*alignment=*/4);
    std::optional<NVVM::MMATypes> multiplied = op.getMultiplicandAPtxType();
    int64_t type = multiplied == NVVM::MMATypes::bf16   ? TESSERA_STUB_MATRIX_BF16
                   : multiplied == NVVM::MMATypes::tf32 ? TESSERA_STUB_MATRIX_TF32
                                                        : TESSERA_STUB_MATRIX_F16;
    call(offsetof(tessera_stub_api, multiply_matrices), Type(),
         {thread, constantWord(type), word(0), word(4), word(6), word(10)});
    return resultOf(op, 10);
  }

  Value at(Value base, int64_t offset) {
    return LLVM::GEPOp::create(b, loc, pointer, b.getI8Type(), base,
                               ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(offset)});
  }

  Value field(int64_t offset, Type type) {
    return LLVM::LoadOp::create(b, loc, type, at(thread, offset), /*alignment=*/0,
                                /*isVolatile=*/false, /*isNonTemporal=*/false,
                                /*isInvariant=*/true);
  }

  Value call(int64_t offset, Type result, ValueRange arguments) {
    Value api = LLVM::LoadOp::create(b, loc, pointer, LLVM::AddressOfOp::create(b, loc, table));
    SmallVector<Value> operands{LLVM::LoadOp::create(b, loc, pointer, at(api, offset))};
    llvm::append_range(operands, arguments);
    SmallVector<Type> types(ValueRange(arguments).getTypes());
    auto type = LLVM::LLVMFunctionType::get(
        result ? result : LLVM::LLVMVoidType::get(b.getContext()), types);
    auto made = LLVM::CallOp::create(b, loc, type, operands);
    return result ? made.getResult() : Value();
  }

  /// The CPU has only one address space.
  void removeAddressSpaces() {
    auto plain = [&](Value value) {
      auto type = dyn_cast<LLVM::LLVMPointerType>(value.getType());
      if (type && type.getAddressSpace() != 0)
        value.setType(pointer);
    };
    body.walk([&](Operation *op) {
      for (Value result : op->getResults())
        plain(result);
      for (Region &region : op->getRegions())
        for (Block &block : region)
          for (BlockArgument argument : block.getArguments())
            plain(argument);
    });
  }

  /// The argument that contains an address, or -1.
  int argumentOf(Value address) {
    while (auto gep = address.getDefiningOp<LLVM::GEPOp>())
      address = gep.getBase();
    auto argument = dyn_cast<BlockArgument>(address);
    bool ours = argument && argument.getOwner() == &body.getBody().front() &&
                argument.getArgNumber() < bytes.size();
    return ours ? static_cast<int>(argument.getArgNumber()) : -1;
  }

  void checkAccess(Operation *access, Value address, Type type, std::optional<uint64_t> stated) {
    checkBounds(address, type);
    b.setInsertionPoint(access);
    checkAlignment(address, type, stated);
    b.setInsertionPoint(access);
    int64_t size = DataLayout::closest(body).getTypeSize(type);
    report(address, constantOf(b.getI64Type(), size), isa<LLVM::StoreOp>(access));
  }

  /// Calls `access`, unless the address is on the thread's stack or in a constant.
  void report(Value address, Value size, bool writes) {
    Value base = address;
    while (auto gep = base.getDefiningOp<LLVM::GEPOp>())
      base = gep.getBase();
    if (reportsAccesses &&
        !isa_and_nonnull<LLVM::AllocaOp, LLVM::AddressOfOp>(base.getDefiningOp()))
      call(offsetof(tessera_stub_api, access), Type(),
           {thread, address, size, constantWord(resolution), constantWord(writes)});
  }

  /// The bytes of the smallest element that the launch accesses.
  int64_t resolutionOf(ArrayRef<Operation *> ops) {
    int64_t least = 16;
    for (Operation *op : ops) {
      Type type;
      if (auto load = dyn_cast<LLVM::LoadOp>(op))
        type = load.getType();
      else if (auto store = dyn_cast<LLVM::StoreOp>(op))
        type = store.getValue().getType();
      else
        continue;
      least = std::min(least, static_cast<int64_t>(DataLayout::closest(body).getTypeSize(
                                  getElementTypeOrSelf(type))));
    }
    return static_cast<int64_t>(llvm::bit_floor(static_cast<uint64_t>(least)));
  }

  /// Inserts a branch to `report`, which does not return, if `condition` holds. The insertion point
  /// is then before the access.
  void reportIf(Value condition, llvm::function_ref<void()> report) {
    Operation *access = &*b.getInsertionPoint();
    Block *before = access->getBlock(), *after = before->splitBlock(access);
    Block *reporting = b.createBlock(after);
    report();
    LLVM::UnreachableOp::create(b, loc);
    b.setInsertionPointToEnd(before);
    LLVM::CondBrOp::create(b, loc, condition, reporting, ValueRange(), after, ValueRange(),
                           std::pair<int32_t, int32_t>{1, 1 << 20});
    b.setInsertionPoint(access);
  }

  Value constantOf(Type type, int64_t value) {
    return LLVM::ConstantOp::create(b, loc, type, b.getIntegerAttr(type, value));
  }

  /// Calls `misaligned` if a vector is accessed at an address without the alignment that the access
  /// states, or that of its type: a GPU traps there.
  void checkAlignment(Value address, Type type, std::optional<uint64_t> stated) {
    DataLayout layout = DataLayout::closest(body);
    auto alignment = static_cast<int64_t>(stated.value_or(layout.getTypeABIAlignment(type)));
    if (!isa<VectorType>(type) || alignment < 2)
      return;
    Type i64 = b.getI64Type();
    Value bits = LLVM::PtrToIntOp::create(b, loc, i64, address);
    Value past = LLVM::AndOp::create(b, loc, bits, constantOf(i64, alignment - 1));
    Value is = LLVM::ICmpOp::create(b, loc, LLVM::ICmpPredicate::ne, past, constantOf(i64, 0));
    reportIf(is, [&] {
      call(offsetof(tessera_stub_api, misaligned), Type(),
           {thread, address, constantOf(i64, static_cast<int64_t>(layout.getTypeSize(type))),
            constantOf(i64, alignment)});
    });
  }

  /// Calls `out_of_bounds` unless the access is within its argument. It is not a trap: the emulator
  /// reports the thread and continues.
  void checkBounds(Value address, Type type) {
    int argument = argumentOf(address);
    if (argument < 0)
      return;
    int64_t size = DataLayout::closest(body).getTypeSize(type);
    Type i64 = b.getI64Type();
    Value from = LLVM::PtrToIntOp::create(b, loc, i64, body.getArgument(argument));
    Value to = LLVM::PtrToIntOp::create(b, loc, i64, address);
    Value offset = LLVM::SubOp::create(b, loc, to, from);
    // Negative offsets are large as unsigned numbers.
    Value beyond = bytes[argument] < size
                       ? constantOf(b.getI1Type(), 1)
                       : LLVM::ICmpOp::create(b, loc, LLVM::ICmpPredicate::ugt, offset,
                                              constantOf(i64, bytes[argument] - size))
                             .getResult();
    reportIf(beyond, [&] {
      call(offsetof(tessera_stub_api, out_of_bounds), Type(),
           {thread, constantOf(b.getI32Type(), argument), offset, constantOf(i64, size)});
    });
  }

  /// Adds `void symbol(void **arguments, thread)`, which unpacks the arguments for the body.
  void rename() {
    std::string symbol = body.getName().str();
    body.setName(symbol + ".body");
    body.setLinkage(LLVM::Linkage::Internal);
    body.setNoInline(true); // inlining would lose the attributes of its arguments
    b.setInsertionPointAfter(body);
    auto type =
        LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(b.getContext()), {pointer, pointer});
    auto entry = LLVM::LLVMFuncOp::create(b, loc, symbol, type);
    Block *block = entry.addEntryBlock(b);
    b.setInsertionPointToStart(block);
    SmallVector<Value> arguments;
    for (unsigned i = 0; i + 1 < body.getNumArguments(); ++i)
      arguments.push_back(LLVM::LoadOp::create(
          b, loc, pointer, at(block->getArgument(0), static_cast<int64_t>(i * sizeof(void *)))));
    arguments.push_back(block->getArgument(1));
    LLVM::CallOp::create(b, loc, body, arguments);
    LLVM::ReturnOp::create(b, loc, ValueRange());
  }

  LLVM::LLVMFuncOp body;
  LLVM::GlobalOp table;
  OpBuilder b;
  Location loc;
  ArrayRef<int64_t> bytes;
  bool reportsAccesses;
  int64_t resolution = 1;
  Type pointer;
  Value thread, stack, sums;
  static constexpr int32_t kStackWords = 14, kSumWords = 256;
};

} // namespace

void retargetToStub(LLVM::LLVMFuncOp launch, LLVM::GlobalOp table, ArrayRef<int64_t> bytes,
                    bool reportAccesses) {
  launch->removeAttr(NVVM::NVVMDialect::getKernelFuncAttrName());
  launch->removeAttr(NVVM::NVVMDialect::getMaxntidAttrName());
  // LLVM would drop checks of what the attributes promise.
  for (unsigned i = 0; i < launch.getNumArguments(); ++i)
    launch.removeArgAttr(i, LLVM::LLVMDialect::getAlignAttrName());
  Retarget(launch, table, bytes, reportAccesses).run();
}

} // namespace tessera::codegen
