//===- DeviceScalars.h - Element types in device code -----------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For the .cu files of this folder: plain C++, so that unit tests compile them
// for the host.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_GPU_CUDA_DEVICESCALARS_H
#define TESSERA_LIB_RUNTIME_GPU_CUDA_DEVICESCALARS_H

#ifdef __CUDACC__
#define TESSERA_DEVICE __device__ __forceinline__
#define TESSERA_NO_UNROLL _Pragma("unroll 1")
#define TESSERA_KERNEL extern "C" __global__ void __launch_bounds__(256)
#else
#include <cmath>
#include <cstring>
#define TESSERA_DEVICE inline
#define TESSERA_NO_UNROLL
#endif

// Bitwise conversions: identical on every architecture and on the host.
TESSERA_DEVICE float asFloat(unsigned bits) {
  float value;
  memcpy(&value, &bits, 4);
  return value;
}
TESSERA_DEVICE unsigned asBits(float value) {
  unsigned bits;
  memcpy(&bits, &value, 4);
  return bits;
}

struct Bfloat16 { // bfloat16, rounded to nearest even
  unsigned short bits;
  TESSERA_DEVICE float load() const { return asFloat(static_cast<unsigned>(bits) << 16); }
  TESSERA_DEVICE void store(float value) {
    unsigned all = asBits(value);
    if (value != value)
      bits = static_cast<unsigned short>((all >> 16) | 0x40);
    else
      bits = static_cast<unsigned short>((all + 0x7fff + ((all >> 16) & 1)) >> 16);
  }
};

struct Half { // IEEE half, rounded to nearest even
  unsigned short bits;
  TESSERA_DEVICE float load() const {
    unsigned sign = (bits & 0x8000u) << 16, rest = bits & 0x7fffu;
    if (rest >= 0x7c00)
      return asFloat(sign | 0x7f800000u | (rest & 0x3ff) << 13);
    // Scaled by 2^112: denormals become normal by the multiplication.
    return asFloat(sign | asBits(asFloat(rest << 13) * asFloat(0x77800000u)));
  }
  TESSERA_DEVICE void store(float value) {
    unsigned all = asBits(value), sign = (all >> 16) & 0x8000u, rest = all & 0x7fffffffu;
    if (rest > 0x7f800000u) {
      bits = static_cast<unsigned short>(sign | 0x7e00u | ((rest >> 13) & 0x3ff));
    } else if (rest >= 0x477ff000u) { // rounds to infinity
      bits = static_cast<unsigned short>(sign | 0x7c00u);
    } else if (rest < 0x38800000u) { // a denormal: adding 2^-1 rounds it
      bits = static_cast<unsigned short>(sign | (asBits(asFloat(rest) + 0.5f) - 0x3f000000u));
    } else {
      unsigned rounded = rest + 0xfffu + ((rest >> 13) & 1);
      bits = static_cast<unsigned short>(sign | ((rounded - 0x38000000u) >> 13));
    }
  }
};

template <typename T> struct Plain {
  T value;
  TESSERA_DEVICE T load() const { return value; }
  TESSERA_DEVICE void store(T stored) { value = stored; }
};

#endif // TESSERA_LIB_RUNTIME_GPU_CUDA_DEVICESCALARS_H
