//===- ShardingRuleInterface.h - How ops are distributed --------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Header for ops that implement ShardingRuleOpInterface. It needs no library of
// Tessera: a plug-in uses that of the tool that loads it.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_DIALECT_DIST_RULES_SHARDINGRULEINTERFACE_H
#define TESSERA_DIALECT_DIST_RULES_SHARDINGRULEINTERFACE_H

#include "tessera/Sharding/ShardingRule.h"
#include "tessera/Support/AddressMap.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/TypeUtilities.h"

#include <optional>

namespace tessera::sharding {
class ReshardPlanner;
} // namespace tessera::sharding

namespace tessera::dist {

/// An op of the global view that is being lowered for the devices of one mesh. `dist-partition`
/// implements it.
class PartitionContext {
public:
  PartitionContext(mlir::Operation *op, mlir::OpBuilder &builder) : op(op), builder(builder) {}
  virtual ~PartitionContext() = default;

  mlir::Operation *const op; ///< of the global view
  mlir::OpBuilder &builder;  ///< at the end of the devices' code so far

  /// The rule of the op and the axes that cut each factor.
  virtual const sharding::ShardingRule &getRule() const = 0;
  virtual const sharding::FactorAxes &getFactorAxes() const = 0;
  /// The sharding that operand `index`, a tensor, has after its reshard.
  virtual sharding::TensorSharding getOperandSharding(unsigned index) const = 0;
  /// The sharding of result `index`, a tensor.
  virtual sharding::TensorSharding getResultSharding(unsigned index) const = 0;

  /// A device's part of operand `index`, or the scalar.
  virtual mlir::Value getOperand(unsigned index) const = 0;
  /// The local value of any value that the op reads, also in its regions.
  virtual mlir::Value getLocal(mlir::Value global) const = 0;
  /// The type of a device's part of result `index`, a tensor.
  virtual mlir::RankedTensorType getLocalType(unsigned index) const = 0;

  /// Clones the op and its regions over local operands, with local result types.
  virtual mlir::Operation *clone() = 0;
  /// `clone` for an op that computes a part like the whole. Emits an error if a reduction is cut
  /// unevenly.
  virtual mlir::FailureOr<mlir::SmallVector<mlir::Value>> cloneOp() = 0;

  /// Whether some parts of a factor exceed its size.
  virtual bool isUneven(unsigned factor) const = 0;
  /// The global iteration of a factor, an index, for iteration `local` of a device's part. Emitted
  /// at `at`.
  virtual mlir::Value getGlobalIteration(mlir::OpBuilder &at, mlir::Location loc, unsigned factor,
                                         mlir::Value local) = 0;
  /// Operand `index`, a tensor, with `fill` (null: zero) in the padding of reductions; the operand
  /// itself if none of its reductions is cut unevenly. A reduction may visit the padding if `fill`
  /// does not change its result.
  virtual mlir::Value getMaskedOperand(unsigned index, mlir::TypedAttr fill = {}) = 0;
  /// Combines the devices' parts of a new value over the axes that cut a factor. The value has a
  /// dimension for each of `factors` (its local part is `local`), and none for the reduced one.
  virtual mlir::Value getCombined(mlir::Value local, llvm::ArrayRef<int64_t> factors,
                                  int64_t reduced, sharding::ReduceKind kind) = 0;

  // For ops that communicate inside, such as a scan along a cut dimension.

  /// The mesh of the op's tensors, and the planner of its reshards.
  virtual const sharding::Mesh &getMesh() const = 0;
  virtual sharding::ReshardPlanner &getPlanner() const = 0;
  /// This device's linear index over axes.
  virtual mlir::Value getDeviceIndex(const sharding::AxisList &axes) = 0;
  /// Moves this device's part of a tensor that the op creates: `local` has the sharding `source` of
  /// a tensor of type `global`. Elements of `target` outside of the tensor are undefined.
  virtual mlir::Value reshard(mlir::Value local, mlir::RankedTensorType global,
                              const sharding::TensorSharding &source,
                              const sharding::TensorSharding &target) = 0;
};

/// Adds everything that distinguishes two ops without regions, except names and types. False for
/// others.
inline bool addInherentAttributes(mlir::Operation *op, AddressKey &key) {
  if (op->getNumRegions() > 0)
    return false;
  mlir::Attribute attributes = op->getPropertiesStorageSize() > 0
                                   ? op->getPropertiesAsAttribute()
                                   : mlir::Attribute(op->getRawDictionaryAttrs());
  key.push_back(attributes.getAsOpaquePointer());
  return true;
}

} // namespace tessera::dist

#include "tessera/Dialect/Dist/IR/ShardingInterfaces.h.inc"

#endif // TESSERA_DIALECT_DIST_RULES_SHARDINGRULEINTERFACE_H
