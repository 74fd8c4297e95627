//===- Check.h - Sharded execution equals unsharded execution ---*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_FUZZ_CHECK_H
#define TESSERA_FUZZ_CHECK_H

#include "tessera/Fuzz/Generator.h"
#include "tessera/Fuzz/PlantedFaults.h"
#include "tessera/Interpreter/Interpreter.h"

#include <functional>
#include <map>

namespace tessera::fuzz {

/// Coverage of a set of programs.
struct Coverage {
  int64_t programs = 0;
  int64_t withCollectives = 0; ///< programs with at least one, not counting slices
  int64_t withUneven = 0;      ///< programs with a value whose size is not divisible
  int64_t withEmpty = 0;       ///< programs in which a device has an empty part of a value
  int64_t weak = 0;            ///< programs with a result that is all NaN or constant
  int64_t directions = 0;      ///< directions along which a gradient was compared with differences
  int64_t kinks = 0;           ///< directions along which it could not be, due to kinks
  std::map<std::string, int64_t> collectives; ///< ops by kind
  /// `linalg.matmul shard`, … : results of ops by sharding: shard, partial, replicate, and also
  /// uneven and empty.
  std::map<std::string, int64_t> placements;

  Coverage &operator+=(const Coverage &other);
};

/// How the sharded program is made and run.
struct CheckOptions {
  /// Pass pipelines from the program to the annotated one, and from there to the local view. The
  /// caller registers the passes (Phases/Register.h).
  std::string propagate = "builtin.module(tessera-pipeline{compile-to=normalized},dist-cut-scans,"
                          "dist-lift-rows,dist-block-shifts,"
                          "tessera-pipeline{compile-from=normalized compile-to=planned})";
  std::string partition = "builtin.module(tessera-pipeline{compile-from=planned compile-to=fused})";
  interpreter::Poison poison = interpreter::Poison::nan;
  /// Runs the local view of `main` `steps` times, starting with global inputs; empty: the
  /// interpreter. Returns the results of the last step. Fails after an error at the context.
  std::function<mlir::FailureOr<llvm::SmallVector<interpreter::Tensor>>(
      mlir::ModuleOp local, llvm::ArrayRef<interpreter::Tensor> inputs, int64_t steps)>
      runLocal;
};

/// The outcome of one comparison, with the reason if it failed.
struct CheckResult {
  enum Status {
    passed,
    referenceFailed, ///< the global view failed: the program itself is wrong
    pipelineFailed,  ///< a pass failed or produced invalid IR
    localFailed,     ///< the local view failed, or replicas differ
    mismatch,        ///< a result differs
  };
  Status status = passed;
  std::string message; ///< one line
  Coverage coverage;
};
/// `mismatch`, …
const char *toString(CheckResult::Status status);

/// One fault in one program: whether it was applicable, and the result of the comparison.
struct PlantedCheck {
  const PlantedFault *fault;
  bool applied = false;
  CheckResult result;

  bool found() const { return applied && result.status != CheckResult::passed; }
};

/// Runs `program` in the global view on inputs of `seed`, applies the passes, runs the local view
/// on the same inputs, and compares: bit for bit if the result is exact or integer, else within the
/// tolerance. `local`, if given, is set to the local view as far as it was produced. If the program
/// passes, each fault of `planted` is made in a copy of its local view, and compared.
CheckResult check(const GeneratedProgram &program, uint64_t seed, const CheckOptions &options,
                  mlir::OwningOpRef<mlir::ModuleOp> *local = nullptr,
                  std::vector<PlantedCheck> *planted = nullptr);

/// How derivatives are compared with differences.
struct GradientOptions {
  int directions = 4;      ///< number of directions along which derivatives are compared
  double tolerance = 1e-6; ///< relative
  bool sharded = true;     ///< whether the derivative is then also checked by `check`
  CheckOptions check;
};

/// Differentiates `main` with respect to all its floating-point arguments (dist-autodiff) and
/// compares with central differences along random directions, on inputs of `seed`: floats must be
/// f64. Directions in which the differences do not converge, due to a kink, are skipped
/// (`coverage.kinks`). Then checks that the sharded and the unsharded derivative are equal.
CheckResult checkGradient(const GeneratedProgram &program, uint64_t seed,
                          const GradientOptions &options);

} // namespace tessera::fuzz

#endif // TESSERA_FUZZ_CHECK_H
