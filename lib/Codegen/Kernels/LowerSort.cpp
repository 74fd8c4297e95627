//===- LowerSort.cpp - Sorts as loops over lines --------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// SortWords.h has the words by which elements are sorted. Most sorts are SortVectors.cpp's.
//
// On one core each line is sorted between two buffers: by digits of the keys from the last one (an
// LSD radix sort, which is stable: the index has no digits), or by bottom-up merges if there are
// too many digits. In a short line each element's place is the number of elements before it. A
// top-k with small k keeps a buffer of 2 k candidates: it collects elements before the current
// k-th, and is sorted when full, at most every k elements. Blocks of a long line without such an
// element are skipped. Lines are tasks. GPUs have kernels of their own (CUDA/ScanSort/GpuSort.cpp).
//
//===----------------------------------------------------------------------===//

#include "KernelStages.h"
#include "SortWords.h"

#include "tessera/Codegen/Kernels/TaskLoop.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include "llvm/Support/MathExtras.h"

#include <limits>

using namespace mlir;
using namespace tessera;
using namespace tessera::codegen;
using Values = LoopWriter::Values;

/// Elements of a line that are compared with the k-th before any of them is collected.
static constexpr int64_t kScreened = 64;

namespace {
class SortWriter : public SortLines {
public:
  SortWriter(OpBuilder &b, ext::SortOp op) : SortLines(b, op) {
    if (!isSelection() && !hasFewElements())
      chooseDigits();
  }
  /// Sorts line by line into the tensors of `state`, in tasks or in turn.
  Values sortLines(LoopWriter at, Values state, bool inTasks);

private:
  /// `bits` of a word by which a pass sorts. The highest of a signed key are inverted in its first
  /// bit.
  struct Digit {
    size_t word;
    int64_t shift, bits;
    bool isSigned;
  };

  Value isAnyBefore(LoopWriter at, Value o, Value begin, Value j, ArrayRef<Value> kth) const;
  // One line on one core: a buffer of two halves, each with the words of `extent` elements.
  Values readWords(LoopWriter at, Value buffer, Value half, Value i) const;
  Value writeWords(LoopWriter at, Value buffer, Value half, Value i, ArrayRef<Value> words) const;
  Value mergePass(LoopWriter at, Value buffer, Value from, Value into, Value width,
                  int64_t extent) const;
  Value mergeSort(LoopWriter at, Value buffer, int64_t extent, Value passes) const;
  /// Writes the words of one line to the first half.
  Value writeLine(LoopWriter at, Value o, Value j, Value buffer) const;
  Value mergedLine(LoopWriter at, Value o, Value j, Value buffer) const;
  Value countedLine(LoopWriter at, Value o, Value j, Value buffer) const;
  void chooseDigits();
  Value ofPass(LoopWriter at, Value number, llvm::function_ref<int64_t(const Digit &)> get) const;
  /// Sorts by digits; the state is the buffer and the counters.
  Values radixSortedLine(LoopWriter at, Value o, Value j, Values state) const;
  Value firstOfLine(LoopWriter at, Value o, Value j, Value buffer) const;
  /// The operands in order, from the sorted words of one line in a half of the buffer.
  Values placeLine(LoopWriter at, Value o, Value j, Value buffer, int64_t half,
                   Values results) const;

  /// Whether comparing all pairs, in vectors, is cheaper than several passes.
  bool hasFewElements() const { return lines.extent <= 128; }
  /// A number of passes that leaves the elements in the first half.
  static int64_t evenPassesFor(int64_t extent) {
    return 2 * llvm::divideCeil(passesFor(extent), 2);
  }

  SmallVector<Digit> digits; ///< the last first; empty: merges
  int64_t counters = 0;      ///< of each digit
};
} // namespace

//===----------------------------------------------------------------------===//
// Merges
//===----------------------------------------------------------------------===//

Values SortWriter::readWords(LoopWriter at, Value buffer, Value half, Value i) const {
  Values words;
  for (size_t number = 0; number < numWords; ++number)
    words.push_back(at.read(buffer, {half, at.index(number), i}));
  return words;
}

