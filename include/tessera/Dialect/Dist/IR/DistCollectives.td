//===- DistCollectives.td - Collectives of the local view --*- tablegen -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_DIST_COLLECTIVES
#define TESSERA_DIST_COLLECTIVES

include "tessera/Dialect/Dist/IR/DistOps.td"

def Dist_CollectiveInterface : OpInterface<"CollectiveOpInterface"> {
  let cppNamespace = "::tessera::dist";
  let description = [{
    An op that communicates tensors between the devices of a mesh. Several operands form one fused collective.

    Its effect on each operand is defined by a pair of layouts: `sources` and `targets` where they are given
    (`dist-partition` always gives them), else those that its kind implies for evenly divided tensors.
  }];
  let methods = [
    InterfaceMethod<"The kind of the collective.", "::tessera::sharding::CollectiveKind", "getKind">,
    InterfaceMethod<"The mesh.", "::mlir::FlatSymbolRefAttr", "getMeshAttr">,
    InterfaceMethod<"The axes that span a group of the collective; null where the layouts define the groups.",
                    "AxisListAttr", "getGroupAxes">,
    InterfaceMethod<"The reduction of partial values, if any.", "std::optional<ReduceKind>", "getReductionKind">,
    InterfaceMethod<"Shardings of the operands, or null.", "::mlir::ArrayAttr", "getSourcesAttr">,
    InterfaceMethod<"Shardings of the results, or null.", "::mlir::ArrayAttr", "getTargetsAttr">,
    InterfaceMethod<"Global types of the operands, or null.", "::mlir::ArrayAttr", "getGlobalTypesAttr">,
    InterfaceMethod<[{The shardings before and after of operand `index` that the kind implies, and the global shape
                      of the tensor. All three are outputs.}],
                    "::mlir::LogicalResult", "getImpliedMove",
                    (ins "const ::tessera::sharding::Mesh &":$mesh, "unsigned":$index,
                         "::tessera::sharding::TensorSharding &":$source,
                         "::tessera::sharding::TensorSharding &":$target,
                         "std::vector<int64_t> &":$globalShape)>,
  ];
  let extraClassDeclaration = [{
    /// The layouts of operand `index` before and after the collective, as the runtime sees them.
    ::mlir::FailureOr<std::pair<::tessera::sharding::Layout, ::tessera::sharding::Layout>>
    getLayouts(const ::tessera::sharding::Mesh &mesh, unsigned index);
    /// The number of devices of a group.
    int64_t getGroupSize(const ::tessera::sharding::Mesh &mesh);
    /// Bytes, collectives and messages of one execution, summed over the operands of a fused collective.
    ::mlir::FailureOr<::tessera::sharding::Traffic> getTraffic(const ::tessera::sharding::Mesh &mesh);
  }];
}

class Dist_CollectiveBase<string mnemonic>
    : Dist_Op<mnemonic, [Pure, Dist_CollectiveInterface, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let extraClassDefinition = [{
    ::mlir::LogicalResult $cppClass::verifySymbolUses(::mlir::SymbolTableCollection &) {
      return verifyCollective(::mlir::cast<CollectiveOpInterface>(getOperation()));
    }
  }];
}

/// `op %a, %b over @mesh ["axes"] <extra> : T, U -> V, W`.
class Dist_CollectiveOp<string mnemonic, dag extra, string extraFormat> : Dist_CollectiveBase<mnemonic> {
  dag base = (ins Variadic<AnyRankedTensor>:$operands, FlatSymbolRefAttr:$mesh, Dist_AxisListAttr:$axes);
  dag layouts = (ins OptionalAttr<ArrayAttr>:$sources, OptionalAttr<ArrayAttr>:$targets,
                     OptionalAttr<ArrayAttr>:$global_types);
  let arguments = !con(base, extra, layouts);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let assemblyFormat = "$operands `over` $mesh custom<AxisList>($axes) " # extraFormat #
                       " attr-dict `:` custom<CollectiveTypes>(type($operands), type($results))";
  code common = [{
    ::tessera::sharding::CollectiveKind getKind() {
      return ::tessera::sharding::CollectiveKind::}] # mnemonic # [{;
    }
    AxisListAttr getGroupAxes() { return getAxesAttr(); }
    ::mlir::LogicalResult getImpliedMove(const ::tessera::sharding::Mesh &mesh, unsigned index,
                                         ::tessera::sharding::TensorSharding &source,
                                         ::tessera::sharding::TensorSharding &target,
                                         std::vector<int64_t> &globalShape);
  }];
  code noReduction = "std::optional<ReduceKind> getReductionKind() { return std::nullopt; }";
  code withReduction = "std::optional<ReduceKind> getReductionKind() { return getReduction(); }";
  let extraClassDeclaration = common # noReduction;
}

