//===- Demo.td - A dialect outside of Tessera --------------*- tablegen -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

include "mlir/Dialect/Linalg/IR/LinalgInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "tessera/Dialect/Dist/IR/ShardingInterfaces.td"

def Demo_Dialect : Dialect {
  let name = "demo";
  let cppNamespace = "::demo";
  let summary = "Operations defined outside of Tessera's tree";
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
                           "::mlir::math::MathDialect", "::mlir::tensor::TensorDialect"];
}

// ShardingRuleOpInterface distributes an op, and AggregatedOpInterface decomposes it for execution. `sharding` lists the
// methods of the former that the op overrides.
class Demo_Op<string mnemonic, list<string> sharding, list<Trait> traits = []>
    : Op<Demo_Dialect, mnemonic, !listconcat(traits, [
        Pure,
        DeclareOpInterfaceMethods<Dist_ShardingRuleOpInterface, sharding>,
        DeclareOpInterfaceMethods<AggregatedOpInterface, ["decomposeOperation"]>])>;

def Demo_ScaledAddOp : Demo_Op<"scaled_add", ["passesPartial"], [AllTypesMatch<["x", "y", "result"]>]> {
  let summary = "scale * x + y";
  let arguments = (ins AnyStaticShapeTensor:$x, AnyStaticShapeTensor:$y, F64Attr:$scale);
  let results = (outs AnyStaticShapeTensor:$result);
  let assemblyFormat = "$x `,` $y attr-dict `:` type($result)";
}

def Demo_RmsNormOp : Demo_Op<"rms_norm", ["getOperationsPerIteration"], [AllTypesMatch<["x", "result"]>]> {
  let summary = "x / sqrt(mean(x * x) + epsilon), with the mean over the last dimension";
  let arguments = (ins AnyStaticShapeTensor:$x, F64Attr:$epsilon);
  let results = (outs AnyStaticShapeTensor:$result);
  let assemblyFormat = "$x attr-dict `:` type($result)";
}

def Demo_SumSquaresOp : Demo_Op<"sum_squares", ["partition", "getOperationsPerIteration"]> {
  let summary = "The sum of x * x over the last dimension";
  let arguments = (ins AnyStaticShapeTensor:$x);
  let results = (outs AnyStaticShapeTensor:$result);
  let assemblyFormat = "$x attr-dict `:` type($x) `->` type($result)";
  let hasVerifier = 1;
}

def Demo_PeakOp : Demo_Op<"peak", []> {
  let summary = "The largest x of the last dimension; its reduction cannot be cut unevenly";
  let arguments = (ins AnyStaticShapeTensor:$x);
  let results = (outs AnyStaticShapeTensor:$result);
  let assemblyFormat = "$x attr-dict `:` type($x) `->` type($result)";
  let hasVerifier = 1;
}

def Demo_LogOp : Op<Demo_Dialect, "log", [DeclareOpInterfaceMethods<Dist_ShardingRuleOpInterface>]> {
  let summary = "Prints x: a side effect, which ops of the global view must not have";
  let arguments = (ins AnyStaticShapeTensor:$x);
  let assemblyFormat = "$x attr-dict `:` type($x)";
}
