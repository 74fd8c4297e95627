//===- Passes.td - Derivatives -----------------------------*- tablegen -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TRANSFORMS_AUTODIFF_PASSES
#define TESSERA_TRANSFORMS_AUTODIFF_PASSES

include "mlir/Pass/PassBase.td"

def DistAutodiff : Pass<"dist-autodiff", "::mlir::ModuleOp"> {
  let summary = "Create a function that returns the value and gradients of a function (reverse mode)";
  let description = [{
    From `@loss(%p: tensor<4xf32> {dist.name = "p"}, %x: tensor<8x4xf32>) -> tensor<f32>`,
    `--dist-autodiff="function=loss wrt=p"` writes `@loss_grad(%p, %x) -> (tensor<f32>, tensor<4xf32>)`: the results
    of the function, then one gradient for each name in `wrt`, in that order and of the argument's type.

    The pass works on the global view, before `dist-normalize`. It copies the annotations of arguments and results; the
    shardings of gradients are left open. If the module declares `func.func private @loss_grad(…) -> (…)` of the right type,
    the pass defines that function, so that other functions of the file can call it. The differentiated function stays
    unless it is private and unused. Emits an error at an op without a derivative.
  }];
  let options = [
    Option<"function", "function", "std::string", "\"main\"", "The function to differentiate">,
    ListOption<"wrt", "wrt", "std::string",
               "Arguments by name or index; empty: all floating-point tensors">,
    ListOption<"of", "of", "std::string",
               "Results by name or index; empty: the first, with seed=argument all floating-point tensors">,
    Option<"name", "name", "std::string", "", "Name of the new function; empty: FUNCTION_grad">,
    Option<"value", "value", "bool", "true", "Whether the new function also returns the results of the function">,
    Option<"seed", "seed", "std::string", "\"one\"",
           "one: the differentiated results are scalars with cotangent 1; argument: cotangents are additional arguments">,
    Option<"recomputedScores", "recomputed-scores", "int64_t", "33554432",
           "Bytes of an attention's scores, in all iterations of a loop, from which the derivative rematerializes them; "
           "smaller ones are kept">,
  ];
  let dependentDialects = ["::tessera::dist::DistDialect", "::tessera::ext::ExtDialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect", "::mlir::arith::ArithDialect",
                           "::mlir::math::MathDialect", "::mlir::scf::SCFDialect"];
}

def DistRecognizeAttentionBackward : Pass<"dist-recognize-attention-backward", "::mlir::ModuleOp"> {
  let summary = "Raise attention and its derivative to ops in a differentiated program";
  let description = [{
    Programs from JAX and PyTorch contain their gradients, which read the softmax of an attention kept by the forward
    computation. If the products that depend on the scores are the derivatives with respect to query, key and value, the
    forward computation becomes an `ext.attention` that returns its log-sum-exp, and the derivative becomes an
    `ext.attention_backward`, which rematerializes the scores: the kept memory is linear in the sequence.

    The forward computation is found as in `dist-recognize-attention`. Values decide which derivative a product is: the
    pass evaluates the formula of its operand for a few keys of random rows, and compares it with the softmax and with the
    derivative with respect to the product of query and key. So the form of the program does not matter. If another op
    reads the scores, the softmax or their derivatives, nothing changes.

    What a loop over layers keeps for the loop of its derivative is first recomputed there from query and key, if it
    depends on the scores of an attention: then each of the loops has an attention of its own.
  }];
  let options = [
    Option<"recomputedScores", "recomputed-scores", "int64_t", "33554432",
           "Bytes of an attention's scores, in all iterations of a loop, from which the derivative rematerializes them; "
           "smaller ones are kept">,
  ];
  let dependentDialects = ["::tessera::dist::DistDialect", "::tessera::ext::ExtDialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect", "::mlir::arith::ArithDialect",
                           "::mlir::math::MathDialect"];
}

#endif // TESSERA_TRANSFORMS_AUTODIFF_PASSES
