//===- GpuTileWriter.h - Products of tiles ----------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A warp computes 16 rows of a product. Its results are fragments of 16 rows by 8 columns, which
// lie in registers as mma.sync.m16n8 leaves them (PTX ISA, "Matrix Fragments for mma.m16n8k16"):
//
//   lane l, g = l / 4, t = l % 4:   (g, 2t)   (g, 2t + 1)   (g + 8, 2t)   (g + 8, 2t + 1)
//
// Products of f32 may have the same layout, so that what follows a product is written once.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_CODEGEN_CUDA_GPUTILEWRITER_H
#define TESSERA_CODEGEN_CUDA_GPUTILEWRITER_H

#include "GpuEmitter.h"
#include "GpuLaunchBuilder.h"

namespace tessera::codegen {

/// Rows of a matrix in shared memory, `pitch` elements apart. `depth` is that of the operand,
/// rounded up to what a product takes at once; what is added is zero.
struct SharedTile {
  mlir::Value memory;
  mlir::Type element;
  int64_t rows = 0, depth = 0, pitch = 0;
};

/// 16 rows by 8 columns of a product: what a lane has of it.
using Fragment = std::array<mlir::Value, 4>;
using Fragments = llvm::SmallVector<Fragment>;

/// Writes launches whose blocks multiply tiles in shared memory.
class TileWriter {
public:
  TileWriter(GpuLaunchBuilder &launch, GpuLaunchInfo &info);

  /// Of a product: rows that a warp computes, columns of a fragment, products that are added at
  /// once.
  static constexpr int64_t kRows = 16, kColumns = 8, kDepth = 16;

  // Arithmetic.
  mlir::Value constant(int64_t value);
  mlir::Value real(double value);
  mlir::Value add(mlir::Value a, mlir::Value b);
  mlir::Value add(mlir::Value a, int64_t b);
  mlir::Value multiply(mlir::Value a, int64_t b);
  mlir::Value divide(mlir::Value a, int64_t b);
  mlir::Value remainder(mlir::Value a, int64_t b);
  mlir::Value less(mlir::Value a, mlir::Value b);
  mlir::Value least(mlir::Value a, mlir::Value b);
  mlir::Value greatest(mlir::Value a, mlir::Value b);
  mlir::Value select(mlir::Value condition, mlir::Value a, mlir::Value b);
  /// A loop of `begin`, `begin + step`, … below `end`, with what it carries.
  llvm::SmallVector<mlir::Value>
  loop(mlir::Value begin, mlir::Value end, int64_t step, mlir::ValueRange carried,
       llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::Value, mlir::ValueRange)> body);

  // Memory.
  /// A vector, or a scalar where the width is one.
  mlir::Value load(mlir::Value memory, mlir::Value offset, mlir::Type element, int64_t width);
  void put(mlir::Value value, mlir::Value memory, mlir::Value offset);
  /// A vector of a row of a tile.
  mlir::Value loadVector(const SharedTile &tile, mlir::Value row, mlir::Value column,
                         int64_t width);
  void barrier();
  /// Says why an access is narrow; adds the bytes of a tensor to those that the launch moves.
  void note(mlir::Value root, bool store, int64_t bytes, llvm::StringRef why);
  void count(mlir::Value root, bool store, int64_t times = 1);

  // Tensor cores.
  /// A register of the tensor cores is a word of two elements.
  mlir::Value toWord(mlir::Value pair);
  /// Four matrices of eight rows of 16 bytes; each lane says where a row is.
  llvm::SmallVector<mlir::Value> matrices(const SharedTile &tile, mlir::Value row,
                                          mlir::Value column, bool transposed);
  Fragment mma(mlir::ValueRange left, mlir::ValueRange right, const Fragment &sum,
               mlir::Type element);
  Fragments zeros(int64_t columns);
  /// Rows and columns of a fragment that the lane has: `row` from the warp's first, 0 or 1.
  mlir::Value rowOf(unsigned which);
  mlir::Value columnOf(size_t fragment, unsigned which);

  GpuLaunchBuilder &launch;
  mlir::OpBuilder &b;
  mlir::Location loc;
  GpuLaunchInfo &info;

protected:
  mlir::Value lane, warp, group, quad; ///< of the thread; its row and its columns in a fragment
};

inline llvm::SmallVector<mlir::Value> flatten(llvm::ArrayRef<Fragment> fragments) {
  llvm::SmallVector<mlir::Value> result;
  for (const Fragment &fragment : fragments)
    result.append(fragment.begin(), fragment.end());
  return result;
}
inline Fragments unflatten(mlir::ValueRange values) {
  Fragments result;
  for (size_t i = 0; i + 4 <= values.size(); i += 4)
    result.push_back({values[i], values[i + 1], values[i + 2], values[i + 3]});
  return result;
}

} // namespace tessera::codegen

#endif // TESSERA_CODEGEN_CUDA_GPUTILEWRITER_H
