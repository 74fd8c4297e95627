//===- OpCosts.h - What an op takes on a device -----------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The roofline of the ops of a function (S. Williams et al., "Roofline", CACM
// 52(4), 2009): the longer of computing and of moving what reaches memory. The one
// price that propagation, search and the report use, before partitioning and after
// it.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TRANSFORMS_OPCOSTS_H
#define TESSERA_TRANSFORMS_OPCOSTS_H

#include "tessera/Sharding/ShardingRule.h"
#include "tessera/Sharding/Topology.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <memory>
#include <tuple>

namespace tessera::dist {

class Liveness;

class OpCosts {
public:
  /// Both must outlive this; the function must not change.
  OpCosts(mlir::func::FuncOp function, const sharding::Topology &topology);
  ~OpCosts();

  /// Whether a slice is put where the rest already is: only the slice is written.
  bool isInPlace(mlir::tensor::InsertSliceOp insert) const;
  /// By operand, then by result, how often an op takes it through memory: once, not at all, or the
  /// share of a load that falls to it where several ops of a kernel use the value. Nothing is what
  /// a kernel hands on inside, what is made where it is read (fills, constants, views), and an
  /// initial value that the op does not look at.
  llvm::SmallVector<double> loadsAndStores(mlir::Operation *op) const;
  /// What an op takes, however it is cut.
  struct Work {
    llvm::SmallVector<double, 4> bytes;    ///< by operand, then by result: of an element, to memory
    llvm::SmallVector<bool, 4> isSelected; ///< by operand: a row counts, not all; empty: none is
    double rows = 1;                       ///< iterations of which one counts
    double operations = 0;                 ///< of an iteration
    std::string dtype;                     ///< that they compute in

    /// Any total order, for maps.
    friend bool operator<(const Work &a, const Work &b) {
      return std::tie(a.bytes, a.isSelected, a.rows, a.operations, a.dtype) <
             std::tie(b.bytes, b.isSelected, b.rows, b.operations, b.dtype);
    }
  };
  Work workOf(mlir::Operation *op) const;
  /// Seconds of one execution on one of `devices` devices that run it at once. `iterations` are
  /// those of its loops on the device; `elements` are those that the device has of each operand,
  /// then of each result; what is no ranked tensor has any number. Of a look-up or a sum written at
  /// indices (Rules/Selection.h) the selected iterations count alone, and what they read.
  double seconds(const Work &work, double iterations, llvm::ArrayRef<double> elements,
                 int64_t devices) const;
  double seconds(mlir::Operation *op, double iterations, llvm::ArrayRef<double> elements,
                 int64_t devices) const {
    return seconds(workOf(op), iterations, elements, devices);
  }
  /// Seconds of what an op sends inside when its factors are cut so.
  double communicationSeconds(mlir::Operation *op, const sharding::FactorAxes &axes,
                              const sharding::Mesh &mesh) const;
  /// The same for an op of the local view, whose operands are whole on the device.
  double seconds(mlir::Operation *op, int64_t devices) const;

private:
  void addSelection(mlir::linalg::GenericOp op);

  std::unique_ptr<Liveness> lives;
  /// Ops of a kernel that read a value; looked up, never iterated.
  llvm::DenseMap<std::pair<mlir::Value, int64_t>, int> readers;
  /// What a look-up selects from; looked up, never iterated.
  struct Selection {
    double rows = 1;                       ///< iterations of which one counts
    llvm::SmallVector<bool, 4> isSelected; ///< by operand: a row of it, not all
  };
  llvm::DenseMap<mlir::Operation *, Selection> selections;
  const sharding::Topology &topology;
};

/// Whether an op computes or moves tensors on a device: it has a sharding rule, and is more than a
/// constraint.
bool hasCost(mlir::Operation *op);
/// Whether an op sums over several tensors at once: contractions and convolutions, whose work is
/// larger than their operands. Which of them are calls of a matrix library the kernels decide.
bool combinesTensors(mlir::Operation *op);
/// Arithmetic operations of one iteration of an op's loops; none of an op without a rule.
int64_t operationsOf(mlir::Operation *op);
/// Iterations of a loop whose count is data (computed bounds, `scf.while`), for times: more than one,
/// since what is moved out of a loop is saved in each iteration.
inline constexpr int64_t kUnknownTrips = 4;
/// How often an op runs in one execution of its function: the product over the loops around it, at
/// least one for each and `kUnknownTrips` where the count is not known.
double tripsOf(mlir::Operation *op);

} // namespace tessera::dist

#endif // TESSERA_TRANSFORMS_OPCOSTS_H