Value SortWriter::writeWords(LoopWriter at, Value buffer, Value half, Value i,
                             ArrayRef<Value> words) const {
  for (auto [number, element] : llvm::enumerate(words))
    buffer = at.write(buffer, {half, at.index(number), i}, element);
  return buffer;
}

/// Merges neighboring runs of `width` elements.
Value SortWriter::mergePass(LoopWriter at, Value buffer, Value from, Value into, Value width,
                            int64_t extent) const {
  Value end = at.index(extent), last = at.index(extent - 1), one = at.index(1);
  Value zero = at.index(0), both = at.add(width, width);
  return at.loop(zero, end, both, buffer, [&](LoopWriter outer, Value begin, Values state) {
    Value middle = outer.min(outer.add(begin, width), end);
    Value stop = outer.min(outer.add(begin, both), end);
    state.push_back(begin);
    state.push_back(middle);
    state = outer.loop(begin, stop, one, state, [&](LoopWriter inner, Value to, Values state) {
      Value left = state[1], right = state[2];
      Values x = readWords(inner, state[0], from, inner.min(left, last));
      Values y = readWords(inner, state[0], from, inner.min(right, last));
      Type boolean = inner.b.getI1Type();
      Value isLess = comesBefore(inner, x, y);
      Value takesLeft = inner.select(inner.less(right, stop), isLess, inner.constant(boolean, 1));
      takesLeft = inner.select(inner.less(left, middle), takesLeft, inner.constant(boolean, 0));
      Values words;
      for (auto [a, b] : llvm::zip(x, y))
        words.push_back(inner.select(takesLeft, a, b));
      Value step = inner.select(takesLeft, one, zero);
      return Values{writeWords(inner, state[0], into, to, words), inner.add(left, step),
                    inner.add(right, inner.sub(one, step))};
    });
    state.resize(1);
    return state;
  })[0];
}

/// Sorts the elements of the first half into half `passes` & 1. Without a pass the buffer is
/// unchanged.
Value SortWriter::mergeSort(LoopWriter at, Value buffer, int64_t extent, Value passes) const {
  return at.loop(at.index(0), passes, at.index(1), buffer,
                 [&](LoopWriter inner, Value pass, Values state) {
                   Value width = arith::ShLIOp::create(inner.b, inner.loc, inner.index(1), pass);
                   Value from = arith::AndIOp::create(inner.b, inner.loc, pass, inner.index(1));
                   Value into = inner.sub(inner.index(1), from);
                   return Values{mergePass(inner, state[0], from, into, width, extent)};
                 })[0];
}

Value SortWriter::writeLine(LoopWriter at, Value o, Value j, Value buffer) const {
  Value zero = at.index(0);
  return at.loop(zero, at.index(lines.extent), at.index(1), buffer,
                 [&](LoopWriter inner, Value i, Values state) {
                   return Values{writeWords(inner, state[0], zero, i, wordsAt(inner, o, i, j))};
                 })[0];
}

Value SortWriter::mergedLine(LoopWriter at, Value o, Value j, Value buffer) const {
  buffer = writeLine(at, o, j, buffer);
  return mergeSort(at, buffer, lines.extent, at.index(passesFor(lines.extent)));
}

