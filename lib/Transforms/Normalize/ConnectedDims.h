//===- ConnectedDims.h - Dimensions that a cut reaches ----------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_TRANSFORMS_NORMALIZE_CONNECTEDDIMS_H
#define TESSERA_LIB_TRANSFORMS_NORMALIZE_CONNECTEDDIMS_H

#include "tessera/Planning/PropagationGraph.h"

#include "llvm/ADT/IntEqClasses.h"

namespace tessera::dist {

/// The classes of dimensions that loops of ops connect: a cut of one may reach the others. A merged
/// dimension is connected by its outermost loop, which is cut first.
class ConnectedDims {
public:
  /// Nothing where the operands of an op are on different meshes: they may be arguments that are
  /// split later (SplitShared.cpp), which also reports the others. `throughParts`: whether the
  /// dimensions of slices, concatenations and windows are connected to those that they are parts of.
  static std::optional<ConnectedDims> of(mlir::func::FuncOp function, const MeshTable &meshes,
                                         bool throughParts = true);

  /// The most devices over which an annotation cuts a dimension of the class; 1 for values that are
  /// not tensors.
  int64_t partsOf(std::pair<mlir::Value, int64_t> dim) const {
    return sharding::sizeOf(axesOf(dim));
  }
  /// Their axes.
  sharding::AxisList axesOf(std::pair<mlir::Value, int64_t> dim) const;

private:
  ConnectedDims(std::unique_ptr<PropagationGraph> owned, bool throughParts);
  void connect(const RuleNode &node, bool throughParts);

  std::unique_ptr<PropagationGraph> graph;
  std::vector<unsigned> first; ///< by tensor: the number of its first dimension
  llvm::IntEqClasses classes;
  std::vector<sharding::AxisList> axes; ///< by class
};

} // namespace tessera::dist

#endif // TESSERA_LIB_TRANSFORMS_NORMALIZE_CONNECTEDDIMS_H
