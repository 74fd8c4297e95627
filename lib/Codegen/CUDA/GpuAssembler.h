//===- GpuAssembler.h - NVIDIA's assembler, where it is ---------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Cubins come from libnvJitLink, called in this process, or from ptxas, a process each. Both hold
// the same assembler; the library does without the 12 ms that each start of ptxas takes.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_CODEGEN_CUDA_GPUASSEMBLER_H
#define TESSERA_CODEGEN_CUDA_GPUASSEMBLER_H

#include "mlir/Support/LLVM.h"

#include <cstdint>
#include <string>

namespace tessera::codegen {

/// The functions of libnvJitLink (nvJitLink.h of the CUDA toolkit, 12.4 or later), opened for ever.
/// Threads may call them at once, with a handle each.
struct JitLink {
  using Handle = void *;
  int (*create)(Handle *, uint32_t, const char *const *) = nullptr;
  int (*destroy)(Handle *) = nullptr;
  int (*addData)(Handle, int, const void *, size_t, const char *) = nullptr;
  int (*complete)(Handle) = nullptr;
  int (*cubinSize)(Handle, size_t *) = nullptr;
  int (*cubin)(Handle, void *) = nullptr;
  int (*infoSize)(Handle, size_t *) = nullptr;
  int (*info)(Handle, char *) = nullptr;
  int (*errorSize)(Handle, size_t *) = nullptr;
  int (*errorText)(Handle, char *) = nullptr;
  int (*getVersion)(unsigned *, unsigned *) = nullptr;

  /// Opens `file`, a path or a name that the loader knows, and sets `path` to where it was. False
  /// with a reason when it cannot be opened or lacks a function.
  bool open(const std::string &file, std::string &path, std::string &error);
  /// "13.0": what the library says of itself.
  std::string version() const;
  /// A cubin for `arch` ("sm_NN") from PTX; `log` gets what `ptxas -v` says. Fails with the
  /// library's reason in `error`.
  mlir::FailureOr<std::string> assemble(const std::string &ptx, llvm::StringRef arch,
                                        std::string &log, std::string &error) const;
};

struct Assembler {
  std::string path;
  /// What the cache knows it by: path and bytes of the file, and the library's version.
  std::string key;
  /// No functions: `path` is ptxas.
  JitLink library;
};

/// `asked` (a library where its name has ".so", else a ptxas) or, when that is empty, the first of:
/// library or ptxas of CUDA_HOME, CUDA_PATH, the toolkit whose bin is on the PATH and
/// /usr/local/cuda; then the library that the loader finds. An empty path: none, with the reason.
Assembler findAssembler(const std::string &asked, std::string &error);

} // namespace tessera::codegen

#endif // TESSERA_CODEGEN_CUDA_GPUASSEMBLER_H
