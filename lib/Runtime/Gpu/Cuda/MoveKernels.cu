//===- MoveKernels.cu - Copies, reductions and fills of boxes -------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What `GpuDriver::move` launches on a GPU. MoveKernels.ptx is made of this by
//
//   nvcc -std=c++17 -ptx -arch=compute_80 MoveKernels.cu -o MoveKernels.ptx
//   sed -i 's/^.version .*/.version 8.3/' MoveKernels.ptx   # for drivers from CUDA 12.3
//
// and embedded in the runtime, so that building needs no compiler of CUDA. The
// bodies are plain C++: unittests/Runtime compiles them for the host.
//
//===----------------------------------------------------------------------===//

#include "DeviceScalars.h"
#include "MoveArguments.h"

using namespace tessera::runtime::gpu;

/// Elements from the starts of the buffers to element `index` of the box.
TESSERA_DEVICE void placeOf(const MoveArguments &a, long long index, long long &source,
                            long long &target) {
  long long row = index / a.run;
  source = target = index - row * a.run;
  TESSERA_NO_UNROLL
  for (int d = a.loops - 1; d >= 0; --d) {
    long long outer = row / a.extents[d], place = row - outer * a.extents[d];
    source += place * a.source[d];
    target += place * a.target[d];
    row = outer;
  }
}

template <typename T> TESSERA_DEVICE void copyBox(const MoveArguments &a, long long begin,
                                                  long long step) {
  TESSERA_NO_UNROLL
  for (long long i = begin; i < a.elements; i += step) {
    long long source, target;
    placeOf(a, i, source, target);
    T value = static_cast<const T *>(a.sources[0])[source];
    TESSERA_NO_UNROLL
    for (int t = 0; t < a.numTargets; ++t)
      static_cast<T *>(a.targets[t])[target] = value;
  }
}

template <typename T> TESSERA_DEVICE void fillBox(const MoveArguments &a, long long begin,
                                                  long long step) {
  T value = static_cast<T>(a.value);
  TESSERA_NO_UNROLL
  for (long long i = begin; i < a.elements; i += step) {
    long long source, target;
    placeOf(a, i, source, target);
    TESSERA_NO_UNROLL
    for (int t = 0; t < a.numTargets; ++t)
      static_cast<T *>(a.targets[t])[target] = value;
  }
}

template <typename T> TESSERA_DEVICE T combine(int kind, T a, T b) {
  if (kind == kReduceProd)
    return a * b;
  if (kind == kReduceMax) // a NaN stays
    return a != a || a > b ? a : b;
  if (kind == kReduceMin)
    return a != a || a < b ? a : b;
  return a + b;
}

/// Values stored as S, combined in the order of the sources as T.
template <typename S, typename T>
TESSERA_DEVICE void reduceBox(const MoveArguments &a, T scale, long long begin, long long step) {
  TESSERA_NO_UNROLL
  for (long long i = begin; i < a.elements; i += step) {
    long long source, target;
    placeOf(a, i, source, target);
    T value = static_cast<T>(static_cast<const S *>(a.sources[0])[source].load());
    TESSERA_NO_UNROLL
    for (int s = 1; s < a.numSources; ++s)
      value = combine(a.reduction, value,
                      static_cast<T>(static_cast<const S *>(a.sources[s])[source].load()));
    if (a.scaled)
      value = static_cast<T>(value * scale);
    TESSERA_NO_UNROLL
    for (int t = 0; t < a.numTargets; ++t)
      static_cast<S *>(a.targets[t])[target].store(value);
  }
}

TESSERA_DEVICE void moveBox(const MoveArguments &a, long long begin, long long step) {
  if (a.mode == kMoveCopy) {
    switch (a.width) {
    case 16:
      return copyBox<Sixteen>(a, begin, step);
    case 8:
      return copyBox<unsigned long long>(a, begin, step);
    case 4:
      return copyBox<unsigned>(a, begin, step);
    case 2:
      return copyBox<unsigned short>(a, begin, step);
    default:
      return copyBox<unsigned char>(a, begin, step);
    }
  }
  if (a.mode == kMoveFill) {
    switch (a.width) {
    case 8:
      return fillBox<unsigned long long>(a, begin, step);
    case 4:
      return fillBox<unsigned>(a, begin, step);
    case 2:
      return fillBox<unsigned short>(a, begin, step);
    default:
      return fillBox<unsigned char>(a, begin, step);
    }
  }
  switch (a.dtype) {
  case kTypeF64:
    return reduceBox<Plain<double>, double>(a, a.scale, begin, step);
  case kTypeF32:
    return reduceBox<Plain<float>, float>(a, static_cast<float>(a.scale), begin, step);
  case kTypeF16:
    return reduceBox<Half, float>(a, static_cast<float>(a.scale), begin, step);
  case kTypeBF16:
    return reduceBox<Brain, float>(a, static_cast<float>(a.scale), begin, step);
  case kTypeI64:
    return reduceBox<Plain<long long>, long long>(a, 1, begin, step);
  case kTypeI32:
    return reduceBox<Plain<int>, int>(a, 1, begin, step);
  case kTypeI16:
    return reduceBox<Plain<short>, int>(a, 1, begin, step);
  case kTypeI8:
    return reduceBox<Plain<signed char>, int>(a, 1, begin, step);
  }
}

#ifdef __CUDACC__
TESSERA_KERNEL tessera_move(const __grid_constant__ MoveArguments a) {
  moveBox(a, blockIdx.x * 256ll + threadIdx.x, gridDim.x * 256ll);
}
#endif
