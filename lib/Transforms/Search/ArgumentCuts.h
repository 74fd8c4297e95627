//===- ArgumentCuts.h - What follows from cuts of arguments -----*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Which arguments are data, weights and state of an optimizer, and which dimension is
// the batch, read off the program: by propagation, and by what results feed.
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
  double seconds = 0;       ///< of computing on a device when it is cut
  bool cutsWeights = false; ///< whether that cuts what results feed
};

/// The arguments of one function on the first mesh of the table, which must outlive this.
class ArgumentCuts {
public:
  ArgumentCuts(mlir::func::FuncOp function, const MeshTable &meshes, const OpCosts &costs);

  /// The dimensions whose cuts help most, the best first: of a training step the batch. One that
  /// follows from another's cut is the same as that.
  std::vector<Seed> findSeeds() const;

protected:
  /// What follows from the cut of a dimension of an argument, beside what the program says.
  struct Spread {
    PropagationGraph graph;
    std::map<unsigned, sharding::TensorSharding> cut; ///< by argument: what follows from no other
  };

  /// Carries a cut through the program. Data of a training step that it does not reach is cut where
  /// it has as many elements.
  Spread spreadFrom(unsigned argument, size_t dim, const sharding::AxisList &cut) const;
  /// Whether a dimension of an argument is cut further than the program says; whether any is.
  bool gained(const PropagationGraph &spread, unsigned argument, size_t dim) const;
  bool gained(const PropagationGraph &spread, unsigned argument) const;
  size_t rankOf(unsigned argument) const;
  /// Tensors among the arguments, those first that ops meet first: data, then weights by layer.
  llvm::SmallVector<unsigned> byFirstUse() const;

  static bool isOpen(const TensorState &tensor, const sharding::AxisRef &axis);
  /// The open axes that may cut a dimension: those that divide it, else those that it has a part
  /// for each device of.
  sharding::AxisList axesFor(const TensorState &tensor, size_t dim) const;
  /// What is given of a tensor, and a dimension cut by axes beside; those that are not open stay as
  /// they are.
  static sharding::TensorSharding cutBy(const TensorState &tensor, size_t dim,
                                        const sharding::AxisList &cut);
  /// A weight whose largest dimension is cut that the axes divide; whole where there is none.
  static sharding::TensorSharding cutWeight(const TensorState &tensor,
                                            const sharding::AxisList &cut);

  mlir::func::FuncOp function;
  PropagationGraph graph;
  const OpCosts &costs;
  const sharding::Mesh &mesh;
  mlir::FlatSymbolRefAttr meshName;
  std::vector<int64_t> tensors; ///< by argument, -1 for what is not a tensor
  sharding::AxisList axes;      ///< of more than one device
  std::set<int64_t> fed;        ///< tensors of arguments that results feed
  std::set<int64_t> unneeded;   ///< tensors of arguments that the loss does not depend on

private:
  void findState();
  double secondsOf(const PropagationGraph &spread) const;
};

} // namespace tessera::dist

#endif // TESSERA_LIB_TRANSFORMS_SEARCH_ARGUMENTCUTS_H
