//===- Passes.td - Running a program from tessera-opt ------*- tablegen -*-===//
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
    Executes the functions of the global view on one device by the reference interpreter, or those of the local view, if
    the module has any, on all their devices. Does not change the module. Prints each result as a line on standard output:

    ```
    @main
    result0 : tensor<2x3xf32> = [[1, 2, 3], [4, 5, 6]]
    ```

    Fails if a check op fails or an op has no result.
  }];
  let options = [
    Option<"function", "function", "std::string", "", "The function to run; empty: all public functions">,
    Option<"seed", "seed", "uint64_t", "0", "Key of the random inputs">,
    Option<"poison", "poison", "std::string", "\"nan\"",
           "Value of undefined elements: nan, high, low or zero">,
    Option<"elements", "elements", "int64_t", "64", "Results with more elements are abbreviated">,
  ];
}

#endif // TESSERA_INTERPRETER_PASSES
