//===- GpuTileWriter.cpp - Products of tiles ------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GpuTileWriter.h"
#include "../Emit/GpuEmitter.h"
#include "../Stub/GpuRetarget.h"
#include "../Stub/GpuWarpgroups.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"

using namespace mlir;

namespace tessera::codegen {

int64_t partsOfSum(int64_t blocks, int64_t steps, int64_t fewest) {
  constexpr int64_t kMultiprocessors = 132;
  int64_t wanted = blocks >= kMultiprocessors ? 1 : llvm::divideCeil(2 * kMultiprocessors, blocks);
  return std::clamp<int64_t>(steps / fewest, 1, wanted);
}

TileWriter::TileWriter(GpuLaunchBuilder &launch, GpuLaunchInfo &info)
    // Dividends count blocks or threads, and fit in 32 bits.
    : IndexWriter(launch.b, launch.loc, /*wide=*/false), launch(launch), info(info) {
  useThread(launch.threadIndex());
}

void TileWriter::readThreadAgain() {
  launch.readIndicesAgain();
  useThread(launch.threadIndex());
}

void TileWriter::useThread(Value thread) {
  lane = remainder(thread, kWarp);
  warp = divide(thread, kWarp);
  group = divide(lane, 4);
  quad = remainder(lane, 4);
}

Value TileWriter::real(double value) {
  return arith::ConstantOp::create(b, loc, b.getF32FloatAttr(static_cast<float>(value)));
}

Value TileWriter::minus(Value left, Value right) {
  return arith::SubIOp::create(b, loc, left, right, arith::IntegerOverflowFlags::nsw);
}

Value TileWriter::times(Value left, Value right) {
  return arith::MulIOp::create(b, loc, left, right, arith::IntegerOverflowFlags::nsw);
}

Value TileWriter::less(Value left, Value right) {
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, left, right);
}

Value TileWriter::least(Value left, Value right) {
  return arith::MinSIOp::create(b, loc, left, right);
}

Value TileWriter::greatest(Value left, Value right) {
  return arith::MaxSIOp::create(b, loc, left, right);
}

Value TileWriter::select(Value condition, Value left, Value right) {
  return arith::SelectOp::create(b, loc, condition, left, right);
}

SmallVector<Value> TileWriter::loop(Value begin, Value end, int64_t step, ValueRange carried,
                                    function_ref<SmallVector<Value>(Value, ValueRange)> body) {
  auto made = scf::ForOp::create(b, loc, begin, end, constant(step), carried);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(made.getBody());
  SmallVector<Value> next = body(made.getInductionVar(), made.getRegionIterArgs());
  // A loop without carried values already has its terminator.
  if (!carried.empty())
    scf::YieldOp::create(b, loc, next);
  return llvm::to_vector(ValueRange(made.getResults()));
}

void TileWriter::onlyIf(Value condition, function_ref<void()> body) {
  auto branch = scf::IfOp::create(b, loc, condition, /*withElse=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  body();
}

Value TileWriter::shuffle(Value value, int64_t operand, gpu::ShuffleMode mode) {
  return overWords(b, loc, value, [&](Value word) -> Value {
    return gpu::ShuffleOp::create(b, loc, word, static_cast<int32_t>(operand),
                                  static_cast<int32_t>(kWarp), mode)
        .getShuffleResult();
  });
}

GpuShape TileWriter::forEach(int64_t count, function_ref<void(Value)> body) {
  Value index = add(multiply(launch.blockIndex(), kBlockThreads), launch.threadIndex());
  OpBuilder::InsertionGuard guard(b);
  if (count % kBlockThreads != 0) {
    auto branch = scf::IfOp::create(b, loc, less(index, constant(count)), /*withElse=*/false);
    b.setInsertionPointToStart(branch.thenBlock());
  }
  body(index);
  GpuShape shape;
  shape.blocks = llvm::divideCeil(count, kBlockThreads);
  shape.threads = kBlockThreads;
  return shape;
}

void TileWriter::note(Value root, bool store, int64_t bytes, StringRef why) {
  std::string text = ((store ? "writes argument " : "reads argument ") +
                      Twine(cast<BlockArgument>(root).getArgNumber()) + " by " + Twine(8 * bytes) +
                      " bits: " + why)
                         .str();
  if (!llvm::is_contained(info.narrow, text))
    info.narrow.push_back(text);
}