/// Sorts the elements of the first half into the second by all comparisons of pairs.
Value SortWriter::countedLine(LoopWriter at, Value o, Value j, Value buffer) const {
  Value zero = at.index(0), one = at.index(1);
  int64_t extent = lines.extent;
  buffer = writeLine(at, o, j, buffer);
  OpBuilder &b = at.b;
  Values all;
  AffineExpr mine = b.getAffineDimExpr(0), other = b.getAffineDimExpr(1);
  SmallVector<AffineMap> maps;
  auto type = RankedTensorType::get({extent}, word);
  for (AffineExpr of : {mine, other})
    for (size_t number = 0; number < numWords; ++number) {
      SmallVector<OpFoldResult> from = getAsIndexOpFoldResult(b.getContext(),
                                                              {0, static_cast<int64_t>(number), 0}),
                                sizes = getAsIndexOpFoldResult(b.getContext(), {1, 1, extent}),
                                steps = getAsIndexOpFoldResult(b.getContext(), {1, 1, 1});
      all.push_back(tensor::ExtractSliceOp::create(b, at.loc, type, buffer, from, sizes, steps));
      maps.push_back(AffineMap::get(2, 0, of));
    }
  maps.push_back(maps.front());
  Value none = linalg::FillOp::create(b, at.loc, at.constant(word, 0), at.empty({extent}, word))
                   .getResult(0);
  auto places =
      linalg::GenericOp::create(b, at.loc, TypeRange(type), all, none, maps,
                                {utils::IteratorType::parallel, utils::IteratorType::reduction},
                                [&](OpBuilder &inner, Location loc, ValueRange arguments) {
                                  Values own(arguments.take_front(numWords));
                                  Values others(arguments.slice(numWords, numWords));
                                  Value before = comesBefore({inner, loc}, others, own);
                                  Value more = arith::ExtUIOp::create(inner, loc, word, before);
                                  Value sum =
                                      arith::AddIOp::create(inner, loc, arguments.back(), more);
                                  linalg::YieldOp::create(inner, loc, sum);
                                });
  return at.loop(zero, at.index(extent), one, buffer, [&](LoopWriter inner, Value i, Values state) {
    Value place = inner.read(places.getResult(0), i);
    place = arith::IndexCastOp::create(inner.b, inner.loc, inner.b.getIndexType(), place);
    Values words = readWords(inner, state[0], zero, i);
    return Values{writeWords(inner, state[0], one, place, words)};
  })[0];
}

//===----------------------------------------------------------------------===//
// Digits
//===----------------------------------------------------------------------===//

/// Digits of the bits in which keys differ, if passes over them are fewer than merges.
void SortWriter::chooseDigits() {
  int64_t width = lines.extent < 4096 ? 8 : 11;
  for (size_t key = op.getKeys(); key-- > 0;) {
    Type type = getElementTypeOrSelf(inputs[key].getType());
    int64_t bits = type.isIndex() ? 64 : type.getIntOrFloatBitWidth(), low = 0;
    if (auto real = dyn_cast<FloatType>(type); real && bits < 32) {
      low = 24 - real.getFPMantissaWidth(); // zeros of the f32
      bits = 32 - low;
    }
    bool isSigned = !type.isInteger(1);
    if (key + 1 == op.getKeys() && isPacked)
      low += 32;
    for (int64_t done = 0; done < bits; done += width) {
      int64_t own = std::min(width, bits - done);
      digits.push_back({key, low + done, own, isSigned && done + own == bits});
    }
  }
  counters = int64_t(1) << width;
  if (static_cast<int64_t>(digits.size()) > 2 * passesFor(lines.extent))
    digits.clear();
}

/// The value of a digit in its word, as an index. The numbers that describe the digit are constants
/// or values.
static Value digitOf(LoopWriter at, Value word, Value shift, Value mask, Value inverted) {
  OpBuilder &b = at.b;
  Value value = arith::ShRUIOp::create(b, at.loc, word, shift);
  value = arith::AndIOp::create(b, at.loc, value, mask);
  value = arith::XOrIOp::create(b, at.loc, value, inverted);
  return arith::IndexCastOp::create(b, at.loc, b.getIndexType(), value);
}

/// What is constant for one digit, chosen by the number of the pass.
Value SortWriter::ofPass(LoopWriter at, Value number,
                         function_ref<int64_t(const Digit &)> get) const {
  Value found = at.constant(word, get(digits.back()));
  for (size_t other = digits.size() - 1; other-- > 0;) {
    Value isOther = arith::CmpIOp::create(at.b, at.loc, arith::CmpIPredicate::eq, number,
                                          at.index(static_cast<int64_t>(other)));
    found = at.select(isOther, at.constant(word, get(digits[other])), found);
  }
  return found;
}

