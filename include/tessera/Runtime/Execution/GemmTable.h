//===- GemmTable.h - Which provider multiplies which matrices ---*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// By default a table in the code chooses, so that equal machines compute equal bits.
// TESSERA_GEMM in the environment chooses otherwise:
//
//   onednn, openblas, packed, generated   this provider wherever it supports a product
//   measured                              the fastest, by a table in the cache folder
//
// A measured table has an entry per class of f32 products: the powers of two of m, n
// and k, and what is transposed. A class is measured when it is first met, and kept.
// Bits are equal from run to run with the same table, not between a run that measures
// and one with another table; so the processes of a job use the table in the code.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_EXECUTION_GEMMTABLE_H
#define TESSERA_RUNTIME_EXECUTION_GEMMTABLE_H

#include "tessera/Runtime/Execution/Gemm.h"

#include <functional>
#include <map>
#include <mutex>

namespace tessera::runtime {

/// A table of measured providers in a file. Callable from any thread.
class GemmTable {
public:
  /// Seconds that a provider takes for a problem.
  using Measure = std::function<double(const GemmProvider &, const GemmProblem &)>;

  /// `path` is empty for no file. `key` names the machine and the libraries: a file with another
  /// one is replaced. A damaged file is ignored with one remark on standard error.
  GemmTable(std::string path, std::string key, Measure measure);

  /// The provider for an f32 problem; measured, and written to the file, on the first call for its
  /// class.
  const GemmProvider *choose(const GemmProblem &problem);

  /// The class of a problem: "nt 7 10 8".
  static std::string classOf(const GemmProblem &problem);
  /// The problem that is measured for the class of `problem`.
  static GemmProblem representativeOf(const GemmProblem &problem);

private:
  /// The entries of the file that are valid.
  std::map<std::string, const GemmProvider *> read();
  void write();

  const std::string path, key;
  const Measure measure;
  std::mutex mutex;
  std::map<std::string, const GemmProvider *> entries; // guarded by the mutex
  bool remarked = false;
};

/// Times a provider on matrices of ones: the least of several calls.
double measureGemm(const GemmProvider &provider, const GemmProblem &problem);

/// An error if TESSERA_GEMM is not a choice, or names a library that is not installed.
Status checkGemmChoice();
/// Whether TESSERA_GEMM leaves it to this process to multiply f32 by the runtime's tiles.
bool choosesPanels();
/// What multiplies matrices in this process: "onednn 2.6.3, packed avx512, openblas 0.3.21", the
/// preferred first, and how it is chosen. Opens the libraries.
std::string describeGemmChoice();

} // namespace tessera::runtime

#endif // TESSERA_RUNTIME_EXECUTION_GEMMTABLE_H
