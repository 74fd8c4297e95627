//===- GpuEmitter.h - Emit the code of one thread of a launch ---*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Emits the members of a group for one thread. A thread processes *chunks*: V consecutive
// iterations of a flat index, as vectors. The results of a member at a chunk stay in registers for
// members that need them at the same chunk, loads are shared, and stores are delayed to the end, so
// memory is read once and written once.
//
//   flat: the index counts the classes; own loops, all reduced, are loops of the thread
//   rows: the index counts a member's own loops; the thread's row gives the class indices
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_CODEGEN_CUDA_GPUEMITTER_H
#define TESSERA_CODEGEN_CUDA_GPUEMITTER_H

#include "GpuEmitState.h"
#include "GpuIndexWriter.h"
#include "GpuLaunchBuilder.h"

namespace tessera::codegen {

/// Applies `exchange` to the words of 32 bits of a scalar, and returns the value of the results.
mlir::Value overWords(mlir::OpBuilder &b, mlir::Location loc, mlir::Value value,
                      llvm::function_ref<mlir::Value(mlir::Value)> exchange);

class GpuEmitter : GpuEmitState, IndexWriter {
public:
  /// `live`: whether a temporary is used after the launch.
  GpuEmitter(GpuLaunchBuilder &launch, const GpuGroup &group, GpuLaunchInfo &info,
             llvm::function_ref<bool(mlir::Value)> live, const GpuLaunchLimits &limits)
      : IndexWriter(launch.b, launch.loc, needsWideIndices(group, limits)), launch(launch),
        group(group), info(info), live(live), sharedLimit(limits.sharedBytes) {}

  /// Emits the launch. Fails if it cannot recompute a scalar (`launch.reason`).
  mlir::FailureOr<GpuShape> emit();

private:
  mlir::LogicalResult captureAll();

  // GpuEmitFlat.cpp
  GpuShape emitFlat();
  void flatBody(Chunk chunk);
  void flatMember(const GpuMember &member, const Chunk &chunk);
  bool isWindow(const GpuMember &member) const;
  Values overWindow(const GpuMember &member, Values accumulators,
                    llvm::function_ref<Values(Values)> body);
  Values ownLoops(const GpuMember &member, unsigned depth, Values accumulators,
                  llvm::function_ref<Values(Values)> body);
  int64_t flatLanes() const;

  // GpuEmitSlices.cpp
  int64_t slicesFor(int64_t chunks) const;
  GpuShape emitSlices(int64_t count, int64_t lanes);
  void slicedMember(const GpuMember &member, const Chunk &chunk);
  Values sliceLoop(const GpuMember &member, Values accumulators,
                   llvm::function_ref<Values(mlir::Value, Values)> body);

  // GpuEmitPermute.cpp
  GpuShape emitPermute();
  void overTile(const Tile &tile, int64_t runs, int64_t width, bool alongLast,
                llvm::function_ref<void(mlir::Value last, mlir::Value across)> body);
  void stage(const GpuMember &member, const GpuAccess &access, const Tile &tile);
  mlir::Value loadStaged(const Staged &staged, mlir::Type element, const Chunk &chunk);

  // GpuEmitRows.cpp
  GpuShape emitRows();
  void rowMember(const GpuMember &member);
  void rowElements(const GpuMember &member, const Space &space, int64_t volume);
  void rowReduction(const GpuMember &member, const Space &space, int64_t volume);
  Chunk rowChunk(const Space &space, int64_t volume, int64_t number);
  void placeChunk(Chunk &chunk, const Space &space, mlir::Value index, bool inner);
  mlir::Value within(const Chunk &chunk);
  void overChunks(const Space &space, int64_t volume, Values &carried,
                  llvm::function_ref<void(Chunk, Values &)> body);
  void overBursts(const Space &space, int64_t volume, Values &carried,
                  llvm::function_ref<void(llvm::ArrayRef<Chunk>, Values &)> body);
  void loadPerRow(const GpuMember &member, const Key *later = nullptr);
  void loadFirst(const GpuMember &member, llvm::ArrayRef<Chunk> chunks);
  void keepInside(const Chunk &chunk, mlir::ValueRange next, Values &current);
  std::map<Key, Range> ranges() const;
  Key keyInRow(const GpuMember &member, const GpuAccess &access) const;