Values SortWriter::radixSortedLine(LoopWriter at, Value o, Value j, Values state) const {
  Value zero = at.index(0), one = at.index(1), values = at.index(counters);
  Value passes = at.index(static_cast<int64_t>(digits.size()));
  auto mask = [](const Digit &digit) { return (int64_t(1) << digit.bits) - 1; };
  auto inverted = [](const Digit &digit) {
    return digit.isSigned ? int64_t(1) << (digit.bits - 1) : 0;
  };
  state[1] = at.loop(zero, passes, one, state[1], [&](LoopWriter outer, Value pass, Values state) {
    return outer.loop(zero, values, one, state, [&](LoopWriter inner, Value value, Values state) {
      return Values{inner.write(state[0], {pass, value}, zero)};
    });
  })[0];
  // All digits are counted while the words are written.
  state = at.loop(
      zero, at.index(lines.extent), one, state, [&](LoopWriter inner, Value i, Values state) {
        Values words = wordsAt(inner, o, i, j);
        state[0] = writeWords(inner, state[0], zero, i, words);
        for (auto [pass, digit] : llvm::enumerate(digits)) {
          Value value =
              digitOf(inner, words[digit.word], inner.constant(word, digit.shift),
                      inner.constant(word, mask(digit)), inner.constant(word, inverted(digit)));
          Values place{inner.index(static_cast<int64_t>(pass)), value};
          Value count = inner.add(inner.read(state[1], place), one);
          state[1] = inner.write(state[1], place, count);
        }
        return state;
      });
  // A loop, not its passes one by one: the analysis of buffers takes exponential time in a
  // sequence.
  return at.loop(zero, passes, one, state, [&](LoopWriter outer, Value pass, Values state) {
    Value shift = ofPass(outer, pass, [](const Digit &digit) { return digit.shift; });
    Value ones = ofPass(outer, pass, mask), sign = ofPass(outer, pass, inverted);
    Value key =
        ofPass(outer, pass, [](const Digit &digit) { return static_cast<int64_t>(digit.word); });
    key = arith::IndexCastOp::create(outer.b, outer.loc, outer.b.getIndexType(), key);
    Value from = arith::AndIOp::create(outer.b, outer.loc, pass, one), into = outer.sub(one, from);
    // The first place of each value.
    state[1] = outer.loop(
        zero, values, one, {state[1], zero}, [&](LoopWriter inner, Value value, Values state) {
          Value count = inner.read(state[0], {pass, value});
          return Values{inner.write(state[0], {pass, value}, state[1]), inner.add(state[1], count)};
        })[0];
    return outer.loop(
        zero, outer.index(lines.extent), one, state, [&](LoopWriter inner, Value i, Values state) {
          Values words = readWords(inner, state[0], from, i);
          Value deciding = numWords == 1 ? words[0] : inner.read(state[0], {from, key, i});
          Value value = digitOf(inner, deciding, shift, ones, sign);
          Value place = inner.read(state[1], {pass, value});
          return Values{writeWords(inner, state[0], into, place, words),
                        inner.write(state[1], {pass, value}, inner.add(place, one))};
        });
  });
}

//===----------------------------------------------------------------------===//
// Lines
//===----------------------------------------------------------------------===//

