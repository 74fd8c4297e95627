//===- ContractBlock.h - A block of a contraction ---------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What Contract.cpp and ContractPack.cpp share.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_EXECUTION_CONTRACTBLOCK_H
#define TESSERA_LIB_RUNTIME_EXECUTION_CONTRACTBLOCK_H

#include "tessera/Runtime/Execution/Contract.h"

namespace tessera::runtime {

/// Rows and columns of one batch.
struct Contraction::Block {
  const char *a, *b;
  float *c;
  int64_t rowBegin, rowEnd, columnBegin, columnEnd;
};

struct Half {
  uint16_t bits;
};
struct Bfloat {
  uint16_t bits;
};
inline float widened(const float *from) {
  return *from;
}
inline float widened(const Half *from) {
  return halfToFloat(from->bits);
}
inline float widened(const Bfloat *from) {
  return bfloatToFloat(from->bits);
}

/// Calls with a null pointer of the element type.
template <typename Function> void withElement(DType dtype, Function function) {
  if (dtype == DType::bf16)
    function(static_cast<const Bfloat *>(nullptr));
  else if (dtype == DType::f16)
    function(static_cast<const Half *>(nullptr));
  else
    function(static_cast<const float *>(nullptr));
}

} // namespace tessera::runtime

#endif // TESSERA_LIB_RUNTIME_EXECUTION_CONTRACTBLOCK_H
