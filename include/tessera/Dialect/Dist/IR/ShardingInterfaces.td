//===- ShardingInterfaces.td - Interfaces for sharded ops --*- tablegen -*-===//
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
    An op of the global view that can be distributed. This interface is the pipeline's only source for how the op can
    be cut, which partial values it forwards, what it costs and how it is written for one device.

    Only `getShardingRule` must be implemented. The defaults describe an op without regions that is not linear, does
    one operation per iteration, and computes a shard as it computes the whole tensor.

    The ops of `linalg`, `tensor` and `arith` have external models in `lib/Dialect/Dist/Rules`, which the `dist`
    dialect attaches when a context loads it. An op of another dialect implements the interface itself. To be executed
    it also implements `linalg::AggregatedOpInterface`, which writes it in terms of ops that have kernels, on local
    shapes.
  }];
  let methods = [
    InterfaceMethod<[{
      The op as a nest of loops (factors), and the factors of each dimension of its operands and results. Operands
      and results are in the op's order; values that are not ranked tensors have no dimensions. Sizes are those of the
      global view, in elements. Build the rule with `RuleBuilder`.

      Returns std::nullopt where this op cannot be cut because of its types or attributes. It is then replicated, with
      a remark.
    }], "std::optional<::tessera::sharding::ShardingRule>", "getShardingRule", (ins)>,

    InterfaceMethod<[{
      Adds to `key` the addresses of everything that `getShardingRule` depends on, apart from the op's name and the
      types of its operands and results. Ops with equal keys share one rule. Returns false where addresses cannot
      identify the rule; it is then built for each op.

      The default adds all inherent attributes of an op without regions. Override it for a rule that depends on a
      region or on the op that defines an operand, or to leave out large attributes that the rule does not depend on.
    }], "bool", "addToRuleKey", (ins "::tessera::AddressKey &":$key), "", [{
      return ::tessera::dist::addInherentAttributes($_op, key);
    }]>,

    InterfaceMethod<[{
      Whether the op forwards partial values: if each of `operands` (ascending, not empty) is partial with reduction
      `kind` and every other operand is not partial, is the only result, computed by each device from its own
      operands, partial with the same reduction? For sums this is joint linearity. Operands in `unknown` may be
      partial or not.
    }], "bool", "passesPartial", (ins "::tessera::sharding::ReduceKind":$kind, "::llvm::ArrayRef<int64_t>":$operands,
                                      "::llvm::ArrayRef<int64_t>":$unknown), "", "return false;">,

    InterfaceMethod<[{
      Whether the op treats all iterations of a factor alike: if the operands that have the factor are permuted along
      it, the results that have it are permuted in the same way, and the others stay as they are. False for a factor
      whose iterations are ordered, or have an index that the op reads.
    }], "bool", "isEquivariant", (ins "int64_t":$factor), "", "return false;">,

    InterfaceMethod<[{
      Whether the result is computed from scalars alone, so that recomputing any part of it is cheaper than moving
      it: constants, fills, an iota.
    }], "bool", "isMadeOfScalars", (ins), "", "return false;">,

    InterfaceMethod<[{
      Arithmetic operations per iteration of the innermost loop. 0 for an op that only moves elements: its cost is
      then the bytes of its operands and results.
    }], "int64_t", "getOperationsPerIteration", (ins), "", "return 1;">,

    InterfaceMethod<[{
      The element type at whose rate the operations run: that of the first result, unless they are products, which run
      at the rate of their operands' type, however wide the sum is.
    }], "::mlir::Type", "getArithmeticType", (ins), "", [{
      return ::mlir::getElementTypeOrSelf($_op->getResult(0).getType());
    }]>,

    InterfaceMethod<[{
      Modelled time, in seconds, of the collectives that `partition` creates when the factors are cut by `axes`. Not 0
      for an op that can cut a factor with dependent iterations and then communicates internally.
    }], "double", "getCommunicationSeconds",
        (ins "const ::tessera::sharding::FactorAxes &":$axes, "const ::tessera::sharding::Mesh &":$mesh,
             "::tessera::sharding::ReshardPlanner &":$planner), "", "return 0;">,

    InterfaceMethod<[{
      Factors to which axes may be assigned that operands and results claim for other factors. Resharding all tensors
      there and back (two all-to-alls) may send less than gathering one of them. Propagation considers these factors
      where claims conflict.
    }], "::llvm::SmallVector<int64_t>", "getAlternatives", (ins), "", "return {};">,

    InterfaceMethod<[{
      The element that operand `index` must have beyond the tensor where the op needs a window of it; null where these
      elements may be undefined.
    }], "::mlir::Attribute", "getWindowFill", (ins "unsigned":$index), "", "return {};">,

    InterfaceMethod<[{
      Creates the op's local form at the context's builder and returns one value per result, of the type that
      `context.getLocalType` gives (scalars keep their type). Where the extent does not divide, the padding of the
      last shards is undefined in operands and may be undefined in results, but a reduction must leave it out. Fails
      after emitting an error.

      The default clones the op over the local operands, with local result types. This is correct for an op without
      attributes that hold sizes, offsets or indices of a cut dimension. An unevenly cut reduction is an error, since
      the clone would reduce padding.
    }], "::mlir::FailureOr<::llvm::SmallVector<::mlir::Value>>", "partition",
        (ins "::tessera::dist::PartitionContext &":$context), "", "return context.cloneOp();">,
  ];
}

#endif // TESSERA_DIST_SHARDING_INTERFACES
