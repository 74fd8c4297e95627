//===- ShardingInterfaces.td - How ops are distributed ------*- tablegen -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_DIST_SHARDING_INTERFACES
#define TESSERA_DIST_SHARDING_INTERFACES

include "mlir/IR/OpBase.td"

def Dist_ShardingRuleOpInterface : OpInterface<"ShardingRuleOpInterface"> {
  let cppNamespace = "::tessera::dist";
  let description = [{
    An op of the global view that can be distributed. The pipeline asks this interface, and nothing else, how the op
    is cut, which contributions pass through it, what it costs and how it looks on one device.

    Only `getShardingRule` must be implemented. The defaults describe an op without regions that is not linear, does
    one operation per iteration, and is computed on a device's part as on the whole.

    The ops of `linalg`, `tensor` and `arith` have external models in `lib/Dialect/Dist/Rules`, which the `dist`
    dialect attaches when a context loads it. An op of another dialect implements the interface itself. To be executed
    it also implements `linalg::AggregatedOpInterface`, which writes it in terms of ops that have kernels, on local
    shapes.
  }];
  let methods = [
    InterfaceMethod<[{
      The op as a nest of loops (factors), and which dimension of which operand and result runs over which. Operands
      and results are in the op's order; what is not a ranked tensor has no dimensions. Sizes are those of the global
      view, in elements. Build it with `RuleBuilder`.

      Nothing where this op, for its types and attributes, cannot be cut: it is then replicated, with a remark.
    }], "std::optional<::tessera::sharding::ShardingRule>", "getShardingRule", (ins)>,

    InterfaceMethod<[{
      Adds to `key` the addresses of everything that `getShardingRule` reads, apart from the name of the op and the
      types of its operands and results. Ops with equal keys share one rule. False where addresses do not tell ops
      apart; their rules are then built one by one.

      By default all inherent attributes of an op without regions. Override it for a rule that reads a body or the op
      that defines an operand, and where attributes that the rule does not read are large.
    }], "bool", "addToRuleKey", (ins "::tessera::AddressKey &":$key), "", [{
      return ::tessera::dist::addInherentAttributes($_op, key);
    }]>,

    InterfaceMethod<[{
      Whether the op maps contributions to contributions: where each of `operands` (ascending, not empty) is the
      `kind`-reduction of what devices hold and every other operand is whole, so is the only result of what each
      device makes of its own. For sums this is joint linearity. Operands in `unknown` may be either.
    }], "bool", "passesPartial", (ins "::tessera::sharding::ReduceKind":$kind, "::llvm::ArrayRef<int64_t>":$operands,
                                      "::llvm::ArrayRef<int64_t>":$unknown), "", "return false;">,

    InterfaceMethod<[{
      Whether the result is made of nothing but scalars, so that any part of it is cheaper to compute again than to
      move: constants, fills, an iota.
    }], "bool", "isMadeOfScalars", (ins), "", "return false;">,

    InterfaceMethod<[{
      Arithmetic operations in one iteration of all factors' loops. 0 for an op that only moves elements: its cost is
      the bytes of its operands and results.
    }], "int64_t", "getOperationsPerIteration", (ins), "", "return 1;">,

    InterfaceMethod<[{
      Modelled seconds of the collectives that `partition` adds when the factors are cut by `axes`. An op may cut a
      factor whose iterations depend on each other, and communicate inside.
    }], "double", "getCommunicationSeconds",
        (ins "const ::tessera::sharding::FactorAxes &":$axes, "const ::tessera::sharding::Mesh &":$mesh,
             "::tessera::sharding::ReshardPlanner &":$planner), "", "return 0;">,

    InterfaceMethod<[{
      Factors that may take the axes that operands and results claim for other factors, though no tensor is cut so:
      moving all of them there and back may be less than gathering one. Propagation tries them where claims contradict
      each other.
    }], "::llvm::SmallVector<int64_t>", "getAlternatives", (ins), "", "return {};">,

    InterfaceMethod<[{
      Writes the op for the devices of one mesh, at the context's builder, and returns its results, one value each of
      the type `context.getLocalType` of it (scalars keep theirs). What lies beyond the tensor in an uneven part is
      undefined in operands and may be so in results, but a reduction must leave it out. Fails after an error.

      By default the op is cloned over the local operands, with local result types. That is right for an op whose
      attributes hold no sizes, offsets or indices of a dimension that is cut, unless a reduction is cut unevenly:
      the clone would reduce undefined elements, so this is an error.
    }], "::mlir::FailureOr<::llvm::SmallVector<::mlir::Value>>", "partition",
        (ins "::tessera::dist::PartitionContext &":$context), "", "return context.cloneOp();">,
  ];
}

#endif // TESSERA_DIST_SHARDING_INTERFACES
