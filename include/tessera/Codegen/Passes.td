//===- Passes.td - From the local view to steps -------------*- tablegen -*-===//
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
    "::mlir::linalg::LinalgDialect", "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect",
    "::tessera::dist::DistDialect", "::tessera::rt::RtDialect"];
}

def CodegenPrepare : CodegenPass<"codegen-prepare", "::mlir::func::FuncOp"> {
  let summary = "Bring the local view into forms that kernels, gemms and views express";
  let description = [{
    After it, in every function of the local view,

    * every value that crosses from one step to another is a tensor: scalars that loops carry, coordinates
      (`dist.axis_index`), induction variables, bounds and conditions are rank-0 tensors
      (`tensor.from_elements`) where they are made and `tensor.extract` where they are read; scalar arithmetic
      in between belongs to whoever uses it;
    * tensor computations are `linalg.generic`, contractions, windowed ops, `linalg.fill`, and slices;
      transposes, broadcasts, reductions are generics; pads and concatenations are slices put into a buffer;
      gathers read elements in a generic;
    * generics read the source of a reshape that only adds dimensions of extent 1, so that a reduction that keeps its
      dimension and its readers can share a kernel;
    * induction variables are of type index, and shardings are dropped from ops that no longer need them;
    * an `ext.scan` is a loop along its dimension, an `ext.sort` a merge sort of each line, each a group of its own; with
      `parallel` both are log-step networks of parallel nests.
  }];
  let options = [
    Option<"parallel", "parallel", "bool", /*default=*/"false", "write scans and sorts as parallel steps: for GPUs">,
  ];
}

def CodegenFormPhases : CodegenPass<"codegen-form-phases", "::mlir::func::FuncOp"> {
  let summary = "Make convolutions of dilated tensors steps, one for each phase";
  let description = [{
    A transposed convolution and the derivative by the input of a convolution with stride s multiply a dilated tensor, or a
    kernel padded to whole phases: most of their products are by zeros. The results of each phase, whose positions are equal
    modulo s, become an `rt.contraction` of their own over the taps that meet elements ("sub-pixel convolution"), which
    overwrites its elements of the result. What a slice behind it drops is not computed. Products of one tap, too,
    so the pass precedes `codegen-form-gemms`.
  }];
}

def CodegenFormGemms : CodegenPass<"codegen-form-gemms", "::mlir::func::FuncOp"> {
  let summary = "Make contractions readable as matrix products";
  let description = [{
    A step `gemm` takes leading dimensions, transpositions and one batch stride, so many layouts need no
    copy: transpositions of operands and results, also behind a reshape that only merges dimensions, go into the
    contraction's indexing maps (`linalg.contract`) wherever it still is a gemm. What is none has the operand that
    does not fit rewritten into rows (a transposition of its own).
  }];
}

def CodegenFormContractions : CodegenPass<"codegen-form-contractions", "::mlir::func::FuncOp"> {
  let summary = "Make convolutions and their derivatives steps";
  let description = [{
    A sum of products of two tensors that no gemm expresses, since an operand is read in windows (`stride * i +
    dilation * k`), becomes an `rt.contraction`, where it has enough rows, columns and products that the packed product of
    the runtime is faster than a kernel. Copies that only flip, transpose, split, merge or cut an operand go into its
    strides. Depthwise convolutions and those of few channels stay kernels.
  }];
}

def CodegenFormEpilogues : CodegenPass<"codegen-form-epilogues", "::mlir::func::FuncOp"> {
  let summary = "Make a bias and an activation a part of the product before them";
  let description = [{
    What GPU libraries do to a product before it is stored: `rt.product` takes the place of a contraction and of the
    elementwise ops behind it that nobody else reads, where together they are, as polynomials in the product and in
    functions of it, product + bias, the product rounded to 16 bits, max(that, 0), or gelu(that) as the libraries define it,
    x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))). The bias is a vector along the rows of the matrix that the gemm
    writes. The sum is rounded once. gelu is taken of 16-bit results only: how exact the libraries' tanh is they do not
    say; the gelu of erf never is.
  }];
}

def CodegenFuse : CodegenPass<"codegen-fuse", "::mlir::func::FuncOp"> {
  let summary = "Group ops that become one kernel";
  let description = [{
    Wraps what does not become a gemm, a view, a collective or control flow into `rt.group`. Two ops share a group when
    some parallel loops of both visit the same rows: elementwise chains, broadcasts, reductions over rows and what
    follows them (softmax, layer norm), epilogues of windowed ops. No group waits for a step that waits for it.
  }];
  let options = [
    Option<"maxOps", "max-ops", "unsigned", /*default=*/"::tessera::dist::kMostFusedOps", "most ops of one group">,
    Option<"fuse", "fuse", "bool", /*default=*/"true", "false: every op is a group of its own">,
    Option<"sums", "sums", "bool", /*default=*/"false",
           "sums over all rows join the group that goes over them: for GPUs">,
    Option<"contractions", "contractions", "bool", /*default=*/"false",
           "contractions with strided operands are kernels, not steps: for GPUs">,
    Option<"recompute", "recompute", "bool", /*default=*/"false",
           "kernels compute large elementwise values again instead of reading them: for GPUs">,
  ];
}

def CodegenOutlineKernels : CodegenPass<"codegen-outline-kernels", "::mlir::ModuleOp"> {
  let summary = "Turn groups into kernels, one for all that are equal";
  let description = [{
    A group becomes a private function in destination style (`kernel.reads`) and a call of it. Groups that are
    equal up to names and locations share one function, so the layers of a network are compiled once.
  }];
}

def CodegenEmitRt : CodegenPass<"codegen-emit-rt", "::mlir::ModuleOp"> {
  let summary = "Plan the arena and write the steps";
  let description = [{
    Replaces the functions of the local view by an `rt.program` with a part for each. Values get intervals of a static
    arena by their lives over all steps: what lives across a loop's back edge spans the loop, an asynchronous
    collective uses its slots until the wait, arguments live for the whole step. Loop carries and results that
    feed an argument are computed in place where the old value is dead, otherwise copied at the end; a kernel
    that permits it writes over an input that dies.

    A module is one program: the local functions of one original function (`dist.part_of`).
  }];
  let options = [
    Option<"reuse", "reuse", "bool", /*default=*/"true", "false: every value has memory of its own (for bisection)">,
    Option<"program", "function", "std::string", /*default=*/"",
           "Of several programs the one to emit, by the function that it was; the others are dropped">,
  ];
}

def CodegenWriteArtifact : CodegenPass<"codegen-write-artifact", "::mlir::ModuleOp"> {
  let summary = "Serialise an rt.program";
  let description = [{
    Compiles the kernels and writes the artifact to `output`; without it prints the program's JSON on standard
    output and compiles nothing.
  }];
  let options = [
    Option<"output", "output", "std::string", /*default=*/"", "the file; empty: print the program">,
  ];
}

#endif // TESSERA_CODEGEN_PASSES
