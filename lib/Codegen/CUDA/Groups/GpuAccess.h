//===- GpuAccess.h - Memory accesses of an op of a kernel -------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Describes a linalg.generic on buffers as addresses: operand o at iteration (i0, i1, ...) is
// element
//
//   base + i0 * step[0] + i1 * step[1] + ...      of the buffer `root`,
//
// which is a kernel argument or a temporary. Views (slices, reshapes) are resolved: two ops access
// the same element exactly if root and address are the same.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_CODEGEN_CUDA_GPUACCESS_H
#define TESSERA_CODEGEN_CUDA_GPUACCESS_H

#include "../../Kernels/KernelNest.h"

namespace tessera::codegen {

struct GpuAccess {
  mlir::OpOperand *operand = nullptr;
  mlir::Type element;
  bool scalar = false; ///< a scalar value, not memory
  bool output = false;
  mlir::Value root;
  /// The view, if its offset is only known at run time; that offset is added to `base`.
  mlir::Value view;
  int64_t divisor = 0; ///< the offset of `view` is a multiple of it, in elements; 0: no `view`
  int64_t base = 0;
  llvm::SmallVector<int64_t> step; ///< per loop of the op; 0 for loops of one trip
};

/// One op of a launch.
struct GpuMember {
  mutable mlir::linalg::GenericOp op;
  llvm::SmallVector<int64_t> extents;
  llvm::SmallVector<bool> reduction; ///< per loop: some output does not depend on it
  llvm::SmallVector<GpuAccess> accesses;
  llvm::SmallVector<NestOutput> outputs;
  /// Buffers that the body reads at computed indices.
  llvm::SmallVector<mlir::Value> gathered;
  /// Per loop: its class in the group, or -1.
  llvm::SmallVector<int> classOf;

  /// Fails with a reason if an address is not a linear function or the body has no vector form.
  static mlir::FailureOr<GpuMember> get(mlir::linalg::GenericOp op, std::string &reason);

  bool hasReduction() const { return llvm::is_contained(reduction, true); }
  int64_t volume() const;
  /// Whether the op only writes values that do not depend on memory.
  bool isFill() const;
};

/// The underlying buffer of a view.
mlir::Value rootOf(mlir::Value view);

/// Bytes of an element in memory.
int64_t bytesOf(mlir::Type element);

/// An address as a function of one index p that counts some loops row-major:
///
///   base + (p % extent0) * step0 + (p / extent0 % extent1) * step1 + ...
///
/// with adjacent dimensions merged where they are contiguous. Equal functions are equal values.
struct FlatAccess {
  struct Dim {
    int64_t extent, step;
    bool operator==(const Dim &o) const { return extent == o.extent && step == o.step; }
    bool operator<(const Dim &o) const {
      return std::tie(extent, step) < std::tie(o.extent, o.step);
    }
  };
  llvm::SmallVector<Dim> dims; ///< innermost first; empty: one element

  static FlatAccess get(const GpuAccess &access, llvm::ArrayRef<int64_t> extents,
                        llvm::ArrayRef<unsigned> loops);
  /// Whether all p have the same address.
  bool isUniform() const { return dims.empty(); }
  /// The largest address minus the smallest. Steps must not be negative.
  int64_t span() const;
  /// Whether `lanes` consecutive p, starting at a multiple of `lanes`, are consecutive elements.
  bool isContiguous(int64_t lanes) const;
  /// Whether `lanes` consecutive p, starting at a multiple of `lanes`, are the same element.
  bool isRepeated(int64_t lanes) const;
  /// The number of distinct elements over all p.
  int64_t elements() const;
};

} // namespace tessera::codegen

#endif // TESSERA_CODEGEN_CUDA_GPUACCESS_H
