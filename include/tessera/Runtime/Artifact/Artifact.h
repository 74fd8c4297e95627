//===- Artifact.h - The file of a compiled program --------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The container of docs/step-format.md: header, section table and the sections
// program, report, kernels, constants, gpu.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_ARTIFACT_ARTIFACT_H
#define TESSERA_RUNTIME_ARTIFACT_ARTIFACT_H

#include "tessera/Runtime/Artifact/CpuKernels.h"
#include "tessera/Runtime/Artifact/GpuKernels.h"

namespace tessera::runtime {

/// The content of a compiled program's file, one member for each kind of section.
struct Artifact {
  Program program;
  std::string report;              ///< JSON; may be empty
  std::vector<CpuKernels> kernels; ///< one per CPU; empty without launches or for a GPU
  Bytes constants;                 ///< for slots of space `constant`
  GpuModule gpu = {};              ///< the kernels for a GPU or its emulation; empty for the CPU

  /// FNV-1a 64 of the serialized program and its constants: the same on all ranks of a job.
  uint64_t fingerprint() const;
};

/// The bytes of the file.
Bytes serialize(const Artifact &artifact);

/// Whether bytes begin like an artifact, which may still be damaged.
bool isArtifact(std::string_view bytes);

/// Reads an artifact from memory after checking magic, version, size, checksums and every
/// reference. `origin` names it in messages.
Expected<Artifact> parseArtifact(const std::byte *data, size_t size, const std::string &origin);

/// The same from a file. Errors start with the path.
Expected<Artifact> readArtifact(const std::string &path);

/// Verifies, then writes atomically through a temporary file that is synced and renamed.
Status writeArtifact(const Artifact &artifact, const std::string &path);

} // namespace tessera::runtime

#endif // TESSERA_RUNTIME_ARTIFACT_ARTIFACT_H
