//===- SortWords.h - The words by which elements are sorted -----*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each element is sorted by one or several 64-bit words, compared lexicographically
// as signed integers: the keys in order, and the element's index, which makes the
// sort stable and all elements distinct. A last key of at most 32 bits shares its
// word with the index:
//
//   one f32 key      key << 32 | index
//   an f64 key       key, index
//   two i32 keys     key 0, key 1 << 32 | index
//
// The operands are then read at the indices.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_CODEGEN_KERNELS_SORTWORDS_H
#define TESSERA_LIB_CODEGEN_KERNELS_SORTWORDS_H

#include "LowerExt.h"

namespace tessera::codegen {

class SortWords {
public:
  using Values = LoopWriter::Values;
  explicit SortWords(ext::SortOp op);

  /// An element as an integer of its width, at least 32 bits, in the order of the elements.
  mlir::Value keyOf(LoopWriter at, mlir::Value element) const;
  /// The same, sign-extended to a word.
  mlir::Value keyWord(LoopWriter at, mlir::Value element) const;
  /// The element of a key; of zeros the positive one, of NaN any.
  mlir::Value elementOf(LoopWriter at, mlir::Value key, mlir::Type type) const;
  /// The words of an element with these keys at index `place` of its line.
  Values of(LoopWriter at, mlir::ValueRange keys, mlir::Value place) const;
  /// The words of an element with these words of its keys.
  Values withIndex(LoopWriter at, Values words, mlir::Value place) const;
  /// Words that come after those of every element.
  Values greatest(LoopWriter at) const;
  /// Of words or of vectors of words.
  mlir::Value comesBefore(LoopWriter at, llvm::ArrayRef<mlir::Value> x,
                          llvm::ArrayRef<mlir::Value> y) const;
  mlir::Value indexOf(LoopWriter at, llvm::ArrayRef<mlir::Value> words) const;

  mlir::Type word; ///< i64
  bool isPacked;   ///< the last key and the index are one word
  size_t numWords;

private:
  bool descending;
};

/// The lines of a sort on CPUs.
struct SortLines : SortWords {
  SortLines(mlir::OpBuilder &b, ext::SortOp op);

  Values wordsAt(LoopWriter at, mlir::Value o, mlir::Value i, mlir::Value j) const;
  /// Whether a buffer of candidates is profitable.
  bool isSelection() const { return op.getCount() * 4 <= lines.extent; }
  /// The number of bisections of so many elements.
  static int64_t passesFor(int64_t extent) {
    return llvm::Log2_64_Ceil(std::max<int64_t>(extent, 1));
  }
  /// Empty tensors for the sorted operands, as `outer` x `count` x `inner` elements each.
  Values empties(LoopWriter at) const;
  /// A group of them. `fill` gets the empty tensors and returns the sorted operands.
  Values group(LoopWriter at, llvm::StringRef name,
               llvm::function_ref<Values(LoopWriter, Values)> fill) const;

  mutable ext::SortOp op; ///< accessors of ops are not const
  Lines lines;
  Values inputs;
};

/// Sorts lines in vectors (SortVectors.cpp), or fails where other ways are faster.
mlir::FailureOr<LoopWriter::Values> sortInVectors(LoopWriter write, const SortLines &words);

} // namespace tessera::codegen

#endif // TESSERA_LIB_CODEGEN_KERNELS_SORTWORDS_H
