//===- Gemm.h - Matrix products through providers ---------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One interface to matrix products. oneDNN and OpenBLAS are opened for the first product that needs
// them (neither is needed to build or to start); tiles of the runtime compute f32 without oneDNN,
// and a plain loop covers the rest. Every call runs only on the calling thread: the executor splits
// large products itself.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_EXECUTION_GEMM_H
#define TESSERA_RUNTIME_EXECUTION_GEMM_H

#include "tessera/Runtime/Artifact/Program.h"

namespace tessera::runtime {

/// One product C = epilogue(A · B (+ C) (+ bias)), row-major, leading dimensions in elements; like
/// GemmStep without batch. Providers compute A · B (+ C).
struct GemmProblem {
  DType dtype = DType::f32;
  DType resultDType = DType::f32;
  int64_t m = 0, n = 0, k = 0;
  bool transA = false, transB = false;
  int64_t lda = 0, ldb = 0, ldc = 0;
  bool accumulate = false;
  const void *bias = nullptr; ///< n elements of resultDType; f32, f16, bf16 only
  Epilogue epilogue = Epilogue::none;
};

/// A library that multiplies matrices. Implementations are stateless and callable from any thread.
class GemmProvider {
public:
  virtual ~GemmProvider() = default;
  virtual const char *name() const = 0;
  /// Of the library, or what the provider uses of the processor; may be empty.
  virtual std::string version() const { return ""; }
  virtual bool supports(const GemmProblem &problem) const = 0;
  /// Whether the bits of an element are the same in whatever rows and columns are computed with it.
  virtual bool hasBitsOfAnyCut() const { return false; }
  /// Requires supports(problem) and m, n, k > 0.
  virtual void run(const GemmProblem &problem, const void *a, const void *b, void *c) const = 0;
};

/// By name: "packed", "direct" (null without vectors of fused multiply-adds), "onednn", "openblas"
/// (null when the library is not installed), "generated".
const GemmProvider *gemmProvider(std::string_view name);

/// The provider for a problem by the table in the code; never null. The choice depends only on the
/// problem and on which libraries are installed.
const GemmProvider *shippedGemmProvider(const GemmProblem &problem);

/// The same as TESSERA_GEMM says (GemmTable.h).
const GemmProvider *chooseGemmProvider(const GemmProblem &problem);

/// Multiplies with the chosen provider; f16 and bf16 by the instructions for them, or else widened
/// to f32 first, and rounded after the epilogue. Empty extents are allowed: k = 0 writes zeros
/// unless it accumulates.
void multiply(const GemmProblem &problem, const void *a, const void *b, void *c);

/// Batches, rows and columns of a step.
struct GemmPiece {
  int64_t batchBegin = 0, batchEnd = 0, rowBegin = 0, rowEnd = 0, columnBegin = 0, columnEnd = 0;
};

/// A partition of a step into pieces that may be computed in parallel.
struct GemmCut {
  /// Block edges are multiples of these: rows of B are read in runs of 1 KiB.
  static constexpr int64_t kRows = 32, kColumns = 256;

  int64_t batches = 1, byRows = 1, byColumns = 1;
  int64_t rows = 0, columns = 0; ///< of a block

  int64_t size() const { return batches * byRows * byColumns; }
  GemmPiece piece(const GemmStep &step, int64_t index) const;
};

/// At most `most` pieces, and about that many if the step has enough blocks.
GemmCut cutGemm(const GemmStep &step, int64_t most);
/// The cut used by all executors. It depends only on the product: libraries choose kernels by
/// extents, so equal values have equal bits for any number of workers.
GemmCut cutGemm(const GemmStep &step);

/// How a product reads its right operand: as the provider does, in panels (PackedGemm.h), or from
/// panels that are packed before. The latter two have equal bits, and require multipliesPanels.
enum class RightOperand { plain, panels, packed };

/// The cut for so many workers. Fewer pieces read less twice, so there are as many as these workers
/// need where bits do not depend on the cut; else it is the one of all executors.
GemmCut cutGemm(const GemmStep &step, RightOperand right, int64_t workers);

/// Multiplies a piece of a step. `bias` is null if the step has none.
void multiply(const GemmStep &step, const void *a, const void *b, void *c, const void *bias,
              const GemmPiece &piece, RightOperand right = RightOperand::plain);

/// Whether this process multiplies matrices of that type by panels (PackedGemm.h): f32 unless
/// TESSERA_GEMM names another provider, bf16 by instructions for it.
bool multipliesPanels(DType dtype);
/// The bytes of a k x n matrix in panels, on any machine. f32 and bf16.
int64_t packedBytes(DType dtype, int64_t k, int64_t n);
/// Packs columns [begin, end) of B, the right operand of a step without stride. `begin` is a
/// multiple of GemmCut::kColumns, `end` too, or n. Requires multipliesPanels.
void packColumns(const GemmStep &step, const void *b, int64_t begin, int64_t end, void *packed);

} // namespace tessera::runtime

#endif // TESSERA_RUNTIME_EXECUTION_GEMM_H
