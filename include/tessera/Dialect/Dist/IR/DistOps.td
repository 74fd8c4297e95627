//===- DistOps.td - Meshes, annotations, asynchronous ops --*- tablegen -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_DIST_OPS
#define TESSERA_DIST_OPS

include "tessera/Dialect/Dist/IR/DistAttributes.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class Dist_Op<string mnemonic, list<Trait> traits = []> : Op<Dist_Dialect, mnemonic, traits>;

def Dist_TokenType : TypeDef<Dist_Dialect, "Token"> {
  let mnemonic = "token";
  let summary = "The results of a collective in flight";
  let parameters = (ins ArrayRefParameter<"::mlir::Type">:$valueTypes);
  let assemblyFormat = "`<` $valueTypes `>`";
}

def Dist_ProcessMeshOp : Dist_Op<"process_mesh", [Symbol]> {
  let summary = "A grid of devices with named axes";
  let description = [{
    ```mlir
    dist.process_mesh @pod(shape = [2, 4], dim_names = ["dp", "tp"])
    dist.process_mesh @stage1(shape = [2, 2], dim_names = ["x", "y"], process_ids = [4, 5, 6, 7])
    ```
    `process_ids` lists the process of each device in row-major order. The default is 0, 1, …. Rules M1 to M4.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, DenseI64ArrayAttr:$shape, StrArrayAttr:$dim_names,
                       OptionalAttr<DenseI64ArrayAttr>:$process_ids);
  let assemblyFormat = [{
    $sym_name `(` `shape` `=` $shape `,` `dim_names` `=` $dim_names
    (`,` `process_ids` `=` $process_ids^)? `)` attr-dict
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The mesh as a value of the sharding algebra.
    ::tessera::sharding::Mesh getMesh();
  }];
}

def Dist_ShardTensorOp : Dist_Op<"shard_tensor", [Pure, SameOperandsAndResultType,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Constrains the sharding of a value";
  let description = [{
    `%h1 = dist.shard_tensor %h, #dist.sharding<@pod, [shard(0), ?]> : tensor<64x4096xf32>`
  }];
  let arguments = (ins AnyRankedTensor:$operand, Dist_ShardingAttr:$sharding);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$operand `,` custom<ShardingAndType>($sharding, type($operand), type($result), attr-dict)";
  let hasFolder = 1;
}

def Dist_ReshardOp : Dist_Op<"reshard", [Pure, SameOperandsAndResultType,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Changes the sharding of a value, on one mesh or across meshes";
  let description = [{
    `%z = dist.reshard %y to #dist.sharding<@stage1, [shard(0), replicate]> : tensor<64x64xf32>`

    Users write it; `dist-insert-reshards` inserts it, with the reason in `dist.reason`.

    A reshard to windows may have a `fill`: the element of a device's buffer where its window extends beyond the
    tensor. Without it these elements are undefined. Rule R5.
  }];
  let arguments = (ins AnyRankedTensor:$operand, Dist_ShardingAttr:$sharding, OptionalAttr<TypedAttrInterface>:$fill);
  let results = (outs AnyRankedTensor:$result);
  let builders = [OpBuilder<(ins "::mlir::Type":$type, "::mlir::Value":$operand, "ShardingAttr":$sharding), [{
    build($_builder, $_state, type, operand, sharding, /*fill=*/nullptr);
  }]>];
  let assemblyFormat = "$operand `to` custom<ShardingAndType>($sharding, type($operand), type($result), attr-dict)";
  let hasFolder = 1;
  let hasVerifier = 1;
}

def Dist_RearrangeOp : Dist_Op<"rearrange", [Pure]> {
  let summary = "Moves elements of operands along one dimension (global view)";
  let description = [{
    ```mlir
    // A roll by one row.
    %r = dist.rearrange %x, %x dim = 0 segments = [7, 1, 0, 1, 1,  0, 1, 1, 1, 7]
           : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
    // A reversal, padded with two rows of zeros in front.
    %s = dist.rearrange %x dim = 0 segments = [0, 1, 9, -1, 8] fill = 0.0 : f32 : (tensor<8x4xf32>) -> tensor<10x4xf32>
    ```
    Each operand has one segment, (from, from step, to, to step, count): for i in [0, count) the result's element at
    `to + i * to step` along `dim` is the operand's element at `from + i * from step`. All other elements of the
    result are `fill`. Other dimensions are the same in operands and result.

    `dist-normalize` combines concatenations, slices, pads and reversals into one of these ops, so that moving their
    elements along a sharded dimension takes one exchange. Rules R1 to R4.
  }];
  let arguments = (ins Variadic<AnyRankedTensor>:$inputs, I64Attr:$dim, DenseI64ArrayAttr:$segments,
                       OptionalAttr<TypedAttrInterface>:$fill);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $inputs `dim` `=` $dim `segments` `=` $segments (`fill` `=` $fill^)? attr-dict `:`
    functional-type($inputs, $result)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The segment of operand `index`.
    ::tessera::sharding::Segment getSegment(unsigned index);
  }];
}

