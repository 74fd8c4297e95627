//===- SortWords.h - Words by which elements are sorted ---------*- C++ -*-===//
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

#ifndef TESSERA_LIB_CODEGEN_SORTWORDS_H
#define TESSERA_LIB_CODEGEN_SORTWORDS_H

#include "LowerExt.h"

namespace tessera::codegen {

struct SortWords {
  using Values = LoopWriter::Values;

  SortWords(mlir::OpBuilder &b, ext::SortOp op);

  /// An element as an integer of its width, at least 32 bits, in the order of the elements.
  mlir::Value keyOf(LoopWriter at, mlir::Value element) const;
  mlir::Value keyWord(LoopWriter at, mlir::Value element) const;
  /// The element of a key; of zeros the positive one, of NaN any.
  mlir::Value elementOf(LoopWriter at, mlir::Value key, mlir::Type type) const;
  /// The words of an element with the key words `words` and the index `i`.
  Values withIndex(LoopWriter at, Values words, mlir::Value i) const;
  Values wordsAt(LoopWriter at, mlir::Value o, mlir::Value i, mlir::Value j) const;
  Values greatest(LoopWriter at) const;
  /// Of words or of vectors of words.
  mlir::Value comesBefore(LoopWriter at, llvm::ArrayRef<mlir::Value> x,
                          llvm::ArrayRef<mlir::Value> y) const;
  mlir::Value indexOf(LoopWriter at, llvm::ArrayRef<mlir::Value> words) const;

  /// Whether a buffer of candidates is profitable.
  bool isSelection() const { return op.getCount() * 4 <= lines.extent; }
  /// The number of bisections of so many elements.
  static int64_t passesFor(int64_t extent) {
    return llvm::Log2_64_Ceil(std::max<int64_t>(extent, 1));
  }
  /// A group for the sorted operands, as `outer` x `count` x `inner` elements each. `fill` gets
  /// the empty results and returns the sorted ones.
  Values group(LoopWriter at, llvm::StringRef name,
               llvm::function_ref<Values(LoopWriter, Values)> fill) const;

  mutable ext::SortOp op; ///< accessors of ops are not const
  Lines lines;
  mlir::Type word;
  Values inputs;
  bool isPacked;
  size_t numWords;
};

/// Sorts lines in vectors (SortVectors.cpp), or fails where other ways are faster.
mlir::FailureOr<LoopWriter::Values> sortInVectors(LoopWriter write, const SortWords &words);

} // namespace tessera::codegen

#endif // TESSERA_LIB_CODEGEN_SORTWORDS_H
