//===- Passes.td - Derivatives -------------------------------*- tablegen -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TRANSFORMS_AUTODIFF_PASSES
#define TESSERA_TRANSFORMS_AUTODIFF_PASSES

include "mlir/Pass/PassBase.td"

def DistAutodiff : Pass<"dist-autodiff", "::mlir::ModuleOp"> {
  let summary = "Write the function of value and gradients of a function (reverse mode)";
  let description = [{
    From `@loss(%p: tensor<4xf32> {dist.name = "p"}, %x: tensor<8x4xf32>) -> tensor<f32>`,
    `--dist-autodiff="function=loss wrt=p"` writes `@loss_grad(%p, %x) -> (tensor<f32>, tensor<4xf32>)`: the results
    of the function, then one gradient for each name in `wrt`, in that order and of the argument's type.

    The pass works on the global view, before `dist-normalize`. Annotations of arguments and results are copied; where
    gradients lie is left open. A declaration `func.func private @loss_grad(…) -> (…)` of the right type is filled, so
    that other functions of the file can call it. The function differentiated stays, unless it is private and nobody
    calls it. What has no derivative is an error at the op.
  }];
  let options = [
    Option<"function", "function", "std::string", "\"main\"", "The function to differentiate">,
    ListOption<"wrt", "wrt", "std::string",
               "Arguments by name or index; all of floating-point tensors when empty">,
    ListOption<"of", "of", "std::string",
               "Results by name or index; the first when empty, with seed=argument all of floats">,
    Option<"name", "name", "std::string", "", "Name of the new function; FUNCTION_grad when empty">,
    Option<"value", "value", "bool", "true", "Whether the new function also returns the old results">,
    Option<"seed", "seed", "std::string", "\"one\"",
           "one: the results differentiated are scalars, their cotangents 1; argument: cotangents are further arguments">,
    Option<"recomputedScores", "recomputed-scores", "int64_t", "33554432",
           "Least bytes of an attention's scores that the derivative computes again; smaller ones are kept">,
  ];
  let dependentDialects = ["::tessera::dist::DistDialect", "::tessera::ext::ExtDialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect", "::mlir::arith::ArithDialect",
                           "::mlir::math::MathDialect", "::mlir::scf::SCFDialect"];
}

def DistRecognizeAttentionBackward : Pass<"dist-recognize-attention-backward", "::mlir::ModuleOp"> {
  let summary = "Write attention and its derivative as ops where a program arrives differentiated";
  let description = [{
    Programs of JAX and PyTorch arrive with their gradients, which read the shares of an attention that the forward
    computation keeps. Where the products that read what comes from the scores are the derivatives by query, key and
    value, the forward computation becomes an `ext.attention` that returns its log-sum-exp, and its derivative an
    `ext.attention_backward`, which computes the scores again: what is kept is linear in the sequence.

    The forward computation is found as `dist-recognize-attention` finds it. Which derivative a product is, is decided by
    values: the formula of what it reads is computed for a few keys of random rows, and compared with the shares and with
    the derivative by the product of query and key. So the spelling does not matter. Where something else reads the
    scores, the shares or their derivative, nothing changes.
  }];
  let options = [
    Option<"recomputedScores", "recomputed-scores", "int64_t", "33554432",
           "Least bytes of an attention's scores that the derivative computes again; smaller ones are kept">,
  ];
  let dependentDialects = ["::tessera::dist::DistDialect", "::tessera::ext::ExtDialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect", "::mlir::arith::ArithDialect",
                           "::mlir::math::MathDialect"];
}

#endif // TESSERA_TRANSFORMS_AUTODIFF_PASSES