def Dist_AxisIndexOp : Dist_Op<"axis_index", [Pure,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "The executing device's linear index over mesh axes (local view)";
  let arguments = (ins FlatSymbolRefAttr:$mesh, Dist_AxisListAttr:$axes);
  let results = (outs Index:$result);
  let assemblyFormat = "`over` $mesh custom<AxisList>($axes) attr-dict `:` type($result)";
}

def Dist_StartOp : Dist_Op<"start", [SingleBlock, NoTerminator]> {
  let summary = "Starts a collective without waiting for it";
  let description = [{
    ```mlir
    %t = dist.start { %r = dist.all_reduce %a over @pod ["tp"] reduction = sum : tensor<4xf32>
                      dist.yield %r : tensor<4xf32> } : !dist.token<tensor<4xf32>>
    %q = dist.wait %t : !dist.token<tensor<4xf32>> -> tensor<4xf32>
    ```
    Its region holds one collective and a yield of all its results. Rule C7.
  }];
  let regions = (region SizedRegion<1>:$body);
  let results = (outs Dist_TokenType:$token);
  let assemblyFormat = "$body attr-dict `:` qualified(type($token))";
  let extraClassDeclaration = [{
    mlir::Operation *getCollective() { return &getBody().front().front(); }
    /// The one op that waits for it, in the same block.
    WaitOp getWait();
  }];
  let hasVerifier = 1;
}

def Dist_YieldOp : Dist_Op<"yield", [Pure, ReturnLike, Terminator, ParentOneOf<["StartOp", "CheckpointOp"]>]> {
  let summary = "Yields the results of a region";
  let arguments = (ins Variadic<AnyType>:$operands);
  let assemblyFormat = "($operands^ `:` type($operands))? attr-dict";
}

def Dist_WaitOp : Dist_Op<"wait"> {
  let summary = "Waits for a started collective";
  let arguments = (ins Dist_TokenType:$token);
  let extraClassDeclaration = "StartOp getStart() { return getToken().getDefiningOp<StartOp>(); }";
  let results = (outs Variadic<AnyRankedTensor>:$values);
  let assemblyFormat = "$token attr-dict `:` qualified(type($token)) `->` type($values)";
  let hasVerifier = 1;
}

def Dist_StopGradientOp : Dist_Op<"stop_gradient", [Pure, SameOperandsAndResultType]> {
  let summary = "A value that is a constant to differentiation";
  let description = [{
    `%m = dist.stop_gradient %max : tensor<8xf32>`

    `dist-autodiff` treats the result as a constant; to all other passes it equals the operand. `dist-autodiff` removes
    the op from the functions that it writes, `dist-normalize` from all others.
  }];
  let arguments = (ins AnyType:$operand);
  let results = (outs AnyType:$result);
  let assemblyFormat = "$operand attr-dict `:` type($operand)";
}

def Dist_CheckpointOp : Dist_Op<"checkpoint", [SingleBlock, NoRegionArguments, RecursiveMemoryEffects]> {
  let summary = "Ops that are rematerialized for the derivative";
  let description = [{
    ```mlir
    %y = dist.checkpoint {
      %h = math.tanh %x : tensor<8x64xf32>
      %o = math.exp %h : tensor<8x64xf32>
      dist.yield %o : tensor<8x64xf32>
    } : tensor<8x64xf32>
    ```
    The derivative saves the values that the region uses from outside and executes the region again, instead of saving
    the region's intermediate values. `dist-autodiff` and `dist-normalize` inline the region, as they remove
    `dist.stop_gradient`. Rule D1.
  }];
  let regions = (region SizedRegion<1>:$body);
  let results = (outs Variadic<AnyType>:$results);
  let assemblyFormat = "$body attr-dict (`:` type($results)^)?";
  let hasVerifier = 1;
}

#endif // TESSERA_DIST_OPS
