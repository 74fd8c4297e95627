//===- ElementExpressions.h - Formulas of elements --------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A program of many small ops computes one scalar formula per element. Formulas do
// not depend on the spelling: the position of a scale, the selection or addition of
// a mask, transposes, reshapes and broadcasts.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_TRANSFORMS_RECOGNIZE_ELEMENTEXPRESSIONS_H
#define TESSERA_LIB_TRANSFORMS_RECOGNIZE_ELEMENTEXPRESSIONS_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

#include <functional>
#include <map>
#include <optional>

namespace tessera::dist {

/// The loops that enumerate the elements. Indices are linear combinations of loops. A loop is split
/// in two where a reshape splits an index.
struct Loops {
  llvm::SmallVector<int64_t> extents; ///< by dimension of the affine expressions

  /// `index` divided by a constant, and the remainder; nothing if loops would have to be split.
  std::optional<std::pair<mlir::AffineExpr, mlir::AffineExpr>> divide(mlir::AffineExpr index,
                                                                      int64_t divisor) const;
};

/// The terms (loop, coefficient) of an index without a constant; nothing for other indices.
using Terms = llvm::SmallVector<std::pair<unsigned, int64_t>, 2>;
std::optional<Terms> termsOf(mlir::AffineExpr index);

using Indices = llvm::SmallVector<mlir::AffineExpr, 4>;

/// A loop of `extent` iterations that must become two, the inner of `inner` iterations.
struct Split {
  unsigned loop;
  int64_t inner;
};

class ElementExpressions {
public:
  enum class Kind {
    index,   ///< of a loop
    element, ///< of a tensor that is a leaf
    op,      ///< a scalar op over others
    product, ///< an element of the product that is `root`
    reduced, ///< of its operand, over the loop `reducedLoop`; a second one is the init, else 0
  };
  struct Node {
    Kind kind = Kind::op;
    mlir::AffineExpr index;
    mlir::Value tensor;
    Indices indices;               ///< of the element
    mlir::Operation *op = nullptr; ///< an op like this; of a reduction the combiner
    mlir::Type type;
    llvm::SmallVector<int, 3> operands;
  };
  static constexpr int kNone = -1;

  /// `root` is the product at which formulas end; reductions are over `reducedLoop`.
  ElementExpressions(const Loops &loops, mlir::linalg::LinalgOp root, unsigned reducedLoop)
      : loops(loops), root(root), reducedLoop(reducedLoop) {}
  ~ElementExpressions();

  /// The formula of an element, or kNone; `wantedSplit` may then have a split that would help.
  int evaluate(mlir::Value tensor, llvm::ArrayRef<mlir::AffineExpr> indices);

  const Node &operator[](int node) const { return nodes[node]; }
  /// Whether a formula depends on the loop outside of reductions over it.
  bool dependsOn(int node, unsigned loop) const;
  /// Whether a formula contains a node of a kind.
  bool contains(int node, Kind kind) const;
  /// The nodes of a formula, ascending, without those that are only in formulas of `leaf`.
  llvm::SmallVector<int> nodesOf(int node, int leaf = kNone) const;
  /// The formula without conversions between floats.
  int stripConversions(int node) const;
  /// Whether it is an op of this type.
  template <typename Op> bool isOp(int node) const {
    return nodes[node].kind == Kind::op && llvm::isa<Op>(nodes[node].op);
  }

  /// Whether a value depends on the root, and all ops that evaluation visited.
  bool dependsOnRoot(mlir::Value value);
  const llvm::SetVector<mlir::Operation *> &visited() const { return seen; }
  /// A tensor that is a leaf although it depends on the root.
  mlir::Value opaque;
  /// Values that depend on the root only through these values do not count as dependent.
  void stopAt(llvm::ArrayRef<mlir::Value> values);
  std::optional<Split> wantedSplit;
  /// Other values whose formulas are of interest.
  std::function<bool(mlir::Value)> alsoInlines;

private:
  int add(Node node);
  int addOp(mlir::Operation *like, llvm::ArrayRef<int> operands, mlir::Type type);
  int element(mlir::Value tensor, llvm::ArrayRef<mlir::AffineExpr> indices);
  int ofLinalg(mlir::linalg::LinalgOp op, unsigned result,
               llvm::ArrayRef<mlir::AffineExpr> indices);
  int ofBody(mlir::linalg::LinalgOp op, mlir::Value scalar,
             llvm::ArrayRef<mlir::AffineExpr> loopsOf, llvm::DenseMap<mlir::Value, int> &known);
  bool isWorthInlining(mlir::Value tensor, llvm::ArrayRef<mlir::AffineExpr> indices);
  void addDependent(mlir::Value value);

  const Loops &loops;
  mlir::linalg::LinalgOp root;
  unsigned reducedLoop;
  std::vector<Node> nodes;
  std::map<std::vector<const void *>, int> known;
  /// The values known to depend on the root, and their readers that were not yet visited, the first
  /// in the block on top: a query visits the dependent ops before it, not the whole block.
  llvm::DenseSet<mlir::Value> dependent; ///< looked up only
  std::vector<mlir::Operation *> pending;
  llvm::DenseSet<mlir::Operation *> reached; ///< looked up only
  llvm::DenseSet<mlir::Value> stops;         ///< looked up only
  llvm::SetVector<mlir::Operation *> seen;
  std::vector<mlir::Operation *> scratch; ///< scalars that stand for splat constants
};

/// The indices of a reshape's source at indices of its result; nothing if a loop would have to be
/// split, which `wanted` then describes.
std::optional<Indices> throughReshape(const Loops &loops, mlir::Operation *reshape,
                                      llvm::ArrayRef<mlir::AffineExpr> indices,
                                      std::optional<Split> &wanted);

} // namespace tessera::dist

#endif // TESSERA_LIB_TRANSFORMS_RECOGNIZE_ELEMENTEXPRESSIONS_H