  // GpuTeam.cpp
  void planTeam();
  bool shift(llvm::ArrayRef<const GpuMember *> members, int64_t volume, Space &space) const;

  // GpuReduce.cpp
  mlir::Value neutralOf(mlir::vector::CombiningKind kind, mlir::Type element, int64_t lanes);
  mlir::Value overLanes(mlir::Value value, mlir::vector::CombiningKind kind);
  mlir::Value teamReduce(mlir::Value value, mlir::vector::CombiningKind kind);
  mlir::Value shuffleXor(mlir::Value value, int64_t distance);

  // GpuOnlineSum.cpp
  class ShiftAnalysis;
  bool areOthersRecomputed(const GpuMember &member) const;
  void findOnlineSums();
  bool rowOnline(const GpuMember &member);
  void walkOnline(OnlineSum &online);
  void endOnline(OnlineSum &online);
  mlir::Value splatOf(mlir::Type type, const llvm::APFloat &number);
  mlir::Value finiteOr0(mlir::Value value);
  mlir::Value expDifference(mlir::Value from, mlir::Value to, mlir::FloatType element);
  void markTerms(mlir::Operation *loop, mlir::Value shift);
  mlir::Value shiftSum(mlir::Value sum, mlir::Value from, mlir::Value to);

  // GpuEmitWalk.cpp
  void walkRows();
  void prefetchNext(mlir::Value last);
  bool placeSums();
  void beginSums(Values &carried);
  void addRow(Sums &sums, llvm::MutableArrayRef<mlir::Value> current);
  void endSums(mlir::ValueRange carried);
  int64_t roundsOf(const Sums &sums) const;

  // GpuEmitLongRows.cpp
  void planLongRows(int64_t working);
  llvm::SmallVector<const GpuMember *> usersOf(const Key &key) const;
  bool planWalks(const std::map<Key, Range> &all);
  void recomputeAll(std::map<Key, Range> &all);
  void endFilling();
  void planSlots();
  bool placeSlots(const std::map<Key, Range> &ranges);
  bool isOnlyAt(const Key &key) const;
  bool isRecomputable(const GpuMember &member, const std::map<Key, Range> &ranges) const;
  void recomputeChunk(const GpuMember &member, const Chunk &chunk);
  Slot *slotOf(Key key);
  const GpuMember *producerOf(Key key) const;
  mlir::Value loadSlot(const Slot &slot, mlir::Type element, const Chunk &chunk);
  void storeSlot(Slot &slot, mlir::Value value, const Chunk &chunk);

  // GpuEmitter.cpp
  Values body(const GpuMember &member, const Chunk &chunk, mlir::ValueRange accumulators);
  mlir::Value loadTogether(mlir::memref::LoadOp load, const mlir::IRMapping &mapping,
                           const Chunk &chunk);

  // GpuEmitIndex.cpp
  mlir::Value indexOf(const GpuMember &member, unsigned loop, const Chunk &chunk);
  static int64_t ownVolume(const GpuMember &member);
  static bool needsWideIndices(const GpuGroup &group, const GpuLaunchLimits &limits);
  mlir::Value evaluate(const FlatAccess &access, mlir::Value at);
  mlir::Value digit(llvm::ArrayRef<int64_t> extents, unsigned place, const Chunk &chunk);

