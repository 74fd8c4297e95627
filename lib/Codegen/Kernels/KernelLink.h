//===- KernelLink.h - Objects to a shared object ----------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_CODEGEN_KERNELS_KERNELLINK_H
#define TESSERA_LIB_CODEGEN_KERNELS_KERNELLINK_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/LogicalResult.h"

#include <string>
#include <utility>
#include <vector>

namespace tessera::codegen {

/// A name exported by the shared object, and its symbol in one of the objects.
using ExportedSymbol = std::pair<std::string, std::string>;

/// Links `objects` (contents of ELF objects) with ld.lld, run as a process in a temporary
/// directory of its own. `linker` is a path; if empty, searches ld.lld-22 or ld.lld on the PATH and
/// in LLVM's bin directory. `foreign`: for another architecture, so that functions of libm are
/// found among the libraries of the program that loads the result. On failure `error` has the
/// reason or the linker's message.
llvm::FailureOr<std::vector<char>> linkSharedObject(llvm::ArrayRef<std::string> objects,
                                                    llvm::ArrayRef<ExportedSymbol> exports,
                                                    const std::string &linker, bool foreign,
                                                    std::string &error);

} // namespace tessera::codegen

#endif // TESSERA_LIB_CODEGEN_KERNELS_KERNELLINK_H
