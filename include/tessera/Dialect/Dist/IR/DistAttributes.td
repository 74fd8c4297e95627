//===- DistAttributes.td - Attributes of the dist dialect --*- tablegen -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_DIST_ATTRIBUTES
#define TESSERA_DIST_ATTRIBUTES

include "tessera/Dialect/Dist/IR/DistBase.td"
include "mlir/IR/EnumAttr.td"

def Dist_ReduceKind : I32EnumAttr<"ReduceKind", "how partial values combine", [
    I32EnumAttrCase<"sum", 0>, I32EnumAttrCase<"avg", 1>, I32EnumAttrCase<"max", 2>,
    I32EnumAttrCase<"min", 3>, I32EnumAttrCase<"prod", 4>]> {
  let cppNamespace = "::tessera::dist";
}

def Dist_PlacementKind : I32EnumAttr<"PlacementKind", "how one mesh axis distributes a tensor", [
    I32EnumAttrCase<"replicate", 0>, I32EnumAttrCase<"shard", 1>, I32EnumAttrCase<"partial", 2>,
    I32EnumAttrCase<"open", 3>]> {
  let cppNamespace = "::tessera::dist";
}

// Parsed and printed by hand (DistAttributes.cpp), so there is no mnemonic: it would require a generated parser.
class Dist_Attr<string name> : AttrDef<Dist_Dialect, name> {
  let attrName = "dist." # name;
}

def Dist_PlacementAttr : Dist_Attr<"Placement"> {
  let summary = "How one mesh axis distributes a tensor: replicate, shard(d), partial(op) or ?";
  let description = "An element of the by-axis form of `#dist.sharding`. It has no syntax of its own.";
  let parameters = (ins "PlacementKind":$kind, "int64_t":$dim, "int64_t":$order,
                        "ReduceKind":$reduction);
}

def Dist_AxisRefAttr : Dist_Attr<"AxisRef"> {
  let summary = "A mesh axis, or its sub-axis (pre)size";
  let description = [{
    `size` is 0 for a whole axis. As in Shardy, `(pre)size` is the sub-axis of extent `size` after a major part of
    extent `pre`.
  }];
  let parameters = (ins "::mlir::StringAttr":$name, "int64_t":$pre, "int64_t":$size);
}

def Dist_AxisListAttr : Dist_Attr<"AxisList"> {
  let summary = "A list of mesh axes that form one linear index, major axis first";
  let parameters = (ins ArrayRefParameter<"AxisRefAttr">:$axes);
}

def Dist_PartialAttr : Dist_Attr<"Partial"> {
  let summary = "A mesh axis over which a tensor holds partial values, and their reduction";
  let parameters = (ins "ReduceKind":$reduction, "AxisRefAttr":$axis);
}

def Dist_WindowAttr : Dist_Attr<"Window"> {
  let summary = "A dimension of which device c holds the window [c * step + offset, c * step + offset + length)";
  let description = [{
    With a `divisor`, the device holds the indices x for which x * divisor lies in the window. With `begin`, `stride`
    and `count`, x counts the elements begin, begin + stride, … of the dimension.
  }];
  let parameters = (ins "int64_t":$dim, "int64_t":$step, "int64_t":$offset, "int64_t":$length,
                        "int64_t":$divisor, "int64_t":$begin, "int64_t":$stride, "int64_t":$count);
}

def Dist_ShardingAttr : Dist_Attr<"Sharding"> {
  let summary = "The sharding of a tensor on a mesh";
  let description = [{
    The by-axis form has one placement per mesh axis: `replicate`, `shard(d)`, `shard(d, order = k)`,
    `partial(sum|avg|max|min|prod)`, or `?`, which leaves the choice to the compiler:

    ```mlir
    #dist.sharding<@pod, [shard(0), ?]>
    #dist.sharding<@pod, [shard(0, order = 1), shard(0, order = 0)], priority = 1>
    ```

    The by-dimension form has one list of axes per tensor dimension. It also expresses sub-axes,
    `"axis":(pre)size`, and the windows of the local view, `windows = [(dim, step, offset, length)]`:

    ```mlir
    #dist.sharding<@pod, dims = [["dp", "tp":(1)2], []], partial = [sum("tp":(2)2)], open = [], priority = 1>
    ```

    An attribute has no access to its mesh, so it is printed in the form in which it was written. `dist-normalize`
    rewrites it to the by-axis form where that is possible. Rules S1 to S10.
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
    /// The canonical form of a sharding on a mesh: by axis where that is possible, else by dimension.
    static ShardingAttr get(::mlir::FlatSymbolRefAttr mesh, const ::tessera::sharding::Mesh &axes,
                            const ::tessera::sharding::TensorSharding &sharding,
                            ::mlir::MLIRContext *context, int64_t priority = -1);
    /// The sharding of a tensor of the given type on the mesh. Emits an error that names the violated rule
    /// (S2 to S9) and fails.
    ::mlir::FailureOr<::tessera::sharding::TensorSharding>
    resolve(const ::tessera::sharding::Mesh &mesh, ::mlir::Type type,
            ::llvm::function_ref<::mlir::InFlightDiagnostic()> emitError) const;
  }];
}

