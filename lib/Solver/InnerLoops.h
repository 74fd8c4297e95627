//===- InnerLoops.h - The inner loops of the search -------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_SOLVER_INNERLOOPS_H
#define TESSERA_LIB_SOLVER_INNERLOOPS_H

#include <cstdint>

namespace tessera::solver {

/// result[a][b] = max(result[a][b], values[b] - values[a]); n x n.
void maxDifferences(double *result, const double *values, int32_t n);

/// out[i] = min(out[i], min over k of left[k][i] + right[offset[k] + i]) for n columns.
void minOfSums(double *out, int32_t n, const double *left, int32_t leftStride, const double *right,
               const int64_t *offset, int32_t count);

/// out[i] = min(out[i], min over k of left[k][i] + shift[k]).
void minOfShifted(double *out, int32_t n, const double *left, int32_t leftStride,
                  const double *shift, int32_t count);
void minOfShifted(float *out, int32_t n, const float *left, int32_t leftStride, const float *shift,
                  int32_t count);

/// The largest left[i] - right[i].
double largestDifference(const double *left, const double *right, int64_t n);

/// out[i] = left[i] + right[i].
void addRows(double *out, int32_t n, const double *left, const double *right);
/// out[i] = left[i] + shift.
void addShift(double *out, int32_t n, const double *left, double shift);

} // namespace tessera::solver

#endif // TESSERA_LIB_SOLVER_INNERLOOPS_H