void TileWriter::count(Value root, bool store, int64_t times) {
  auto type = cast<MemRefType>(root.getType());
  (store ? info.writtenBytes : info.readBytes) +=
      times * type.getNumElements() * bytesOf(type.getElementType());
}

void TileWriter::barrier() {
  gpu::BarrierOp::create(b, loc);
}

void TileWriter::warpBarrier() {
  NVVM::SyncWarpOp::create(b, loc, arith::ConstantIntOp::create(b, loc, -1, 32));
}

Value TileWriter::ballot(Value condition) {
  return NVVM::VoteSyncOp::create(b, loc, b.getI32Type(),
                                  arith::ConstantIntOp::create(b, loc, -1, 32), condition,
                                  NVVM::VoteSyncKind::ballot);
}

Value TileWriter::load(Value memory, Value offset, Type element, int64_t width) {
  if (width == 1)
    return memref::LoadOp::create(b, loc, memory, offset);
  return vector::LoadOp::create(b, loc, VectorType::get(width, element), memory, ValueRange{offset},
                                /*nontemporal=*/false, llvm::MaybeAlign(width * bytesOf(element)));
}

Value TileWriter::sumOfParts(Value memory, Value first, int64_t total, int64_t parts, Type element,
                             int64_t width) {
  return loop(constant(1), constant(parts), 1, load(memory, first, element, width),
              [&](Value part, ValueRange carried) -> SmallVector<Value> {
                Value next = load(memory, add(multiply(part, total), first), element, width);
                return {arith::AddFOp::create(b, loc, carried[0], next)};
              })[0];
}

void TileWriter::put(Value value, Value memory, Value offset) {
  auto type = dyn_cast<VectorType>(value.getType());
  if (!type)
    memref::StoreOp::create(b, loc, value, memory, offset);
  else
    vector::StoreOp::create(
        b, loc, value, memory, ValueRange{offset}, /*nontemporal=*/false,
        llvm::MaybeAlign(type.getNumElements() * bytesOf(type.getElementType())));
}

void TileWriter::copyAsync(Value from, Value offset, Value to, Value toOffset, int64_t width,
                           Value inside) {
  int64_t bytes = width * bytesOf(cast<MemRefType>(from.getType()).getElementType());
  Value count = inside ? select(inside, constant(width), constant(0)) : Value();
  // Only copies of 16 bytes may bypass the cache of the multiprocessor.
  nvgpu::DeviceAsyncCopyOp::create(b, loc, nvgpu::DeviceAsyncTokenType::get(b.getContext()), to,
                                   ValueRange{toOffset}, from, ValueRange{offset},
                                   b.getIndexAttr(width), count,
                                   bytes == kAccessBytes ? b.getUnitAttr() : UnitAttr());
}

void TileWriter::commitCopies() {
  NVVM::CpAsyncCommitGroupOp::create(b, loc);
}

void TileWriter::waitForCopies() {
  NVVM::CpAsyncWaitGroupOp::create(b, loc, 0);
}

Value TileWriter::rounded(Value sum, Value memory, Value offset, bool accumulates) {
  Type element = cast<MemRefType>(memory.getType()).getElementType(), type = element;
  auto vector = dyn_cast<VectorType>(sum.getType());
  if (vector)
    type = vector.clone(element);
  bool isNarrow = type != sum.getType();
  if (accumulates) {
    Value before = load(memory, offset, element, vector ? vector.getNumElements() : 1);
    if (isNarrow)
      before = arith::ExtFOp::create(b, loc, sum.getType(), before);
    sum = arith::AddFOp::create(b, loc, before, sum);
  }
  return isNarrow ? arith::TruncFOp::create(b, loc, type, sum).getResult() : sum;
}

Value TileWriter::rowOf(unsigned which) {
  return add(add(multiply(warp, kRows), group), 8 * which);
}

Value TileWriter::columnOf(size_t fragment, unsigned which) {
  return add(multiply(quad, 2), static_cast<int64_t>(fragment) * kColumns + which);
}

