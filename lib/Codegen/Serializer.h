//===- Serializer.h - Convert rt.program to the step format -----*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_CODEGEN_SERIALIZER_H
#define TESSERA_LIB_CODEGEN_SERIALIZER_H

#include "tessera/Codegen/Compile.h"
#include "tessera/Dialect/Dist/IR/ValueShardings.h"
#include "tessera/Dialect/Rt/IR/Rt.h"

#include "llvm/ADT/StringMap.h"

namespace tessera::codegen {

class Serializer {
public:
  Serializer(rt::ProgramOp program, bool withConstants);
  mlir::FailureOr<SerializedProgram> run();

private:
  // Serialize.cpp
  void declarePorts();
  void addPart(rt::PartOp part, int64_t index);
  void addSlot(mlir::Operation *op, runtime::Part &part);
  /// Offset of the constant's bytes in the constants section.
  int64_t addConstant(mlir::ElementsAttr value);
  runtime::Home homeOf(int64_t part, mlir::Value slot, dist::ShardingAttr layout,
                       mlir::Type global);
  sharding::Layout layoutOf(dist::ShardingAttr layout, mlir::Type global) const;
  int64_t slotOf(mlir::Value value) const { return slots.lookup(value); }

  // SerializeSteps.cpp
  runtime::StepList stepsOf(mlir::Block &block);
  /// The step of an op; empty for a declaration.
  std::optional<runtime::Step> stepOf(mlir::Operation *op);
  runtime::CollectiveStep collective(rt::CollectiveOp op);
  runtime::TransferStep transfer(mlir::Value slot, int64_t id, dist::ShardingAttr source,
                                 dist::ShardingAttr target, mlir::Type global, bool isSend);
  /// One total order over all parts; the sides of a transfer are adjacent.
  mlir::LogicalResult assignOrders();

  rt::ProgramOp op;
  bool withConstants;
  dist::MeshTable meshes;
  SerializedProgram result;
  llvm::StringMap<int64_t> meshIndex, kernelIndex;
  llvm::StringMap<int64_t> constantAt; ///< by content
  llvm::DenseMap<mlir::Value, int64_t> slots, tokens;
  int64_t nextCollective = 0;
};

/// The element type of the step format.
runtime::DType toDType(mlir::Type type);

} // namespace tessera::codegen

#endif // TESSERA_LIB_CODEGEN_SERIALIZER_H
