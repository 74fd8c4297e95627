//===- Generator.h - Random valid programs ----------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Generates a program from a seed: one or two meshes, a function of random ops over
// tensors of awkward sizes, and annotations wherever they are allowed. All programs are
// valid, so that every refusal by a pass is a finding; values stay moderate, so that
// results can be compared within a tolerance.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_FUZZ_GENERATOR_H
#define TESSERA_FUZZ_GENERATOR_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <string>
#include <vector>

namespace tessera::fuzz {

/// Limits of a generated program.
struct GeneratorOptions {
  int64_t maxOps = 10;           ///< ops of a program: from 1 to this many
  int64_t maxSize = 17;          ///< largest extent of a dimension
  int64_t maxDevices = 12;       ///< of a mesh
  int64_t maxAxes = 3;           ///< of a mesh
  bool twoMeshes = true;         ///< some programs have two, with a reshard between
  bool partials = true;          ///< partial annotations
  bool controlFlow = true;       ///< loops and branches
  bool differentiable = false;   ///< floats are f64, and every op has a derivative
  std::vector<std::string> only; ///< kinds of ops to generate; empty: all
};

/// A program and the properties of its results.
struct GeneratedProgram {
  struct Result {
    /// No float sum or product precedes it: it must be the same bit for bit under any cut of the
    /// program.
    bool exact = false;
    /// Bound on its magnitude: rounding errors are small relative to it, even if the value itself
    /// cancels to zero.
    double bound = 0;
  };
  mlir::OwningOpRef<mlir::ModuleOp> module; ///< the function is called `main`
  std::vector<Result> results;
  int64_t runs = 1;  ///< of the whole program; more than one if results feed arguments
  int64_t steps = 1; ///< contractions and reductions in sequence, for the tolerance
};

/// The allowed names in `only`.
std::vector<std::string> kindNames();

/// The program of a seed: deterministic for given options. The context must have the dialects of
/// programs loaded.
GeneratedProgram generate(mlir::MLIRContext *context, uint64_t seed,
                          const GeneratorOptions &options);

} // namespace tessera::fuzz

#endif // TESSERA_FUZZ_GENERATOR_H
