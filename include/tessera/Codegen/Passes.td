//===- Passes.td - From the local view to steps ------------*- tablegen -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_CODEGEN_PASSES
#define TESSERA_CODEGEN_PASSES

include "mlir/Pass/PassBase.td"

class CodegenPass<string name, string operation> : Pass<name, operation> {
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::func::FuncDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::math::MathDialect", "::mlir::scf::SCFDialect",
    "::mlir::tensor::TensorDialect", "::mlir::vector::VectorDialect", "::tessera::dist::DistDialect",
    "::tessera::ext::ExtDialect", "::tessera::rt::RtDialect"];
}

def CodegenPrepare : CodegenPass<"codegen-prepare", "::mlir::func::FuncOp"> {
  let summary = "Rewrite the local view into forms that kernels, gemms and views can express";
  let description = [{
    After this pass, in every function of the local view:

    * Every value passed between steps is a tensor: scalar loop carries, coordinates (`dist.axis_index`), induction
      variables, bounds and conditions are rank-0 tensors, created by `tensor.from_elements` and read by
      `tensor.extract`. Scalar arithmetic between them belongs to its users.
    * Tensor computations are `linalg.generic`, contractions, windowed ops, `linalg.fill`, and slices. Transposes,
      broadcasts and reductions are generics; pads and concatenations are slices inserted into a buffer; gathers read
      elements in a generic.
    * The part of an argument that a device owns (`dist.slice`), if only kernels read it, is a `tensor.extract_slice` at
      the device's index. Not with `parallel`: GPU kernels load more at once where they know the alignment.
    * Generics read the source of a reshape that only adds dimensions of extent 1, so that a reduction that keeps its
      dimension and its readers can share a kernel.
    * Induction variables are of type index, and ops that no longer need shardings have none.
    * An `ext.scan` is a loop along its dimension, an `ext.sort` loops that sort each line, each in a separate group. With
      `parallel` a scan is parallel loop nests in logarithmically many steps, and a sort remains an op, which is a kernel.
  }];
  let options = [
    Option<"parallel", "parallel", "bool", /*default=*/"false", "Lower scans to parallel steps, keep sorts, and align the rows of products, for GPUs">,
  ];
}

def CodegenFormUpdates : CodegenPass<"codegen-form-updates", "::mlir::func::FuncOp"> {
  let summary = "Add products to the arguments that they update";
  let description = [{
    A step of gradient descent, `w + c * (a · b)` whose result feeds the argument `w`, becomes a contraction that starts from
    `w`, after the last other reader of `w`, with `a` or `b` scaled by the constant `c`. Then the gradient is
    not in memory. The gradient must have no other reader, and elements of 32 or 64 bits.
  }];
}

def CodegenFormPhases : CodegenPass<"codegen-form-phases", "::mlir::func::FuncOp"> {
  let summary = "Split convolutions of dilated tensors into one step per phase";
  let description = [{
    A transposed convolution, and the derivative of a convolution with stride s with respect to its input, multiply a
    dilated tensor, or a kernel padded to whole phases: most of their products have a zero factor. The results of each
    phase, whose positions are equal modulo s, become a separate `rt.contraction` over the taps that meet elements
    ("sub-pixel convolution"), which overwrites its elements of the result. Elements dropped by a slice of the result are
    not computed. The pass also splits products with one tap, so it runs before `codegen-form-gemms`.
  }];
  let options = [
    Option<"narrow", "narrow", "bool", /*default=*/"false", "Results of 16 bits as well, for GPUs">,
  ];
}

def CodegenFormGemms : CodegenPass<"codegen-form-gemms", "::mlir::func::FuncOp"> {
  let summary = "Rewrite contractions as matrix products";
  let description = [{
    A step `gemm` has leading dimensions, transpositions and one batch stride, so many layouts need no copy. The pass folds
    transpositions of operands and results, also across a reshape that only merges dimensions, into the contraction's
    indexing maps (`linalg.contract`) if the contraction remains a gemm. For a contraction that is not a gemm, it transposes
    the operand that does not fit.
  }];
}

def CodegenFormContractions : CodegenPass<"codegen-form-contractions", "::mlir::func::FuncOp"> {
  let summary = "Lower convolutions and their derivatives to steps";
  let description = [{
    A sum of products of two tensors that is not a gemm, since an operand is read in windows (`stride * i + dilation * k`),
    becomes an `rt.contraction` if it has enough rows, columns and products for the packed product of the runtime to be
    faster than a kernel. Copies that only flip, transpose, split, merge or slice an operand are folded into its strides.
    Depthwise convolutions and those with few channels remain kernels.
  }];
  let options = [
    Option<"narrow", "narrow", "bool", /*default=*/"false", "Results of 16 bits as well, for GPUs">,
  ];
}

