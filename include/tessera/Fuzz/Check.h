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

/// What a set of programs has exercised.
struct Coverage {
  int64_t programs = 0;
  int64_t withCollectives = 0; ///< programs with at least one, not counting slices
  int64_t withUneven = 0;      ///< programs with a value whose size does not divide
  int64_t withEmpty = 0;       ///< programs in which some device has no part of some value
  int64_t weak = 0;            ///< programs with a result that is all NaN, or constant
  int64_t directions = 0;      ///< along which a gradient was compared with differences
  int64_t kinks = 0;           ///< along which it could not be
  std::map<std::string, int64_t> collectives; ///< ops by kind
  /// `linalg.matmul shard`, … : results of ops by sharding: shard, partial, replicate, and
  /// uneven and empty besides.
  std::map<std::string, int64_t> placements;

  Coverage &operator+=(const Coverage &other);
};

struct CheckOptions {
  /// Passes from the program to the annotated one, and from there to the local view: those of the
  /// driver.
  std::string propagate = "builtin.module(dist-guard,dist-normalize,dist-propagate,"
                          "dist-sink-partials,dist-insert-reshards,dist-widen-partials,"
                          "dist-plan-reshards)";
  std::string partition =
      "builtin.module(dist-partition,dist-canonicalize-collectives,dist-fuse-collectives)";
  interpreter::Poison poison = interpreter::Poison::nan;
  /// How the local view of `main` is run `steps` times, beginning with global inputs; empty: by the
  /// interpreter. Gives the results of the last step. Fails after an error at the context.
  std::function<mlir::FailureOr<llvm::SmallVector<interpreter::Tensor>>(
      mlir::ModuleOp local, llvm::ArrayRef<interpreter::Tensor> inputs, int64_t steps)>
      runLocal;
};

struct CheckResult {
  enum Status {
    passed,
    referenceFailed, ///< the global view could not be run: the program itself is wrong
    pipelineFailed,  ///< a pass refused it, or wrote what does not verify
    localFailed,     ///< the local view could not be run, or replicas differ
    mismatch,        ///< a result differs
  };
  Status status = passed;
  std::string message; ///< one line
  Coverage coverage;
};
/// `mismatch`, …
const char *toString(CheckResult::Status status);

/// One fault in one program: whether it could be made there, and what the comparison says of it.
struct PlantedCheck {
  const PlantedFault *fault;
  bool applied = false;
  CheckResult result;

  bool found() const { return applied && result.status != CheckResult::passed; }
};

/// Runs `program` in the global view on inputs of `seed`, brings it through the passes, runs the
/// local view on the same inputs, and compares: bit for bit where the result is exact or integer,
/// else within the tolerance. `local`, when given, is set to the local view as far as it came. When
/// the program passes, each fault of `planted` is made in a copy of its local view, and compared.
CheckResult check(const GeneratedProgram &program, uint64_t seed, const CheckOptions &options,
                  mlir::OwningOpRef<mlir::ModuleOp> *local = nullptr,
                  std::vector<PlantedCheck> *planted = nullptr);

struct GradientOptions {
  int directions = 4;      ///< along which derivatives are compared
  double tolerance = 1e-6; ///< relative
  bool sharded = true;     ///< whether the derivative is then checked as `check` does
  CheckOptions check;
};

/// Differentiates `main` by all its floating-point arguments (dist-autodiff) and compares with
/// central differences along random directions, on inputs of `seed`: floats must be f64. Where the
/// differences do not converge, because of a kink, nothing is compared (`coverage.kinks`). Then
/// checks that the derivative is the same sharded and unsharded.
CheckResult checkGradient(const GeneratedProgram &program, uint64_t seed,
                          const GradientOptions &options);

} // namespace tessera::fuzz

#endif // TESSERA_FUZZ_CHECK_H