  // GpuEmitAddress.cpp
  int64_t lanesFor(llvm::ArrayRef<const GpuMember *> members, int64_t volume) const;
  FlatAccess outerOf(const GpuMember &member, const GpuAccess &access) const;
  FlatAccess innerOf(const GpuMember &member, const GpuAccess &access) const;
  bool isAligned(const GpuMember &member, const GpuAccess &access, int64_t lanes) const;
  bool isAligned(const GpuMember &member, const GpuAccess &access, const Chunk &chunk) const;
  int64_t elementsOf(const GpuMember &member, const GpuAccess &access) const;
  void countLoad(const GpuMember &member, const GpuAccess &access);
  void countStore(const GpuMember &member, const GpuAccess &access);
  Key keyOf(const GpuMember &member, const GpuAccess &access, const Chunk &chunk) const;
  mlir::Value address(const GpuMember &member, const GpuAccess &access, const Chunk &chunk,
                      int64_t lane);
  void note(mlir::Value root, bool store, int64_t bytes, llvm::StringRef why);
  void noteNarrow(const GpuMember &member, const GpuAccess &access, bool store, const Chunk &chunk);

  // GpuEmitMemory.cpp
  mlir::Value load(const GpuMember &member, const GpuAccess &access, const Chunk &chunk);
  mlir::Value loadMemory(const GpuMember &member, const GpuAccess &access, const Chunk &chunk,
                         const Key &key);
  void store(const GpuMember &member, const GpuAccess &access, const Chunk &chunk,
             mlir::Value value);
  void storeNow(const GpuMember &member, const GpuAccess &access, const Chunk &chunk,
                mlir::Value value);
  void flush(mlir::Value root);
  static bool mayOverlap(const Key &left, const Key &right);
  void settle(const Key &key, const Chunk &chunk, mlir::Value root, bool writing);

  GpuLaunchBuilder &launch;
  const GpuGroup &group;
  GpuLaunchInfo &info;
  llvm::function_ref<bool(mlir::Value)> live;
  int64_t sharedLimit;

  std::map<Key, mlir::Value> cache;
  std::vector<std::pair<Key, Pending>> pending; ///< in the order of the first store
  /// The keys of loads and stores of memory since the last barrier, regardless of chunks.
  std::map<void *, std::set<Key>> loadedBy, storedBy;
  llvm::DenseMap<mlir::Value, mlir::Value> dynamicOffsets;
  /// Maps vectors of consecutive indices that start at a multiple of their length to their first
  /// index.
  llvm::DenseMap<mlir::Value, mlir::Value> consecutive;
  /// Set in a loop of the thread: values are not cached beyond it, and stores are not delayed.
  bool inLoop = false;
  /// The indices of the current member's loops; null for unknown ones.
  llvm::SmallVector<mlir::Value> ownIndex;
  /// The member whose own loops are unrolled, and the indices of its loops.
  const GpuMember *windowed = nullptr;
  llvm::SmallVector<int64_t> window;
  std::set<Key> windowsRead; ///< keys of their loads, over all windows

  // flat, with several threads for a result
  int64_t slices = 1, sliceColumns = 1; ///< threads of a result; results of a block
  mlir::Value slice, column;            ///< of the thread
  std::optional<unsigned> slicedLoop;   ///< of the current member

  // permute
  std::map<Key, Staged> staged;
  mlir::Value lastIndex, acrossIndex; ///< of the chunk within its tile

  // rows
  mlir::Value row, rowValid, lane;
  int64_t team = 1, teams = 1;
  int64_t sharedReductions = 0; ///< emitted so far: combined through shared memory, with a barrier
  int64_t resident = 1;         ///< blocks of a multiprocessor, for which registers must suffice
  std::map<int64_t, Space> spaces; ///< by volume
  /// Rows processed by loops: values in shared memory, and values that their users recompute.
  std::map<Key, Slot> slots;
  llvm::SmallVector<std::pair<mlir::Type, int64_t>> placed; ///< type and number of elements
  std::map<Key, const GpuMember *> recomputed;
  llvm::SmallVector<Slot *> filling; ///< written in the current loops over a row's chunks
  std::set<Key> walked;              ///< values that only one walk over the row needs
  int64_t burst = 1;                 ///< chunks that a thread processes at once
  std::vector<OnlineSum> onlineSums;
  /// Rows processed in order.
  std::vector<Sums> allSums;
  SumsIn sumsIn = SumsIn::registers;
};

} // namespace tessera::codegen

#endif // TESSERA_CODEGEN_CUDA_GPUEMITTER_H