/// Whether one of kScreened elements of a line, from `begin` on, is before the k-th so far, which
/// is before all of them in the line. So of equal keys the k-th is first, and keys decide if there
/// is one of at most 32 bits, which are compared in vectors.
Value SortWriter::isAnyBefore(LoopWriter at, Value o, Value begin, Value j,
                              ArrayRef<Value> kth) const {
  OpBuilder &b = at.b;
  if (!isPacked || numWords > 1) {
    Value isAny = at.constant(b.getI1Type(), 0);
    for (int64_t i = 0; i < kScreened; ++i) {
      Value isBefore = comesBefore(at, wordsAt(at, o, at.add(begin, at.index(i)), j), kth);
      isAny = arith::OrIOp::create(b, at.loc, isAny, isBefore);
    }
    return isAny;
  }
  Type i32 = b.getI32Type();
  Value high = arith::ShRSIOp::create(b, at.loc, kth[0], at.constant(word, 32));
  Value key = arith::TruncIOp::create(b, at.loc, i32, high);
  OpFoldResult one = b.getIndexAttr(1);
  auto block = RankedTensorType::get({kScreened}, getElementTypeOrSelf(inputs[0].getType()));
  Value elements = tensor::ExtractSliceOp::create(
      b, at.loc, block, inputs[0], ArrayRef<OpFoldResult>{o, begin, j},
      ArrayRef<OpFoldResult>{one, b.getIndexAttr(kScreened), one},
      ArrayRef<OpFoldResult>{one, one, one});
  Value none =
      linalg::FillOp::create(b, at.loc, at.constant(i32, 0), at.empty({}, i32)).getResult(0);
  SmallVector<AffineMap> maps = {b.getDimIdentityMap(), AffineMap::get(1, 0, b.getContext())};
  auto count = linalg::GenericOp::create(
      b, at.loc, TypeRange(none.getType()), elements, none, maps, {utils::IteratorType::reduction},
      [&](OpBuilder &body, Location loc, ValueRange arguments) {
        LoopWriter inner{body, loc};
        Value isBefore = inner.less(keyOf(inner, arguments[0]), key);
        Value more = arith::ExtUIOp::create(body, loc, i32, isBefore);
        Value sum = arith::AddIOp::create(body, loc, arguments[1], more);
        linalg::YieldOp::create(body, loc, sum);
      });
  return at.less(at.constant(i32, 0), at.read(count.getResult(0), {}));
}

Value SortWriter::firstOfLine(LoopWriter at, Value o, Value j, Value buffer) const {
  int64_t count = op.getCount(), extent = 2 * count;
  Value zero = at.index(0), one = at.index(1), full = at.index(extent);
  Values state{buffer, zero}; // and the number of candidates
  llvm::append_range(state, greatest(at));
  auto collect = [&](LoopWriter inner, Value i, Values state) {
    ArrayRef<Value> threshold = ArrayRef<Value>(state).drop_front(2);
    Value size = state[1];
    Values words = wordsAt(inner, o, i, j);
    Value next = writeWords(inner, state[0], zero, size, words);
    Value isTaken = comesBefore(inner, words, threshold);
    size = inner.add(size, inner.select(isTaken, one, zero));
    Value isFull = arith::CmpIOp::create(inner.b, inner.loc, arith::CmpIPredicate::eq, size, full);
    Value passes = inner.select(isFull, inner.index(evenPassesFor(extent)), zero);
    next = mergeSort(inner, next, extent, passes);
    Values kth = readWords(inner, next, zero, inner.index(count - 1));
    Values results{next, inner.select(isFull, inner.index(count), size)};
    for (auto [old, now] : llvm::zip(threshold, kth))
      results.push_back(inner.select(isFull, now, old));
    return results;
  };
  // The first elements fill the buffer. Of those after them, few are before the k-th so far in a
  // long line: most blocks are only compared.
  const int64_t first = std::min(extent, lines.extent), rest = lines.extent - first;
  const int64_t screened = rest < kScreened * count ? 0 : rest / kScreened * kScreened;
  state = at.loop(zero, at.index(first), one, state, collect);
  auto screen = [&](LoopWriter outer, Value begin, Values state) {
    Value isAny = isAnyBefore(outer, o, begin, j, ArrayRef<Value>(state).drop_front(2));
    Value end = outer.add(begin, outer.select(isAny, outer.index(kScreened), zero));
    return outer.loop(begin, end, one, state, collect);
  };
  state = at.loop(at.index(first), at.index(first + screened), at.index(kScreened), state, screen);
  state = at.loop(at.index(first + screened), at.index(lines.extent), one, state, collect);
  // The rest of the buffer sorts last.
  buffer = at.loop(state[1], full, one, state[0], [&](LoopWriter inner, Value i, Values state) {
    return Values{writeWords(inner, state[0], zero, i, greatest(inner))};
  })[0];
  return mergeSort(at, buffer, extent, at.index(evenPassesFor(extent)));
}

