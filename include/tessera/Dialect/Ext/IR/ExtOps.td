//===- ExtOps.td - Tensor operations beyond affine loops ----*- tablegen -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_EXT_OPS
#define TESSERA_EXT_OPS

include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "tessera/Dialect/Dist/IR/ShardingInterfaces.td"

def Ext_Dialect : Dialect {
  let name = "ext";
  let cppNamespace = "::tessera::ext";
  let summary = "Tensor operations that loops over affine maps cannot say";
  let description = [{
    Each op is one operation of the program from import to kernel: it has an iteration domain, so it states a
    sharding rule, and its work and its communication are those of a good algorithm, not of a spelling in loops.
    Ops have value semantics and static shapes. The labels of constraints (E1, E2, …) are those of the verifier.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect", "::tessera::dist::DistDialect"];
}

/// An op of the global and of the local view. `sharding` lists the methods of ShardingRuleOpInterface that the op
/// does not leave at their defaults.
class Ext_Op<string mnemonic, list<string> sharding, list<Trait> traits = []>
    : Op<Ext_Dialect, mnemonic, !listconcat(traits, [
        Pure, DeclareOpInterfaceMethods<Dist_ShardingRuleOpInterface, sharding>])>;

def Ext_YieldOp : Op<Ext_Dialect, "yield", [Pure, ReturnLike, Terminator]> {
  let summary = "The values of a region";
  let arguments = (ins Variadic<AnyType>:$values);
  let assemblyFormat = "($values^ `:` type($values))? attr-dict";
}

def Ext_ScanOp : Ext_Op<"scan", ["addToRuleKey", "getOperationsPerIteration", "getCommunicationSeconds", "partition"],
    [IsolatedFromAbove, SingleBlock, InferTypeOpAdaptor]> {
  let summary = "Every prefix of a dimension, combined by an associative function";
  let description = [{
    Combines elements along `dim` by the region, which takes a value of each input for what comes first and one for
    what comes behind it, and yields one of each. It is associative; it need not commute.

    ```
    r[i] = x[0] ∘ … ∘ x[i]            inclusive
    r[i] = x[0] ∘ … ∘ x[i - 1]        exclusive; r[0] is the identity
    ```

    `reverse` scans from the last element to the first: `r[i] = x[n - 1] ∘ … ∘ x[i]`, where the region's first
    arguments are those of the greater index. `identity` holds a value of the element type for each input that
    combines with any other to that other; an exclusive scan needs it, others may state it.

    ```mlir
    %sums = ext.scan dim = 1 ins(%x : tensor<4x8xf32>) identity [0.0 : f32] {
    ^bb0(%before: f32, %after: f32):
      %sum = arith.addf %before, %after : f32
      ext.yield %sum : f32
    }
    ```

    (E1) `dim` is a dimension of the inputs, which have one shape. (E2) The region takes two scalars of the element
    type of each input, all those of the first elements before those of the second, and yields one of each. (E3) The
    ops of the region compute scalars and have no effects. (E4) `identity` has a value of each input's element type.
  }];
  let arguments = (ins I64Attr:$dimension, UnitAttr:$exclusive, UnitAttr:$reverse,
                       Variadic<AnyStaticShapeTensor>:$inputs, OptionalAttr<ArrayAttr>:$identity);
  let results = (outs Variadic<AnyStaticShapeTensor>:$results);
  let regions = (region SizedRegion<1>:$combiner);
  let assemblyFormat = [{
    `dim` `=` $dimension (`exclusive` $exclusive^)? (`reverse` $reverse^)? `ins` `(` $inputs `:` type($inputs) `)`
    (`identity` $identity^)? attr-dict-with-keyword $combiner
  }];
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    /// The tensors' type but for the element type.
    ::llvm::ArrayRef<int64_t> getShape() {
      return ::llvm::cast<::mlir::RankedTensorType>(getInputs().front().getType()).getShape();
    }
    unsigned getDim() { return static_cast<unsigned>(getDimension()); }
    ::mlir::Block &getBody() { return getCombiner().front(); }
  }];
}

def Ext_SortOp : Ext_Op<"sort", ["getOperationsPerIteration", "getCommunicationSeconds", "partition"], [InferTypeOpAdaptor]> {
  let summary = "Several tensors in the order of the first ones, along a dimension";
  let description = [{
    Sorts along `dim` by the first `keys` inputs, of which later ones decide among equals of earlier ones; the others
    move along. The sort is stable: equal elements stay in their order, also where it is `descending`. NaN is greater
    than every number and equal to NaN, -0.0 equals 0.0, integers are signed, and true is greater than false.

    With `limit` only the first so many elements are wanted, which takes less work: the greatest k of a tensor and
    where they are is

    ```mlir
    %values, %places = ext.sort dim = 0 keys = 1 descending limit = 8
        ins(%x, %iota : tensor<100xf32>, tensor<100xi32>)
    ```

    (E1) `dim` is a dimension of the inputs, which have one shape. (E5) There is at least one key, and at most as many
    as inputs. (E6) `limit` is at most the extent of the dimension.
  }];
  let arguments = (ins I64Attr:$dimension, I64Attr:$keys, UnitAttr:$descending, OptionalAttr<I64Attr>:$limit,
                       Variadic<AnyStaticShapeTensor>:$inputs);
  let results = (outs Variadic<AnyStaticShapeTensor>:$results);
  let assemblyFormat = [{
    `dim` `=` $dimension `keys` `=` $keys (`descending` $descending^)? (`limit` `=` $limit^)?
    `ins` `(` $inputs `:` type($inputs) `)` attr-dict
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The inputs' shape.
    ::llvm::ArrayRef<int64_t> getShape() {
      return ::llvm::cast<::mlir::RankedTensorType>(getInputs().front().getType()).getShape();
    }
    unsigned getDim() { return static_cast<unsigned>(getDimension()); }
    /// Elements of a result along the dimension.
    int64_t getCount() { return getLimit().value_or(getShape()[getDim()]); }
  }];
}

#endif // TESSERA_EXT_OPS