def CodegenFormEpilogues : CodegenPass<"codegen-form-epilogues", "::mlir::func::FuncOp"> {
  let summary = "Fuse a bias and an activation into the preceding product";
  let description = [{
    Uses the epilogues of GPU libraries: replaces a contraction and the elementwise ops after it, which have no other
    readers, by an `rt.product`. Compared as polynomials in the product and in functions of it, the ops must compute
    product + bias, the product rounded to 16 bits, max(x, 0) of that, or gelu(x) of that as the libraries define it,
    x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))). The bias is a vector along the rows of the matrix that the gemm
    writes. The sum is rounded once. Only 16-bit results use the epilogue gelu, since the libraries do not document the
    accuracy of their tanh; the gelu defined by erf never does. Attention and its derivative write results that are only
    rounded to 16 bits as such.
  }];
}

def CodegenFuse : CodegenPass<"codegen-fuse", "::mlir::func::FuncOp"> {
  let summary = "Group ops that become one kernel";
  let description = [{
    Wraps ops that become neither a gemm, a view, a collective nor control flow into `rt.group`. Two ops share a group if
    some parallel loops of both visit the same rows: elementwise chains, broadcasts, reductions over rows with their
    consumers (softmax, layer norm), epilogues of windowed ops. Groups and other steps do not depend on each other in
    cycles.
  }];
  let options = [
    Option<"maxOps", "max-ops", "unsigned", /*default=*/"::tessera::dist::kMostFusedOps", "Most ops of one group">,
    Option<"fuse", "fuse", "bool", /*default=*/"true", "false: every op is a separate group">,
    Option<"sums", "sums", "bool", /*default=*/"false",
           "Sums over all rows join the group that visits these rows, for GPUs">,
    Option<"contractions", "contractions", "bool", /*default=*/"false",
           "Contractions with strided operands are kernels, not steps, for GPUs">,
    Option<"recompute", "recompute", "int64_t", /*default=*/"0",
           "Kernels rematerialize elementwise values of so many bytes instead of reading them; 0: none">,
    Option<"recomputedFunctions", "recomputed-functions", "unsigned", /*default=*/"4",
           "Most calls of functions, such as exp, that a rematerialized element may take">,
  ];
}

def CodegenOutlineKernels : CodegenPass<"codegen-outline-kernels", "::mlir::ModuleOp"> {
  let summary = "Outline groups as kernels, one for all equal groups";
  let description = [{
    A group becomes a private function in destination style (`kernel.reads`) and a call of it. Groups that are equal up to
    names and locations share one function, so repeated layers of a network are compiled once.
  }];
}

def CodegenJoinKernels : CodegenPass<"codegen-join-kernels", "::mlir::ModuleOp"> {
  let summary = "Run the kernel after a product on blocks of its result";
  let description = [{
    A kernel that reads the result of a gemm or of a contraction, and is the first to do so, becomes a kernel for a block of
    rows of the result (`rt.call_blocks`) if it runs in parallel along them: a bias, any chain of elementwise ops,
    reductions within rows, sums with tensors of the same rows, a step of an optimizer on a gradient. The executor calls it
    for each block as soon as the product has completed that, while it is in a cache. The kernel moves up to the product if
    no other op between them reads its operands or communicates. A kernel directly behind it stays if it reads another
    tensor of that size. Blocks have an eighth to eight times `bytes`.
  }];
  let options = [
    Option<"bytes", "bytes", "int64_t", /*default=*/"int64_t(128) << 10", "Preferred size of a block">,
  ];
}

def CodegenEmitRt : CodegenPass<"codegen-emit-rt", "::mlir::ModuleOp"> {
  let summary = "Plan the arena and emit the steps";
  let description = [{
    Replaces the functions of the local view by an `rt.program` with one part per function. Values get intervals of a
    static arena by their live ranges over all steps: a value that is live across a loop's back edge is live in the whole
    loop, an asynchronous collective uses its slots until the wait, and arguments are live in the whole program. Loop
    carries and results that feed an argument are computed in place if the old value is dead, otherwise copied at the end.
    A kernel that permits it overwrites an input that is not read again.

    A module is one program: the local functions of one original function (`dist.part_of`).
  }];
  let options = [
    Option<"reuse", "reuse", "bool", /*default=*/"true", "false: no two values share memory (for bisection)">,
    Option<"program", "function", "std::string", /*default=*/"",
           "Of several programs the one to emit, by its original function; the others are dropped">,
  ];
}

def CodegenWriteArtifact : CodegenPass<"codegen-write-artifact", "::mlir::ModuleOp"> {
  let summary = "Serialize an rt.program";
  let description = [{
    Compiles the kernels and writes the artifact to `output`. Without `output`, prints the program's JSON on standard
    output and compiles nothing.
  }];
  let options = [
    Option<"output", "output", "std::string", /*default=*/"", "The file; empty: print the program">,
  ];
}

#endif // TESSERA_CODEGEN_PASSES
