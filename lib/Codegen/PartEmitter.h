//===- PartEmitter.h - Emit one local function as a part --------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Walks a function in order and assigns every tensor a place in a buffer. The
// *root* of a value is the value whose buffer it is a view of. A buffer holds one
// root after the other; a step may overwrite the previous one only if it is dead
// (Timeline) and its buffer is not reserved.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_CODEGEN_PARTEMITTER_H
#define TESSERA_LIB_CODEGEN_PARTEMITTER_H

#include "ArenaPlan.h"
#include "tessera/Dialect/Rt/IR/Rt.h"
#include "tessera/Planning/Timeline.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/MapVector.h"

#include <deque>
#include <map>
#include <optional>

namespace tessera::codegen {

/// A buffer with its slots and current value.
struct Storage : Buffer {
  std::string name;
  mlir::ElementsAttr constant;                       ///< set: a read-only constant
  bool writable = true;                              ///< false: its value must be kept
  mlir::Value occupant;                              ///< its current root
  std::vector<std::pair<rt::SlotOp, int64_t>> slots; ///< with their offsets
};

class PartEmitter {
public:
  PartEmitter(mlir::func::FuncOp function, rt::PartOp part, bool reuse);

  /// Emits slots, homes and steps; sets the arena. Emits a diagnostic for ops without a step.
  mlir::LogicalResult emit();

private:
  /// A root and the offset of a view in its buffer.
  struct Place {
    Storage *storage = nullptr;
    mlir::Value root;
    int64_t offset = 0; ///< bytes
  };

  // Places (PartPlaces.cpp)
  static int64_t bytesOf(mlir::Type tensor);
  Storage *newStorage(mlir::Type type, const llvm::Twine &name);
  Storage *constantStorage(mlir::ElementsAttr value);
  /// Makes `root` the occupant of a buffer from `time` on.
  void assignStorage(mlir::Value root, Storage *storage, int64_t time);
  Place placeOf(mlir::Value value) const;
  mlir::Value slotOf(mlir::Value value);
  mlir::Value slotOf(Storage *storage, int64_t offset, mlir::Type tensor);
  /// The slot that holds a scalar operand of control flow.
  mlir::FailureOr<mlir::Value> slotOfScalar(mlir::Value scalar);
  /// Whether a step at `time` may overwrite `value`.
  bool isDead(mlir::Value value, int64_t time);
  /// The buffer reserved for `root` (a loop's carry, a result's home) if it is free before `time`.
  Storage *preferredStorage(mlir::Value root, int64_t time);
  void preferStorage(mlir::Value value, Storage *storage);
  void emitCopy(mlir::Location loc, mlir::Value source, Storage *target);
  /// Places a step's result that accumulates to `carried`: in its buffer if that is dead and
  /// `exclusive` (the step does not read it otherwise), else in a copy.
  void assignTied(mlir::Value result, mlir::Value carried, mlir::Operation *op, bool exclusive);
  void assignResult(mlir::Value result, mlir::Operation *op, const llvm::Twine &name);

  // Steps (PartEmitter.cpp)
  mlir::LogicalResult emitBlock(mlir::Block &block);
  mlir::LogicalResult emitOp(mlir::Operation *op);
  void emitCall(mlir::func::CallOp call);
  void emitCallBlocks(rt::CallBlocksOp call);
  /// The product that a call by blocks follows, with only views between; null if there is none.
  static mlir::Operation *joinedProduct(rt::CallBlocksOp call);
  struct Slots {
    llvm::SmallVector<mlir::Value> reads, writes;
  };
  Slots placeKernel(mlir::Operation *call, mlir::func::FuncOp kernel,
                    const llvm::SmallPtrSetImpl<Storage *> &busy);
  void emitGemm(mlir::Operation *op);
  void emitContraction(rt::ContractionOp op);
  mlir::LogicalResult emitCollective(mlir::Operation *op, mlir::Operation *timed, bool async);
  mlir::LogicalResult emitStart(dist::StartOp start);
  void emitSend(dist::SendOp send);
  void emitRecv(dist::RecvOp recv);

  // Control flow (PartControl.cpp)
  mlir::LogicalResult emitFor(mlir::scf::ForOp loop);
  mlir::LogicalResult emitWhile(mlir::scf::WhileOp loop);
  mlir::LogicalResult emitIf(mlir::scf::IfOp branch);
  /// Moves an init to the buffer of its carry.
  Storage *enterCarry(mlir::Value init, mlir::Value argument, mlir::Value result,
                      mlir::Operation *loop);
  /// Copies values to their required buffers at a block's end, as a parallel copy.
  void moveAtEnd(mlir::Operation *terminator, mlir::ValueRange values,
                 llvm::ArrayRef<Storage *> targets);
  /// Emits a block into a new region, then calls `atEnd`.
  mlir::LogicalResult emitInto(mlir::Region &region, mlir::Block &block,
                               llvm::function_ref<mlir::LogicalResult()> atEnd);
  /// The slot of a loop's counter, and its place while the loop runs.
  mlir::Value slotOfCounter(mlir::scf::ForOp loop);

  // The function's ends (PartEnds.cpp)
  void placeArguments();
  mlir::LogicalResult placeResults();
  void emitHomes();
  /// The layout of an argument or result; replicated when it has none.
  dist::ShardingAttr layoutOf(mlir::DictionaryAttr attributes, mlir::Type type);
  /// The local argument that result `index` feeds, or none.
  std::optional<unsigned> fedArgument(unsigned index);
  llvm::LogicalResult plan();

  mlir::func::FuncOp function;
  rt::PartOp part;
  bool reuse;
  dist::Timeline lives;
  mlir::OpBuilder slots; ///< declares slots
  mlir::OpBuilder homes; ///< after the slots
  mlir::OpBuilder steps;
  std::deque<Storage> storages; ///< stable addresses
  llvm::DenseMap<mlir::Value, Place> places;
  llvm::DenseMap<mlir::Value, Storage *> preferences;
  llvm::DenseMap<mlir::Attribute, Storage *> constants;
  llvm::DenseMap<std::tuple<Storage *, int64_t, mlir::Type>, mlir::Value> slotValues;
  llvm::DenseMap<mlir::Value, mlir::Value> tokens;
  std::vector<Storage *> argumentStorage;
  std::map<int64_t, unsigned> byOriginal; ///< arguments by their index in the program
  std::vector<Storage *> resultStorage;   ///< of results that feed an argument; else null
  std::vector<mlir::Value> resultSlots;
};

} // namespace tessera::codegen

#endif // TESSERA_LIB_CODEGEN_PARTEMITTER_H
