//===- Check.td - Assertions on values inside a program ----*- tablegen -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_CHECK
#define TESSERA_CHECK

include "mlir/IR/OpBase.td"

def Check_Dialect : Dialect {
  let name = "check";
  let cppNamespace = "::tessera::check";
  let summary = "Assertions on values, for tests";
  let description = [{
    Ops by which a test program checks its own values. The interpreter executes them, in the global view on one
    device and in the local view on every device. They cannot be compiled.
  }];
}

class Check_Op<string mnemonic> : Op<Check_Dialect, mnemonic, [SameTypeOperands]> {
  let arguments = (ins AnyRankedTensor:$actual, AnyRankedTensor:$expected);
  let assemblyFormat = "$actual `,` $expected attr-dict `:` type($actual)";
}

def Check_ExpectCloseOp : Check_Op<"expect_close"> {
  let summary = "Asserts that two tensors are equal within the tolerance of their type";
  let description = "Integers must be equal; floats need |a-b| <= r max(|b|, rms b), with r = 1e-10, 1e-4, 2e-2 for f64, f32, 16 bits.";
}

def Check_ExpectEqOp : Check_Op<"expect_eq"> {
  let summary = "Asserts that two tensors are bitwise equal; NaN equals NaN";
}

#endif // TESSERA_CHECK
