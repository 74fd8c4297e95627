//===- DistAttributes.td - Attributes of the dist dialect ---*- tablegen -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_DIST_ATTRIBUTES
#define TESSERA_DIST_ATTRIBUTES

include "tessera/Dialect/Dist/IR/DistBase.td"
include "mlir/IR/EnumAttr.td"

def Dist_ReduceKind : I32EnumAttr<"ReduceKind", "how contributions combine", [
    I32EnumAttrCase<"sum", 0>, I32EnumAttrCase<"avg", 1>, I32EnumAttrCase<"max", 2>,
    I32EnumAttrCase<"min", 3>, I32EnumAttrCase<"prod", 4>]> {
  let cppNamespace = "::tessera::dist";
}

def Dist_PlacementKind : I32EnumAttr<"PlacementKind", "what one mesh axis does to a tensor", [
    I32EnumAttrCase<"replicate", 0>, I32EnumAttrCase<"shard", 1>, I32EnumAttrCase<"partial", 2>,
    I32EnumAttrCase<"open", 3>]> {
  let cppNamespace = "::tessera::dist";
}

// Parsed and printed by hand (DistAttributes.cpp): a mnemonic would ask for generated code.
class Dist_Attr<string name> : AttrDef<Dist_Dialect, name> {
  let attrName = "dist." # name;
}

def Dist_PlacementAttr : Dist_Attr<"Placement"> {
  let summary = "What one mesh axis does: replicate, shard(d), partial(op) or ?";
  let description = "An element of the first spelling of `#dist.sharding`; it has no spelling alone.";
  let parameters = (ins "PlacementKind":$kind, "int64_t":$dim, "int64_t":$order,
                        "ReduceKind":$reduction);
}

def Dist_AxisRefAttr : Dist_Attr<"AxisRef"> {
  let summary = "A mesh axis by name, or the part (pre)size of it";
  let description = "`size` is 0 for the whole axis.";
  let parameters = (ins "::mlir::StringAttr":$name, "int64_t":$pre, "int64_t":$size);
}

def Dist_AxisListAttr : Dist_Attr<"AxisList"> {
  let summary = "Mesh axes that form one index, major first";
  let parameters = (ins ArrayRefParameter<"AxisRefAttr">:$axes);
}

def Dist_PartialAttr : Dist_Attr<"Partial"> {
  let summary = "An axis over which a tensor is partial";
  let parameters = (ins "ReduceKind":$reduction, "AxisRefAttr":$axis);
}

def Dist_WindowAttr : Dist_Attr<"Window"> {
  let summary = "A dimension whose buffers are windows: [c * step + offset, … + length)";
  let description = [{
    With a divisor behind the length, those x for which x * divisor lies there; then, of a selection, its begin,
    stride and count: x counts the elements begin, begin + stride, … of the dimension.
  }];
  let parameters = (ins "int64_t":$dim, "int64_t":$step, "int64_t":$offset, "int64_t":$length,
                        "int64_t":$divisor, "int64_t":$begin, "int64_t":$stride, "int64_t":$count);
}

def Dist_ShardingAttr : Dist_Attr<"Sharding"> {
  let summary = "How a tensor lies on a mesh";
  let description = [{
    By mesh axis, one placement an axis: `replicate`, `shard(d)`, `shard(d, order = k)`,
    `partial(sum|avg|max|min|prod)`, or `?`, left to the compiler:

    ```mlir
    #dist.sharding<@pod, [shard(0), ?]>
    #dist.sharding<@pod, [shard(0, order = 1), shard(0, order = 0)], priority = 1>
    ```

    By dimension, for what the first cannot say: parts of axes, `"axis":(pre)size`; the windows of the
    local view, `windows = [(dim, step, offset, length)]`:

    ```mlir
    #dist.sharding<@pod, dims = [["dp", "tp":(1)2], []], partial = [sum("tp":(2)2)], open = [], priority = 1>
    ```

    An attribute cannot see its mesh, so it prints as it was written; `dist-normalize` rewrites each to the
    first form whenever that says it all. Rules S1 to S10.
  }];
  let parameters = (ins
    "::mlir::FlatSymbolRefAttr":$mesh,
    "bool":$byDim,
    ArrayRefParameter<"PlacementAttr">:$placements,
    ArrayRefParameter<"AxisListAttr">:$dims,
    ArrayRefParameter<"PartialAttr">:$partial,
    ArrayRefParameter<"AxisRefAttr">:$open,
    ArrayRefParameter<"WindowAttr">:$windows,
    "int64_t":$priority); // -1: none given
  let extraClassDeclaration = [{
    /// The canonical spelling of a sharding on a mesh: by mesh axis whenever that says it all.
    static ShardingAttr get(::mlir::FlatSymbolRefAttr mesh, const ::tessera::sharding::Mesh &axes,
                            const ::tessera::sharding::TensorSharding &sharding,
                            ::mlir::MLIRContext *context, int64_t priority = -1);
    /// The sharding that it describes for a tensor of the given rank on its mesh. Emits what rule of
    /// S2 to S9 it breaks and fails.
    ::mlir::FailureOr<::tessera::sharding::TensorSharding>
    resolve(const ::tessera::sharding::Mesh &mesh, ::mlir::Type type,
            ::llvm::function_ref<::mlir::InFlightDiagnostic()> emitError) const;
  }];
}

