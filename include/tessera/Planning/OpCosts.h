//===- OpCosts.h - Cost of an op on a device --------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The roofline of the ops of a function (S. Williams et al., "Roofline", CACM
// 52(4), 2009): the longer of the times of computation and of memory accesses. The
// one cost of ops for propagation, search and the report, before and after
// partitioning.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PLANNING_OPCOSTS_H
#define TESSERA_PLANNING_OPCOSTS_H

#include "tessera/Sharding/ShardingRule.h"
#include "tessera/Sharding/Topology.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <memory>
#include <tuple>

namespace tessera::dist {

class Liveness;

/// The cost model of the ops of one function on one machine.
class OpCosts {
public:
  /// Both must outlive this; the function must not change.
  OpCosts(mlir::func::FuncOp function, const sharding::Topology &topology);
  ~OpCosts();

  /// Whether an insertion, or another update of `dest`, is in place: only what changes is written.
  bool isInPlace(mlir::tensor::InsertSliceOp insert) const {
    return isInPlace(insert.getDest(), insert.getResult());
  }
  bool isInPlace(mlir::Value dest, mlir::Value result) const;
  /// By operand, then by result, the number of its loads or stores: one, none, or a fraction of a
  /// load that several ops of a kernel share. None for values inside a kernel, values recomputed at
  /// their uses (fills, constants, views), and inits that the op does not read.
  llvm::SmallVector<double> loadsAndStores(mlir::Operation *op) const;
  /// The work of an op, independent of its cut.
  struct Work {
    llvm::SmallVector<double, 4> bytes;    ///< by operand, then by result: per element, to memory
    llvm::SmallVector<bool, 4> isSelected; ///< as `bytes`: only selected elements; empty: none
    double rows = 1;                       ///< iterations of which one counts
    double operations = 0;                 ///< per iteration
    std::string dtype;                     ///< of the operations

    /// Any total order, for maps.
    friend bool operator<(const Work &a, const Work &b) {
      return std::tie(a.bytes, a.isSelected, a.rows, a.operations, a.dtype) <
             std::tie(b.bytes, b.isSelected, b.rows, b.operations, b.dtype);
    }
  };
  Work workOf(mlir::Operation *op) const;
  const sharding::Topology &machine() const { return topology; }
  /// The same as if the op were a kernel of its own, which is known without the function: it loads
  /// all operands, and updates an operand in place if nothing else reads it.
  static Work workAlone(mlir::Operation *op);
  /// Seconds of one execution on one of `devices` devices that run it at once. `iterations` are
  /// those of its loops on the device; `elements` are those of each operand, then of each result,
  /// on the device, with any number for other values than ranked tensors. For a look-up or a sum
  /// into computed indices (Rules/Selection.h) only the selected iterations count, with their
  /// reads.
  double seconds(const Work &work, double iterations, llvm::ArrayRef<double> elements,
                 int64_t devices) const {
    return seconds(topology, work, iterations, elements, devices);
  }
  static double seconds(const sharding::Topology &topology, const Work &work, double iterations,
                        llvm::ArrayRef<double> elements, int64_t devices);
  double seconds(mlir::Operation *op, double iterations, llvm::ArrayRef<double> elements,
                 int64_t devices) const {
    return seconds(workOf(op), iterations, elements, devices);
  }
  /// Seconds of an op's own communication for a cut of its factors.
  static double communicationSeconds(const sharding::Topology &topology, mlir::Operation *op,
                                     const sharding::FactorAxes &axes, const sharding::Mesh &mesh);
  /// The same for an op of the local view, whose operands are whole on the device.
  double seconds(mlir::Operation *op, int64_t devices) const;

private:
  /// The selection of a look-up; looked up, never iterated.
  struct Selection {
    double rows = 1;                       ///< iterations of which one counts
    llvm::SmallVector<bool, 4> isSelected; ///< by operand, then by result: a row of it, not all
  };
  static std::optional<Selection>
  selectionOf(mlir::linalg::GenericOp op,
              llvm::function_ref<bool(mlir::Value dest, mlir::Value result)> isInPlace);
  static Work workOf(mlir::Operation *op, llvm::ArrayRef<double> loadsAndStores,
                     const Selection *selection);

  std::unique_ptr<Liveness> lives;
  /// Ops of a kernel that read a value; looked up, never iterated.
  llvm::DenseMap<std::pair<mlir::Value, int64_t>, int> readers;
  llvm::DenseMap<mlir::Operation *, Selection> selections;
  const sharding::Topology &topology;
};

/// Whether an op computes or moves tensors on a device: it has a sharding rule, and is not a
/// constraint.
bool hasCost(mlir::Operation *op);
/// Whether an op sums over several tensors at once: contractions and convolutions, whose work is
/// larger than their operands. Code generation decides which of them call a matrix library.
bool combinesTensors(mlir::Operation *op);
/// Arithmetic operations of one iteration of an op's loops; 0 for an op without a rule.
int64_t operationsOf(mlir::Operation *op);
/// Iterations assumed for a loop whose count is data (computed bounds, `scf.while`): more than one,
/// so that hoisting from it has a gain.
inline constexpr int64_t kUnknownTrips = 4;
/// How often an op runs in one execution of its function: the product over the loops around it,
/// each with its known count, at least one, or `kUnknownTrips`.
double tripsOf(mlir::Operation *op);

} // namespace tessera::dist

#endif // TESSERA_PLANNING_OPCOSTS_H
