//===- GpuAssembler.h - Find NVIDIA's assembler -----------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Cubins come from libnvJitLink, called in this process, or from ptxas, run as one process per
// cubin. Both contain the same assembler; the library avoids the 12 ms that each start of ptxas
// takes.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_CODEGEN_CUDA_GPUASSEMBLER_H
#define TESSERA_CODEGEN_CUDA_GPUASSEMBLER_H

#include "mlir/Support/LLVM.h"

#include <cstdint>
#include <string>

namespace tessera::codegen {

/// The functions of libnvJitLink (nvJitLink.h of the CUDA toolkit, 12.4 or later). The library
/// stays open until the process exits. Several threads may call them at once, each with a handle of
/// its own.
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

  /// Opens `file`, a path or a name that the loader resolves, and sets `path` to its location.
  /// Returns false with a reason if the file cannot be opened or lacks a function.
  bool open(const std::string &file, std::string &path, std::string &error);
  /// The version that the library reports, such as "13.0".
  std::string version() const;
  /// Assembles PTX to a cubin for `arch` ("sm_NN"); `log` gets the output of `ptxas -v`. Fails with
  /// the library's reason in `error`.
  mlir::FailureOr<std::string> assemble(const std::string &ptx, llvm::StringRef arch,
                                        std::string &log, std::string &error) const;
};

struct Assembler {
  std::string path;
  /// The assembler's part of cache keys: path and size in bytes of the file, and the library's
  /// version.
  std::string key;
  /// Without functions if `path` is ptxas.
  JitLink library;
};

/// Returns `asked` (a library if its name contains ".so", else a ptxas). If `asked` is empty,
/// returns the first of: library or ptxas of CUDA_HOME, CUDA_PATH, the toolkit whose bin is on the
/// PATH and /usr/local/cuda; then the library that the loader finds. If there is none, the path is
/// empty and `error` has the reason.
Assembler findAssembler(const std::string &asked, std::string &error);

} // namespace tessera::codegen

#endif // TESSERA_CODEGEN_CUDA_GPUASSEMBLER_H