Value TileWriter::placeOf(const SharedTile &tile, Value row, Value column) {
  if (tile.swizzle == 0)
    return add(tile.start, add(multiply(row, tile.pitch), column));
  int64_t across = tile.swizzle / bytesOf(tile.element); // elements of a row
  int64_t width = kAccessBytes / bytesOf(tile.element);  // of a word that moves
  int64_t words = tile.swizzle / kAccessBytes, rows = 128 / tile.swizzle;
  Value within = remainder(column, across);
  Value word =
      arith::XOrIOp::create(b, loc, divide(within, width), remainder(divide(row, rows), words));
  Value place = add(multiply(row, across), add(multiply(word, width), remainder(within, width)));
  if (tile.depth > across)
    place = add(place, multiply(divide(column, across), tile.rows * across));
  return add(tile.start, place);
}

Value TileWriter::loadVector(const SharedTile &tile, Value row, Value column, int64_t width) {
  return vector::LoadOp::create(b, loc, VectorType::get(width, tile.element), tile.memory,
                                ValueRange{add(tile.start, add(multiply(row, tile.pitch), column))},
                                /*nontemporal=*/false,
                                llvm::MaybeAlign(width * bytesOf(tile.element)));
}

Fragments TileWriter::zeros(int64_t columns) {
  Value zero = real(0);
  return Fragments(columns / kColumns, Fragment{zero, zero, zero, zero});
}

Value TileWriter::toWord(Value pair) {
  Value words = vector::BitCastOp::create(b, loc, VectorType::get(1, b.getI32Type()), pair);
  return vector::ExtractOp::create(b, loc, words, 0);
}

SmallVector<Value> TileWriter::matrices(const SharedTile &tile, Value row, Value column,
                                        bool transposed) {
  constexpr int64_t kCount = 4, kWordBytes = 4;
  int64_t perWord = kWordBytes / bytesOf(tile.element);
  Value offset = placeOf(tile, row, column);
  Value loaded = nvgpu::LdMatrixOp::create(b, loc, VectorType::get({kCount, perWord}, tile.element),
                                           tile.memory, ValueRange{offset}, transposed, kCount);
  SmallVector<Value> words;
  for (int64_t i = 0; i < kCount; ++i)
    words.push_back(toWord(vector::ExtractOp::create(b, loc, loaded, i)));
  return words;
}

Value TileWriter::descriptor(const SharedTile &tile, Value row, bool transposed) {
  int64_t element = bytesOf(tile.element);
  // Where rows are summed, columns continue in the next tile of rows of `swizzle` bytes.
  int64_t leading = transposed ? tile.rows * tile.swizzle : kAccessBytes;
  uint64_t fields = descriptorOf(leading, 8 * tile.swizzle, tile.swizzle);
  Type i64 = b.getI64Type();
  auto word = [&](uint64_t bits) -> Value {
    return arith::ConstantOp::create(b, loc, b.getIntegerAttr(i64, static_cast<int64_t>(bits)));
  };
  Value address = memref::ExtractAlignedPointerAsIndexOp::create(b, loc, tile.memory);
  if (tile.start)
    address = add(address, multiply(tile.start, element));
  address = add(address, multiply(row, tile.swizzle));
  Value start = arith::AndIOp::create(b, loc, arith::IndexCastOp::create(b, loc, i64, address),
                                      word(0x3ffff));
  return arith::OrIOp::create(b, loc, arith::ShRUIOp::create(b, loc, start, word(4)), word(fields));
}

/// A descriptor of what begins `bytes` bytes later.
static Value later(OpBuilder &b, Location loc, Value descriptor, int64_t bytes) {
  if (bytes == 0)
    return descriptor;
  Value step = arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(bytes / kAccessBytes));
  return arith::AddIOp::create(b, loc, descriptor, step);
}