def Dist_ForwardAttr : Dist_Attr<"Forward"> {
  let summary = "Contributions over an axis that operands bring and the result keeps";
  let parameters = (ins "PartialAttr":$partial, ArrayRefParameter<"int64_t">:$operands);
}

def Dist_OpShardingAttr : Dist_Attr<"OpSharding"> {
  let summary = "How an op is distributed: which axes run over which of its loops";
  let description = [{
    One list of axes for each factor (loop) of the op's sharding rule, major first. Contributions that the op
    takes from operands and keeps in its result, since it is linear in them, are forwards:

    ```mlir
    #dist.op_sharding<@pod, factors = [["dp"], ["tp"], []], forwards = [sum("pp") from [0, 2]]>
    ```

    The shardings of operands and results follow from this and the rule. An op without the attribute is
    whole: every device computes all of it. Rules O1 to O6.
  }];
  let parameters = (ins
    "::mlir::FlatSymbolRefAttr":$mesh,
    ArrayRefParameter<"AxisListAttr">:$factors,
    ArrayRefParameter<"ForwardAttr">:$forwards);
  let extraClassDeclaration = [{
    static OpShardingAttr get(::mlir::FlatSymbolRefAttr mesh, const ::tessera::sharding::Mesh &axes,
                              const ::tessera::sharding::OpSharding &sharding,
                              ::mlir::MLIRContext *context);
    /// The value that it describes. Emits what rule of S5 it breaks and fails.
    ::mlir::FailureOr<::tessera::sharding::OpSharding>
    resolve(const ::tessera::sharding::Mesh &mesh,
            ::llvm::function_ref<::mlir::InFlightDiagnostic()> emitError) const;
  }];
}

def Dist_MoveAttr : Dist_Attr<"Move"> {
  let summary = "The one collective that a planned reshard is";
  let description = [{
    The collective's kind, the axes whose devices take part together, and what else the kind needs; where it
    leads from and to are the shardings of the reshard's operand and result.

    ```mlir
    #dist.move<all_gather over ["tp"] dim = 1>
    #dist.move<all_to_all over ["tp"] split_dim = 0 concat_dim = 1>
    #dist.move<reduce_scatter over ["dp"] dim = 0 reduction = sum>
    #dist.move<make_partial over ["dp"] reduction = sum>
    #dist.move<exchange>
    ```
  }];
  let parameters = (ins
    "::tessera::sharding::CollectiveKind":$kind,
    "AxisListAttr":$axes,
    "int64_t":$dim,
    "int64_t":$splitDim,
    "bool":$makesPartial,
    "ReduceKind":$reduction);
  let extraClassDeclaration = [{
    static MoveAttr get(const ::tessera::sharding::Mesh &mesh,
                        const ::tessera::sharding::Move &move, ::mlir::MLIRContext *context);
    /// The move between two shardings. Emits what rule of S5 it breaks and fails.
    ::mlir::FailureOr<::tessera::sharding::Move>
    resolve(const ::tessera::sharding::Mesh &mesh, ::tessera::sharding::TensorSharding source,
            ::tessera::sharding::TensorSharding target,
            ::llvm::function_ref<::mlir::InFlightDiagnostic()> emitError) const;
  }];
}

def Dist_TypedShardingAttr : Dist_Attr<"TypedSharding"> {
  let summary = "A sharding that swallowed the type behind it";
  let description = [{
    MLIR's parser reads `#dist.sharding<…> : tensor<…>` as one typed attribute. The ops whose syntax
    this is unwrap it; it is refused everywhere else and never printed.
  }];
  let parameters = (ins "ShardingAttr":$sharding, "::mlir::Type":$type);
}

#endif // TESSERA_DIST_ATTRIBUTES