def Dist_AllReduceOp : Dist_CollectiveOp<"all_reduce", (ins Dist_ReduceKind:$reduction),
    "`reduction` `=` $reduction"> {
  let summary = "Every device gets the reduction of the group's partial values";
  let description = "`%r = dist.all_reduce %a over @pod [\"tp\"] reduction = sum : tensor<4xf32>`";
  let extraClassDeclaration = common # withReduction;
  let hasCanonicalizeMethod = 1;
}

def Dist_AllGatherOp : Dist_CollectiveOp<"all_gather", (ins I64Attr:$dim), "`dim` `=` $dim"> {
  let summary = "Every device gets the group's shards, concatenated along `dim`";
  let description = "`%r = dist.all_gather %a over @pod [\"tp\"] dim = 1 : tensor<4x2xf32> -> tensor<4x8xf32>`";
}

def Dist_ReduceScatterOp : Dist_CollectiveOp<"reduce_scatter",
    (ins I64Attr:$dim, Dist_ReduceKind:$reduction), "`dim` `=` $dim `reduction` `=` $reduction"> {
  let summary = "Each device gets its shard, along `dim`, of the reduction";
  let description = "`%r = dist.reduce_scatter %a over @pod [\"tp\"] dim = 0 reduction = sum : tensor<8xf32> -> tensor<2xf32>`";
  let extraClassDeclaration = common # withReduction;
}

def Dist_AllToAllOp : Dist_CollectiveOp<"all_to_all", (ins I64Attr:$split_dim, I64Attr:$concat_dim),
    "`split_dim` `=` $split_dim `concat_dim` `=` $concat_dim"> {
  let summary = "Splits each buffer along `split_dim`, sends part i to device i, concatenates along `concat_dim`";
}

def Dist_PermuteOp : Dist_CollectiveOp<"permute", (ins OptionalAttr<DenseI64ArrayAttr>:$permutation),
    "(`permutation` `=` $permutation^)?"> {
  let summary = "Device i of the group gets the buffer of device permutation[i]";
}

def Dist_BroadcastOp : Dist_CollectiveOp<"broadcast", (ins I64Attr:$root), "`root` `=` $root"> {
  let summary = "Every device gets the root's buffer";
}

def Dist_ScatterOp : Dist_CollectiveOp<"scatter", (ins I64Attr:$dim, I64Attr:$root),
    "`dim` `=` $dim `root` `=` $root"> {
  let summary = "Device i gets shard i, along `dim`, of the root's buffer";
}

def Dist_GatherOp : Dist_CollectiveOp<"gather", (ins I64Attr:$dim, I64Attr:$root),
    "`dim` `=` $dim `root` `=` $root"> {
  let summary = "The root gets the group's shards, concatenated along `dim`; other devices' results are undefined";
}

def Dist_ReduceOp : Dist_CollectiveOp<"reduce", (ins I64Attr:$root, Dist_ReduceKind:$reduction),
    "`root` `=` $root `reduction` `=` $reduction"> {
  let summary = "The root gets the reduction; other devices' results are undefined";
  let extraClassDeclaration = common # withReduction;
}

def Dist_HaloExchangeOp : Dist_CollectiveOp<"halo_exchange",
    (ins I64Attr:$dim, I64Attr:$low, I64Attr:$high, OptionalAttr<AnyAttr>:$fill),
    "`dim` `=` $dim `low` `=` $low `high` `=` $high"> {
  let summary = "Each device gets a halo of `low` indices before and `high` after its shard from its neighbors";
  let description = [{
    Elements outside of the tensor are `fill`, or undefined without one.
    `%r = dist.halo_exchange %a over @pod ["h"] dim = 1 low = 1 high = 1 : tensor<1x4xf32> -> tensor<1x6xf32>`
  }];
}

def Dist_SliceOp : Dist_CollectiveOp<"slice", (ins I64Attr:$dim), "`dim` `=` $dim"> {
  let summary = "Each device keeps its shard, along `dim`, of its buffer; nothing is sent";
}