Fragments TileWriter::beginScores(const SharedTile &left, const SharedTile &right,
                                  ArrayRef<Fragment> before) {
  WarpgroupProduct product{right.rows, left.element.isBF16()};
  constexpr int64_t kGroupWarps = 4, kGroupRows = 64;
  Value first = multiply(divide(warp, kGroupWarps), kGroupRows);
  Value from = descriptor(left, first, /*transposed=*/false);
  Value to = descriptor(right, constant(0), /*transposed=*/false);
  SmallVector<Value> sums = passCode(b, loc, kFenceProducts, flatten(before));
  for (int64_t at = 0; at < left.depth * bytesOf(left.element); at += 2 * kAccessBytes) {
    auto place = [&](const SharedTile &tile) {
      return at / tile.swizzle * tile.rows * tile.swizzle + at % tile.swizzle;
    };
    product.accumulates = !sums.empty();
    sums = beginProduct(b, loc, product, later(b, loc, from, place(left)),
                        later(b, loc, to, place(right)), sums);
  }
  passCode(b, loc, kCommitProducts, {});
  return unflatten(sums);
}

Fragments TileWriter::beginSums(ArrayRef<Fragment> sums, ArrayRef<SmallVector<Value>> weights,
                                const SharedTile &right) {
  WarpgroupProduct product{right.depth, right.element.isBF16()};
  product.leftInRegisters = product.accumulates = product.transposesRight = true;
  Value to = descriptor(right, constant(0), /*transposed=*/true);
  // All registers pass the fence, so that no other code writes them between the products.
  SmallVector<Value> values = flatten(sums);
  size_t numSums = values.size();
  for (ArrayRef<Value> words : weights)
    llvm::append_range(values, words);
  values = passCode(b, loc, kFenceProducts, values);
  ArrayRef<Value> words = ArrayRef(values).drop_front(numSums);
  SmallVector<Value> next(ArrayRef(values).take_front(numSums));
  for (size_t step = 0; step < weights.size(); ++step)
    next =
        beginProduct(b, loc, product, words.slice(4 * step, 4),
                     later(b, loc, to, static_cast<int64_t>(step) * kDepth * right.swizzle), next);
  passCode(b, loc, kCommitProducts, {});
  return unflatten(next);
}

Fragments TileWriter::waitForProducts(ArrayRef<Fragment> sums, int64_t groups) {
  return unflatten(passCode(b, loc, (kWaitProducts + Twine(groups) + ";").str(), flatten(sums)));
}

Fragments TileWriter::fenceSums(ArrayRef<Fragment> sums) {
  return unflatten(passCode(b, loc, kFenceProducts, flatten(sums)));
}

void TileWriter::fenceProxy() {
  passCode(b, loc, kFenceProxy, {});
}

Value TileWriter::toTf32(Value x) {
  return LLVM::CallIntrinsicOp::create(b, loc, b.getI32Type(), b.getStringAttr(kRoundTf32Intrinsic),
                                       ValueRange{x})
      .getResult(0);
}

Fragment TileWriter::mma(ValueRange left, ValueRange right, const Fragment &sum, Type element) {
  Type f32 = b.getF32Type();
  bool isF16 = element.isF16();
  // f16 is passed as pairs, bf16 and TF32 as words.
  auto typed = [&](ValueRange words) {
    return llvm::map_to_vector(words, [&](Value word) -> Value {
      if (!isF16)
        return word;
      Value one = vector::FromElementsOp::create(b, loc, VectorType::get(1, b.getI32Type()), word);
      return vector::BitCastOp::create(b, loc, VectorType::get(2, b.getF16Type()), one);
    });
  };
  NVVM::MMATypes type = isF16             ? NVVM::MMATypes::f16
                        : element.isF32() ? NVVM::MMATypes::tf32
                                          : NVVM::MMATypes::bf16;
  auto result = LLVM::LLVMStructType::getLiteral(b.getContext(), {f32, f32, f32, f32});
  Value made = NVVM::MmaOp::create(
      b, loc, result, typed(left), typed(right), ValueRange(ArrayRef<Value>(sum)),
      ArrayRef<int64_t>{kRows, kColumns, element.isF32() ? kWideDepth : kDepth}, std::nullopt,
      std::nullopt, std::array<NVVM::MMATypes, 2>{type, type},
      std::array<NVVM::MMALayout, 2>{NVVM::MMALayout::row, NVVM::MMALayout::col});
  Fragment next;
  for (auto [i, value] : llvm::enumerate(next))
    value = LLVM::ExtractValueOp::create(b, loc, made, static_cast<int64_t>(i));
  return next;
}

} // namespace tessera::codegen
