//===- ArgumentCuts.h - Consequences of cuts of arguments -------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Classifies arguments as data, weights and optimizer state, and finds the batch
// dimension, by propagation and by the feeds of results.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_TRANSFORMS_SEARCH_ARGUMENTCUTS_H
#define TESSERA_LIB_TRANSFORMS_SEARCH_ARGUMENTCUTS_H

#include "../Propagate/Propagation.h"

#include <map>
#include <set>

namespace tessera::dist {

/// A dimension of an argument that plans cut.
struct Seed {
  unsigned argument;
  size_t dim;
  double seconds = 0;       ///< of computation per device with the cut
  bool cutsWeights = false; ///< whether that cuts fed arguments
};

/// The arguments of one function on the first mesh of the table, which must outlive this.
class ArgumentCuts {
public:
  ArgumentCuts(mlir::func::FuncOp function, const MeshTable &meshes, const OpCosts &costs);

  /// The dimensions with the best cuts, best first; in a training step the batch. Dimensions that
  /// imply one another count once.
  std::vector<Seed> findSeeds() const;

protected:
  /// The propagated consequences of a cut of an argument's dimension.
  struct Spread {
    PropagationGraph graph;
    std::map<unsigned, sharding::TensorSharding> cut; ///< by argument, without implied ones
  };

  /// Propagates a cut through the program. Unreached data of a training step is cut along a
  /// dimension of equal extent.
  Spread spreadFrom(unsigned argument, size_t dim, const sharding::AxisList &cut) const;
  /// Whether a dimension of an argument is cut further than annotated; whether any is.
  bool gained(const PropagationGraph &spread, unsigned argument, size_t dim) const;
  bool gained(const PropagationGraph &spread, unsigned argument) const;
  size_t rankOf(unsigned argument) const;
  /// Tensor arguments in the order of first use: data, then weights by layer.
  llvm::SmallVector<unsigned> byFirstUse() const;

  static bool isOpen(const TensorState &tensor, const sharding::AxisRef &axis);
  /// The open axes that may cut a dimension: those that divide it, else those with at most as many
  /// devices as its extent.
  sharding::AxisList axesFor(const TensorState &tensor, size_t dim) const;
  /// The annotation of a tensor with a dimension also cut over axes; axes that are not open do not
  /// change.
  static sharding::TensorSharding cutBy(const TensorState &tensor, size_t dim,
                                        const sharding::AxisList &cut);
  /// A weight cut along its largest dimension that the axes divide; whole if there is none.
  static sharding::TensorSharding cutWeight(const TensorState &tensor,
                                            const sharding::AxisList &cut);

  mlir::func::FuncOp function;
  PropagationGraph graph;
  const OpCosts &costs;
  const sharding::Mesh &mesh;
  mlir::FlatSymbolRefAttr meshName;
  std::vector<int64_t> tensors; ///< by argument, -1 if not a tensor
  sharding::AxisList axes;      ///< of more than one device
  std::set<int64_t> fed;        ///< tensors of arguments that results feed
  std::set<int64_t> unneeded;   ///< tensors of arguments that the loss does not depend on

private:
  void findState();
  double secondsOf(const PropagationGraph &spread) const;
};

} // namespace tessera::dist

#endif // TESSERA_LIB_TRANSFORMS_SEARCH_ARGUMENTCUTS_H