def Dist_ForwardAttr : Dist_Attr<"Forward"> {
  let summary = "Partial values over an axis that an op takes from operands and keeps in its result";
  let parameters = (ins "PartialAttr":$partial, ArrayRefParameter<"int64_t">:$operands);
}

def Dist_OpShardingAttr : Dist_Attr<"OpSharding"> {
  let summary = "The distribution of an op: which mesh axes cut which of its loops";
  let description = [{
    One list of axes, major first, for each factor (loop) of the op's sharding rule. An op that is linear in some
    operands may forward their partial values to its result instead of requiring them to be reduced:

    ```mlir
    #dist.op_sharding<@pod, factors = [["dp"], ["tp"], []], forwards = [sum("pp") from [0, 2]]>
    ```

    A device may execute a window of a factor, overlapping with those of other devices and extending beyond the loop,
    instead of its own part. `windows = [(factor, step, offset, length)]` are like those of a sharding, by factor: here
    each device also computes one row of its neighbors on both sides:

    ```mlir
    #dist.op_sharding<@pod, factors = [["h"], []], windows = [(0, 2, -1, 4)]>
    ```

    The shardings of operands and results follow from this attribute and the rule. An op without the attribute is
    replicated: every device computes all of it. Rules O1 to O7.
  }];
  let parameters = (ins
    "::mlir::FlatSymbolRefAttr":$mesh,
    ArrayRefParameter<"AxisListAttr">:$factors,
    ArrayRefParameter<"ForwardAttr">:$forwards,
    ArrayRefParameter<"WindowAttr">:$windows);
  let extraClassDeclaration = [{
    static OpShardingAttr get(::mlir::FlatSymbolRefAttr mesh, const ::tessera::sharding::Mesh &axes,
                              const ::tessera::sharding::OpSharding &sharding,
                              ::mlir::MLIRContext *context);
    /// The op sharding that it describes. Emits an error where it violates rule S5, and fails.
    ::mlir::FailureOr<::tessera::sharding::OpSharding>
    resolve(const ::tessera::sharding::Mesh &mesh,
            ::llvm::function_ref<::mlir::InFlightDiagnostic()> emitError) const;
  }];
}

def Dist_MoveAttr : Dist_Attr<"Move"> {
  let summary = "The collective that implements a planned reshard";
  let description = [{
    The kind of the collective, the axes that span its groups, and the parameters of the kind. Its source and target
    shardings are those of the reshard's operand and result.

    ```mlir
    #dist.move<all_gather over ["tp"] dim = 1>
    #dist.move<all_to_all over ["tp"] split_dim = 0 concat_dim = 1>
    #dist.move<reduce_scatter over ["dp"] dim = 0 reduction = sum>
    #dist.move<make_partial over ["dp"] reduction = sum>
    #dist.move<halo_exchange over ["h"] dim = 1>
    #dist.move<exchange>
    ```

    An exchange sends nothing where every device has the elements of its target already. It then takes them from the
    device's own buffer.
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
    /// The move between two shardings. Emits an error where it violates rule S5, and fails.
    ::mlir::FailureOr<::tessera::sharding::Move>
    resolve(const ::tessera::sharding::Mesh &mesh, ::tessera::sharding::TensorSharding source,
            ::tessera::sharding::TensorSharding target,
            ::llvm::function_ref<::mlir::InFlightDiagnostic()> emitError) const;
  }];
}

def Dist_TypedShardingAttr : Dist_Attr<"TypedSharding"> {
  let summary = "A sharding parsed together with the type that follows it";
  let description = [{
    MLIR's parser reads `#dist.sharding<…> : tensor<…>` as one typed attribute. Ops whose syntax contains this
    sequence unwrap it. It is an error elsewhere, and it is never printed.
  }];
  let parameters = (ins "ShardingAttr":$sharding, "::mlir::Type":$type);
}

#endif // TESSERA_DIST_ATTRIBUTES
