//===- Passes.td - Running a program from tessera-opt --------*- tablegen -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_INTERPRETER_PASSES
#define TESSERA_INTERPRETER_PASSES

include "mlir/Pass/PassBase.td"

def Interpret : Pass<"interpret", "::mlir::ModuleOp"> {
  let summary = "Run the program on random inputs and print its results";
  let description = [{
    Runs the functions of the global view on one device, or those of the local view on all their devices when the
    module has any, by the reference interpreter, and changes nothing. Each result is a line on the standard output:

    ```
    @main
    result0 : tensor<2x3xf32> = [[1, 2, 3], [4, 5, 6]]
    ```

    Fails when a check op does not hold or an op has no result.
  }];
  let options = [
    Option<"function", "function", "std::string", "", "The function to run; all public ones when empty">,
    Option<"seed", "seed", "uint64_t", "0", "Key of the random inputs">,
    Option<"poison", "poison", "std::string", "\"nan\"",
           "What undefined elements hold: nan, high, low or zero">,
    Option<"elements", "elements", "int64_t", "64", "Results of more elements are not printed whole">,
  ];
}

#endif // TESSERA_INTERPRETER_PASSES
