//===- ExtOps.td - Tensor operations beyond affine loops ---*- tablegen -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_EXT_OPS
#define TESSERA_EXT_OPS

include "mlir/Dialect/Linalg/IR/LinalgInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "tessera/Dialect/Dist/IR/ShardingInterfaces.td"

def Ext_Dialect : Dialect {
  let name = "ext";
  let cppNamespace = "::tessera::ext";
  let summary = "Tensor operations that loops over affine maps cannot express";
  let description = [{
    Each op stays one operation from import to kernel. It has an iteration domain, and so a sharding rule, and its
    computation and communication are those of an efficient algorithm rather than of an expansion into loops. Ops
    have value semantics and static shapes. The verifier's messages have the labels of the constraints (E1, E2, …).
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
                           "::mlir::math::MathDialect", "::mlir::scf::SCFDialect",
                           "::mlir::tensor::TensorDialect", "::tessera::dist::DistDialect"];
}

/// An op of both views. `sharding` lists the methods of ShardingRuleOpInterface that the op overrides.
class Ext_Op<string mnemonic, list<string> sharding, list<Trait> traits = []>
    : Op<Ext_Dialect, mnemonic, !listconcat(traits, [
        Pure, DeclareOpInterfaceMethods<Dist_ShardingRuleOpInterface, sharding>])>;

/// An op that code generation keeps whole: a kernel of its own, with a lowering per target, and never fused with others.
def Ext_KernelOp : NativeOpTrait<"KernelOp"> {
  let cppNamespace = "::tessera::ext";
}

def Ext_YieldOp : Op<Ext_Dialect, "yield", [Pure, ReturnLike, Terminator]> {
  let summary = "Yields the results of a region";
  let arguments = (ins Variadic<AnyType>:$values);
  let assemblyFormat = "($values^ `:` type($values))? attr-dict";
}

def Ext_ScanOp : Ext_Op<"scan", ["addToRuleKey", "isEquivariant", "getOperationsPerIteration", "getCommunicationSeconds", "partition"],
    [IsolatedFromAbove, SingleBlock, InferTypeOpAdaptor, Ext_KernelOp]> {
  let summary = "Combines every prefix of a dimension by an associative function";
  let description = [{
    Combines elements along `dim` by the region. Its arguments are one value per input for the prefix and one per input
    for what follows it; it yields one value per input. It must be associative, not necessarily commutative.

    ```
    r[i] = x[0] ∘ … ∘ x[i]            inclusive
    r[i] = x[0] ∘ … ∘ x[i - 1]        exclusive; r[0] is the identity
    ```

    `reverse` scans from the last element to the first: `r[i] = x[n - 1] ∘ … ∘ x[i]`, where the region's first
    arguments are those of the greater index. `identity` holds the identity of the combiner, one value of the element
    type per input. An exclusive scan requires it; it is optional otherwise.

    ```mlir
    %sums = ext.scan dim = 1 ins(%x : tensor<4x8xf32>) identity [0.0 : f32] {
    ^bb0(%before: f32, %after: f32):
      %sum = arith.addf %before, %after : f32
      ext.yield %sum : f32
    }
    ```

    (E1) `dim` is a dimension of the inputs, which have one shape. (E2) The region takes two scalars of each input's
    element type, first those of the prefix, then those of what follows, and yields one of each. (E3) The ops of the
    region compute scalars and have no side effects. (E4) `identity` has one value of each input's element type.
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
    /// The shape of all inputs and results.
    ::llvm::ArrayRef<int64_t> getShape() {
      return ::llvm::cast<::mlir::RankedTensorType>(getInputs().front().getType()).getShape();
    }
    unsigned getDim() { return static_cast<unsigned>(getDimension()); }
    ::mlir::Block &getBody() { return getCombiner().front(); }
  }];
}

def Ext_SortOp : Ext_Op<"sort", ["isEquivariant", "getOperationsPerIteration", "getCommunicationSeconds", "partition"], [InferTypeOpAdaptor, Ext_KernelOp]> {
  let summary = "Sorts tensors along a dimension by one or more keys";
  let description = [{
    Sorts along `dim` in the lexicographic order of the first `keys` inputs; the other inputs are permuted with them.
    The sort is stable, also if `descending`. NaN is greater than every number and equal to NaN, -0.0 equals 0.0,
    integers are signed, and true is greater than false.

    With `limit` = k only the first k elements are computed, which is cheaper than a full sort. The 8 greatest elements
    of a tensor and their indices are:

    ```mlir
    %values, %places = ext.sort dim = 0 keys = 1 descending limit = 8
        ins(%x, %iota : tensor<100xf32>, tensor<100xi32>)
    ```

    (E1) `dim` is a dimension of the inputs, which have one shape. (E5) `keys` is at
    least 1 and at most the number of inputs. (E6) `limit` is at most the extent of the dimension.
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
    /// The extent of the results along the dimension.
    int64_t getCount() { return getLimit().value_or(getShape()[getDim()]); }
  }];
}

def Ext_AttentionOp : Ext_Op<"attention",
    ["addToRuleKey", "isEquivariant", "getOperationsPerIteration", "getArithmeticType", "getCommunicationSeconds",
     "getAlternatives", "partition"],
    [SingleBlock, DeclareOpInterfaceMethods<AggregatedOpInterface, ["decomposeOperation"]>, Ext_KernelOp]> {
  let summary = "Scaled dot-product attention with an arbitrary score function";
  let description = [{
    The loops of an attention are the dimensions of its indexing maps, one map for each operand and result, each a
    projected permutation:

    | loops | run over dimensions of |
    |---|---|
    | batch, head, key-value group | query, key, value and output |
    | query position, head in a group | query and output |
    | key position, exactly one | key and value |
    | features of the scores | query and key |
    | features of the output | value and output |

    ```
    score[i, n]  = region(sum_f query[i, f] * key[n, f], extras…, indices…)
    output[i, g] = sum_n weights(softmax_n(score[i, n]), extras…, indices…) * value[n, g]
    logsumexp[i] = log(sum_n exp(score[i, n]))
    ```

    The region computes a score from the product, an element of each extra operand and the index of every loop: scale,
    bias, mask, soft cap. A mask that depends on indices alone is computed there and is never a tensor. The type of the
    first argument is that of the products, the yielded type that of the scores. The softmax is computed in the type of
    the scores, or in f32 if that is narrower.

    The region `weights` is absent if the softmax weights the values itself. Else it computes the weight from a share of
    the softmax, and is linear in the share. Dropout is such a region: it keeps the share, divided by the probability of
    that, or yields zero. Random bits that are a function of indices and of the words of a key, extras without
    dimensions, are computed there, in each pass again, and are the same for any distribution. The sum that normalizes a
    row is that of all shares, and the log-sum-exp does not depend on the region.

    ```mlir
    // Causal, with odd keys dropped: batch b, query m, key n, features f and g.
    %o = ext.attention indexing_maps = [affine_map<(b, m, n, f, g) -> (b, m, f)>, affine_map<(b, m, n, f, g) -> (b, n, f)>,
                                        affine_map<(b, m, n, f, g) -> (b, n, g)>, affine_map<(b, m, n, f, g) -> (b, m, g)>]
        ins(%q, %k, %v : tensor<8x64x16xf32>, tensor<8x64x16xf32>, tensor<8x64x16xf32>) {
    ^bb0(%product: f32, %b: index, %m: index, %n: index, %f: index, %g: index):
      %least = arith.constant 0xFF800000 : f32
      %visible = arith.cmpi sge, %m, %n : index
      %score = arith.select %visible, %product, %least : f32
      ext.yield %score : f32
    } weights {
    ^bb0(%share: f32, %b: index, %m: index, %n: index, %f: index, %g: index):
      %zero = arith.constant 0.0 : f32
      %two = arith.constant 2 : index
      %half = arith.divui %n, %two : index
      %even = arith.muli %half, %two : index
      %keep = arith.cmpi eq, %even, %n : index
      %weight = arith.select %keep, %share, %zero : f32
      ext.yield %weight : f32
    } -> tensor<8x64x16xf32>
    ```

    Memory is linear in the sequence: large scores are computed in blocks of rows. If the key position is cut, the
    output is partial: each device scales its own by the maximum and the sum of exponentials over all devices, which
    are two small all-reduces. Features cannot be cut.

    Where index comparisons restrict each query to a window of at most half of the keys around its position, a shard
    of queries needs its keys and a halo of them only. The window is derived from the region: `m >= n`,
    `m - n < 256`, `|m - n| <= 8`, `m / 64 == n / 64`, combined by and, or and not. Masked scores are -inf, or at most
    -6e4 where the mask depends on indices alone and every row sees a key.

    With `attributes {ring}` (`dist-ring-attention`) keys and values are cut over the axes that cut the queries, of which
    there may be more or fewer: a device attends to its own block of keys, then to the block of one other device in each
    turn, and merges the rows. No device holds all keys. In the derivative, a device sends its contribution to the
    gradients of a block to the owner in the same turn. With `balanced` (`dist-balance-rings`), for causal masks, device i of
    n computes chunks i and 2n - 1 - i of 2n, which are exchanged inside the op; operands and results are blocks in order.

    (E7) Each operand and result has an indexing map, a projected permutation with one result per dimension, and the
    extents of a loop agree. (E8) Every loop is of a kind in the table; extras and the log-sum-exp have no feature
    loops, and the log-sum-exp has every other loop but the key position. (E9) The region takes the product, an element
    of each extra and one index per loop, of which those of features are unused, and yields one float. Its ops satisfy
    (E3). (E10) In a ring a loop over queries has several positions. (E11) A balanced ring has as many queries as keys,
    and a mask of indices by which a query sees the keys up to its own. (E12) The region `weights` takes a share in
    place of the product. The share reaches the yielded value only through products with and divisions by values that do
    not depend on it, sums with other such values, negations, conversions, and selections between such values and zero.
  }];
  let arguments = (ins AnyStaticShapeTensor:$query, AnyStaticShapeTensor:$key, AnyStaticShapeTensor:$value,
                       Variadic<AnyStaticShapeTensor>:$extras, AffineMapArrayAttr:$indexing_maps, UnitAttr:$ring,
                       UnitAttr:$balanced);
  let results = (outs AnyStaticShapeTensor:$output, Optional<AnyStaticShapeTensor>:$logsumexp);
  let regions = (region SizedRegion<1>:$score, MaxSizedRegion<1>:$weights);
  let assemblyFormat = [{
    `indexing_maps` `=` $indexing_maps `ins` `(` operands `:` type(operands) `)` attr-dict-with-keyword
    $score (`weights` $weights^)? `->` type(results)
  }];
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

def Ext_AttentionBackwardOp : Ext_Op<"attention_backward",
    ["addToRuleKey", "isEquivariant", "getOperationsPerIteration", "getArithmeticType", "getCommunicationSeconds",
     "getAlternatives", "partition"],
    [SingleBlock, DeclareOpInterfaceMethods<AggregatedOpInterface, ["decomposeOperation"]>, Ext_KernelOp]> {
  let summary = "The derivative of an attention with respect to query, key and value";
  let description = [{
    Recomputes the scores from query and key, and their softmax from the log-sum-exp of the forward op. With
    `delta[i] = sum_g output[i, g] * gradient[i, g]` (FlashAttention, arXiv:2205.14135, appendix B.2):

    ```
    share[i, n]   = exp(score[i, n] - logsumexp[i])
    d_value[n, g] = sum_i weights(share[i, n], …) * gradient[i, g]
    d_score[i, n] = share[i, n] * (weights(sum_g gradient[i, g] * value[n, g], …) - delta[i])
    d_product     = derivative(product, extras…, indices…, d_score)
    d_query[i, f] = sum_n d_product[i, n] * key[n, f]
    d_key[n, f]   = sum_i d_product[i, n] * query[i, f]
    ```

    Loops, maps and the regions of scores and weights are those of `ext.attention`; `gradient` is that of its output.
    Since weights are linear in shares, the derivative by a share is the region applied to that by a weight. The region
    `derivative` takes the arguments of the scores and the derivative with respect to the score, and yields the
    derivative with respect to the product. Results have the maps of query, key and value; a loop that is absent from a
    result is summed, and cutting it makes the result partial. With a window of keys, a device sends its partial
    gradients of other devices' keys to these devices, which add them. (E7), (E8), (E9) and (E12) apply as for
    `ext.attention`.
  }];
  let arguments = (ins AnyStaticShapeTensor:$query, AnyStaticShapeTensor:$key, AnyStaticShapeTensor:$value,
                       AnyStaticShapeTensor:$gradient, AnyStaticShapeTensor:$logsumexp, AnyStaticShapeTensor:$delta,
                       Variadic<AnyStaticShapeTensor>:$extras, AffineMapArrayAttr:$indexing_maps, UnitAttr:$ring,
                       UnitAttr:$balanced);
  let results = (outs AnyStaticShapeTensor:$query_gradient, AnyStaticShapeTensor:$key_gradient,
                      AnyStaticShapeTensor:$value_gradient);
  let regions = (region SizedRegion<1>:$score, SizedRegion<1>:$derivative, MaxSizedRegion<1>:$weights);
  let assemblyFormat = [{
    `indexing_maps` `=` $indexing_maps `ins` `(` operands `:` type(operands) `)` attr-dict-with-keyword
    $score `derivative` $derivative (`weights` $weights^)? `->` type(results)
  }];
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

#endif // TESSERA_EXT_OPS
