//===- Annotations.h - Random meshes and shardings --------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_FUZZ_ANNOTATIONS_H
#define TESSERA_LIB_FUZZ_ANNOTATIONS_H

#include "Random.h"
#include "tessera/Dialect/Dist/IR/Dist.h"
#include "tessera/Fuzz/Generator.h"
#include "tessera/Sharding/Mesh.h"

namespace tessera::fuzz {

/// The reductions that a partial annotation may name.
struct PartialChoice {
  bool allowed = false;
  bool avg = false; ///< floats only; n copies add up to the value except for rounding
};

/// Random meshes, and shardings on them in both spellings.
class Annotations {
public:
  Annotations(Random &random, const GeneratorOptions &options) : random(random), options(options) {}

  /// One to three axes, one to `maxDevices` devices; ids are in order, shuffled, or have gaps.
  sharding::Mesh mesh(std::string name, std::string axisPrefix);
  /// A second mesh: of the same devices, of some of them, or of others.
  sharding::Mesh meshBeside(const sharding::Mesh &first, std::string name);
  /// A sharding of a tensor of some rank, as a user writes it.
  dist::ShardingAttr sharding(mlir::MLIRContext *context, const sharding::Mesh &mesh, int64_t rank,
                              PartialChoice partial);
  /// The first dimension is cut over one axis, whose extent is returned, too; others are whole.
  std::pair<dist::ShardingAttr, int64_t> rows(mlir::MLIRContext *context,
                                              const sharding::Mesh &mesh);
  /// Leaves everything to the compiler: names only the mesh.
  dist::ShardingAttr open(mlir::MLIRContext *context, const sharding::Mesh &mesh);

private:
  std::string byAxis(const sharding::Mesh &mesh, int64_t rank, PartialChoice partial);
  std::string byDimension(const sharding::Mesh &mesh, int64_t rank, PartialChoice partial);
  std::string partialKind(PartialChoice partial);

  Random &random;
  const GeneratorOptions &options;
};

} // namespace tessera::fuzz

#endif // TESSERA_LIB_FUZZ_ANNOTATIONS_H
