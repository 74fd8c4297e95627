//===- Check.cpp - Assertions on values inside a program ------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Dialect/Check/Check.h"

using namespace mlir;
using namespace tessera::check;

#include "tessera/Dialect/Check/CheckDialect.cpp.inc"

#define GET_OP_CLASSES
#include "tessera/Dialect/Check/CheckOps.cpp.inc"

void CheckDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "tessera/Dialect/Check/CheckOps.cpp.inc"
      >();
}
