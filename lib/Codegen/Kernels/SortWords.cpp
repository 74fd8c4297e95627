//===- SortWords.cpp - The words by which elements are sorted -------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SortWords.h"

#include "tessera/Dialect/Rt/IR/Rt.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include "llvm/Support/MathExtras.h"

#include <limits>

using namespace mlir;
using namespace tessera;
using namespace tessera::codegen;
using Values = LoopWriter::Values;

SortWords::SortWords(ext::SortOp op)
    : word(IntegerType::get(op->getContext(), 64)), descending(op.getDescending()) {
  Type last = getElementTypeOrSelf(op.getInputs()[op.getKeys() - 1].getType());
  isPacked = !last.isIndex() && last.getIntOrFloatBitWidth() <= 32;
  numWords = op.getKeys() + (isPacked ? 0 : 1);
}

Value SortWords::keyOf(LoopWriter at, Value element) const {
  OpBuilder &b = at.b;
  Location loc = at.loc;
  Type type = element.getType();
  Value key = element;
  if (isa<FloatType>(type)) {
    if (type.getIntOrFloatBitWidth() < 32) {
      type = b.getF32Type();
      element = arith::ExtFOp::create(b, loc, type, element);
    }
    // -0 as 0; of negative numbers the greater magnitude is less; NaN of either sign is last.
    auto bits = b.getIntegerType(type.getIntOrFloatBitWidth());
    int64_t most = llvm::maxIntN(bits.getWidth());
    Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(type));
    Value isZero = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ, element, zero);
    Value isNaN = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNO, element, element);
    Value raw = arith::BitcastOp::create(b, loc, bits, at.select(isZero, zero, element));
    Value flipped = arith::XOrIOp::create(b, loc, raw, at.constant(bits, most));
    key = at.select(at.less(raw, at.constant(bits, 0)), flipped, raw);
    key = at.select(isNaN, at.constant(bits, most), key);
  }
  type = key.getType();
  if (type.isIndex())
    key = arith::IndexCastOp::create(b, loc, word, key);
  else if (type.isInteger(1))
    key = arith::ExtUIOp::create(b, loc, b.getI32Type(), key);
  else if (type.getIntOrFloatBitWidth() < 32)
    key = arith::ExtSIOp::create(b, loc, b.getI32Type(), key);
  return descending ? arith::XOrIOp::create(b, loc, key, at.constant(key.getType(), -1)).getResult()
                    : key;
}

Value SortWords::keyWord(LoopWriter at, Value element) const {
  Value key = keyOf(at, element);
  return key.getType() == word ? key : arith::ExtSIOp::create(at.b, at.loc, word, key).getResult();
}

Value SortWords::elementOf(LoopWriter at, Value key, Type type) const {
  OpBuilder &b = at.b;
  Location loc = at.loc;
  if (descending)
    key = arith::XOrIOp::create(b, loc, key, at.constant(key.getType(), -1));
  if (type.isIndex())
    return arith::IndexCastOp::create(b, loc, type, key);
  if (isa<IntegerType>(type))
    return key.getType() == type ? key : arith::TruncIOp::create(b, loc, type, key).getResult();
  Type bits = key.getType();
  Value most = at.constant(bits, llvm::maxIntN(bits.getIntOrFloatBitWidth()));
  Value flipped = arith::XOrIOp::create(b, loc, key, most);
  key = at.select(at.less(key, at.constant(bits, 0)), flipped, key);
  Type real = bits.isInteger(64) ? b.getF64Type() : b.getF32Type();
  Value element = arith::BitcastOp::create(b, loc, real, key);
  return real == type ? element : arith::TruncFOp::create(b, loc, type, element).getResult();
}

Values SortWords::withIndex(LoopWriter at, Values words, Value place) const {
  Value index = arith::IndexCastOp::create(at.b, at.loc, word, place);
  if (!isPacked) {
    words.push_back(index);
    return words;
  }
  Value high = arith::ShLIOp::create(at.b, at.loc, words.back(), at.constant(word, 32));
  words.back() = arith::OrIOp::create(at.b, at.loc, high, index);
  return words;
}

Values SortWords::of(LoopWriter at, ValueRange keys, Value place) const {
  return withIndex(at, llvm::map_to_vector<4>(keys, [&](Value key) { return keyWord(at, key); }),
                   place);
}

Values SortWords::greatest(LoopWriter at) const {
  return Values(numWords, at.constant(word, std::numeric_limits<int64_t>::max()));
}

Value SortWords::comesBefore(LoopWriter at, ArrayRef<Value> x, ArrayRef<Value> y) const {
  Value before = at.less(x.back(), y.back());
  for (auto [a, b] : llvm::reverse(llvm::zip(x.drop_back(), y.drop_back()))) {
    Value same = arith::CmpIOp::create(at.b, at.loc, arith::CmpIPredicate::eq, a, b);
    before = at.select(same, before, at.less(a, b));
  }
  return before;
}

Value SortWords::indexOf(LoopWriter at, ArrayRef<Value> words) const {
  Value index = words.back();
  if (isPacked)
    index = arith::AndIOp::create(at.b, at.loc, index, at.constant(word, 0xffffffff));
  return arith::IndexCastOp::create(at.b, at.loc, at.b.getIndexType(), index);
}

//===----------------------------------------------------------------------===//
// Lines
//===----------------------------------------------------------------------===//

SortLines::SortLines(OpBuilder &b, ext::SortOp op)
    : SortWords(op), op(op), lines(op.getShape(), op.getDim()) {
  for (Value input : op.getInputs())
    inputs.push_back(Lines::collapse(b, op.getLoc(), input, op.getDim()));
}

Values SortLines::wordsAt(LoopWriter at, Value o, Value i, Value j) const {
  Values keys;
  for (size_t key = 0; key < op.getKeys(); ++key)
    keys.push_back(at.read(inputs[key], {o, i, j}));
  return of(at, keys, i);
}

Values SortLines::empties(LoopWriter at) const {
  return llvm::map_to_vector<4>(inputs, [&](Value input) {
    return at.empty({lines.outer, op.getCount(), lines.inner},
                    getElementTypeOrSelf(input.getType()));
  });
}

Values SortLines::group(LoopWriter at, StringRef name,
                        function_ref<Values(LoopWriter, Values)> fill) const {
  SmallVector<Type> types;
  for (Value input : inputs)
    types.push_back(RankedTensorType::get({lines.outer, op.getCount(), lines.inner},
                                          getElementTypeOrSelf(input.getType())));
  auto group = rt::GroupOp::create(at.b, at.loc, types, name);
  OpBuilder b = OpBuilder::atBlockEnd(&group.getBody().emplaceBlock());
  LoopWriter inner{b, at.loc};
  rt::YieldOp::create(b, at.loc, fill(inner, empties(inner)));
  return Values(group.getResults());
}