Values SortWriter::placeLine(LoopWriter at, Value o, Value j, Value buffer, int64_t half,
                             Values results) const {
  Value from = at.index(half);
  return at.loop(at.index(0), at.index(op.getCount()), at.index(1), results,
                 [&](LoopWriter inner, Value i, Values state) {
                   Value place = indexOf(inner, readWords(inner, buffer, from, i));
                   for (auto [input, result] : llvm::zip(inputs, state))
                     result = inner.write(result, {o, i, j}, inner.read(input, {o, place, j}));
                   return state;
                 });
}

Values SortWriter::sortLines(LoopWriter at, Values state, bool inTasks) {
  size_t count = state.size();
  int64_t extent = isSelection() ? 2 * op.getCount() : lines.extent;
  int64_t passes = hasFewElements() ? 1
                   : digits.empty() ? passesFor(extent)
                                    : static_cast<int64_t>(digits.size());
  int64_t half = isSelection() ? 0 : passes % 2;
  state.push_back(at.empty({2, static_cast<int64_t>(numWords), extent}, word));
  if (!digits.empty())
    state.push_back(at.empty({static_cast<int64_t>(digits.size()), counters}, at.b.getIndexType()));
  Value zero = at.index(0), one = at.index(1), inside = at.index(lines.inner);
  // One loop over all lines, divided among workers: each call has its own buffer.
  state = at.loop(zero, at.index(lines.outer * lines.inner), one, state,
                  [&](LoopWriter inner, Value line, Values state) {
                    Value o = inner.b.createOrFold<arith::DivUIOp>(inner.loc, line, inside);
                    Value j = inner.b.createOrFold<arith::RemUIOp>(inner.loc, line, inside);
                    Values memory(ArrayRef<Value>(state).drop_front(count));
                    state.truncate(count);
                    if (isSelection())
                      memory[0] = firstOfLine(inner, o, j, memory[0]);
                    else if (hasFewElements())
                      memory[0] = countedLine(inner, o, j, memory[0]);
                    else if (digits.empty())
                      memory[0] = mergedLine(inner, o, j, memory[0]);
                    else
                      memory = radixSortedLine(inner, o, j, memory);
                    Values next = placeLine(inner, o, j, memory[0], half, state);
                    llvm::append_range(next, memory);
                    return next;
                  });
  if (inTasks && lines.outer * lines.inner > 1)
    state[0].getDefiningOp()->setAttr(kTaskLoopAttr, at.b.getUnitAttr());
  state.truncate(count);
  return state;
}

static void replace(ext::SortOp op, OpBuilder &b, ArrayRef<Value> results) {
  for (auto [result, value] : llvm::zip(op.getResults(), results))
    result.replaceAllUsesWith(Lines::expand(b, op.getLoc(), value,
                                            cast<RankedTensorType>(result.getType()), op.getDim()));
}

void codegen::lowerSort(OpBuilder &b, ext::SortOp op) {
  SortWriter writer(b, op);
  LoopWriter at{b, op.getLoc()};
  FailureOr<Values> results = sortInVectors(at, writer);
  if (failed(results))
    results = writer.group(at, writer.isSelection() ? "top_k" : "sort",
                           [&](LoopWriter inner, Values empties) {
                             return writer.sortLines(inner, std::move(empties), /*inTasks=*/true);
                           });
  replace(op, b, *results);
}

void codegen::lowerSorts(func::FuncOp kernel) {
  SmallVector<ext::SortOp> ops;
  kernel.walk([&](ext::SortOp op) { ops.push_back(op); });
  for (ext::SortOp op : ops) {
    OpBuilder b(op);
    SortWriter writer(b, op);
    LoopWriter at{b, op.getLoc()};
    // Not tasks: each would also copy the results to the kernel's destinations.
    replace(op, b, writer.sortLines(at, writer.empties(at), /*inTasks=*/false));
    op->erase();
  }
}