def Dist_MakePartialOp : Dist_CollectiveBase<"make_partial"> {
  let summary = "Coordinate 0 keeps the value, other devices take the reduction's identity; nothing is sent";
  let description = [{
    `avg` has no identity: every device keeps the value. A sharded operand becomes a partial value of the whole tensor.
  }];
  let arguments = (ins Variadic<AnyRankedTensor>:$operands, FlatSymbolRefAttr:$mesh, Dist_AxisListAttr:$axes,
                       Dist_ReduceKind:$reduction, OptionalAttr<ArrayAttr>:$sources,
                       OptionalAttr<ArrayAttr>:$targets, OptionalAttr<ArrayAttr>:$global_types);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let assemblyFormat = "$operands `over` $mesh custom<AxisList>($axes) `reduction` `=` $reduction attr-dict `:` custom<CollectiveTypes>(type($operands), type($results))";
  let extraClassDeclaration = [{
    ::tessera::sharding::CollectiveKind getKind() { return ::tessera::sharding::CollectiveKind::slice; }
    AxisListAttr getGroupAxes() { return getAxesAttr(); }
    std::optional<ReduceKind> getReductionKind() { return getReduction(); }
    ::mlir::LogicalResult getImpliedMove(const ::tessera::sharding::Mesh &mesh, unsigned index,
                                         ::tessera::sharding::TensorSharding &source,
                                         ::tessera::sharding::TensorSharding &target,
                                         std::vector<int64_t> &globalShape);
  }];
}

def Dist_ExchangeOp : Dist_CollectiveBase<"exchange"> {
  let summary = "Every device sends exactly the boxes that other devices need and do not hold";
  let description = [{
    `%r = dist.exchange %a from #dist.sharding<@pod, [shard(0)]> to #dist.sharding<@pod, [shard(1)]> : tensor<2x8xf32> -> tensor<8x2xf32>`
  }];
  let arguments = (ins Variadic<AnyRankedTensor>:$operands, Dist_ShardingAttr:$from, Dist_ShardingAttr:$to,
                       OptionalAttr<AnyAttr>:$fill,
                       OptionalAttr<ArrayAttr>:$sources, OptionalAttr<ArrayAttr>:$targets,
                       OptionalAttr<ArrayAttr>:$global_types);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let assemblyFormat = "$operands `from` custom<ExchangeSpec>($from, $to, $fill, type($operands), type($results), attr-dict)";
  let extraClassDeclaration = [{
    ::tessera::sharding::CollectiveKind getKind() { return ::tessera::sharding::CollectiveKind::exchange; }
    ::mlir::FlatSymbolRefAttr getMeshAttr() { return getFrom().getMesh(); }
    AxisListAttr getGroupAxes() { return {}; }
    std::optional<ReduceKind> getReductionKind() { return std::nullopt; }
    ::mlir::LogicalResult getImpliedMove(const ::tessera::sharding::Mesh &mesh, unsigned index,
                                         ::tessera::sharding::TensorSharding &source,
                                         ::tessera::sharding::TensorSharding &target,
                                         std::vector<int64_t> &globalShape);
  }];
}

def Dist_SendOp : Dist_Op<"send", [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Sends a tensor to another mesh";
  let description = [{
    `dist.send %a to @stage1 {source = …, target = …, global_type = tensor<8x8xf32>} id = 3 : tensor<4x8xf32>`;
    the `dist.recv` of the same id is in the function of the other mesh.
  }];
  let arguments = (ins AnyRankedTensor:$operand, FlatSymbolRefAttr:$mesh, I64Attr:$id,
                       Dist_ShardingAttr:$source, Dist_ShardingAttr:$target, TypeAttr:$global_type);
  let assemblyFormat = "$operand `to` $mesh `id` `=` $id attr-dict `:` type($operand)";
}

def Dist_RecvOp : Dist_Op<"recv", [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Receives a tensor from another mesh";
  let arguments = (ins FlatSymbolRefAttr:$mesh, I64Attr:$id, Dist_ShardingAttr:$source,
                       Dist_ShardingAttr:$target, TypeAttr:$global_type);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "`from` $mesh `id` `=` $id attr-dict `:` type($result)";
}

#endif // TESSERA_DIST_COLLECTIVES
