//===- Load.h - Loading programs and printing diagnostics -------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_DRIVER_LOAD_H
#define TESSERA_DRIVER_LOAD_H

#include "tessera/Support/Location.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

namespace tessera {

/// Prints each diagnostic as one line, `file:line:column: error: message`, followed by its notes;
/// remarks only if requested.
class LineDiagnostics : public mlir::ScopedDiagnosticHandler {
public:
  LineDiagnostics(mlir::MLIRContext *context, bool remarks, llvm::raw_ostream &os = llvm::errs());
};

/// Refuses text for which the upstream parser, or a walk over the parsed IR, would recurse deeper
/// than 1,000: brackets, aliases of aliases (each adds the nesting of its definition), and chains
/// of operators in one affine expression. On error the message is `file:line:column: error: …`.
std::optional<std::string> checkNesting(llvm::MemoryBufferRef text);

/// Reads a program from a file ("-": standard input), or `text` under that name. Null after one
/// printed error.
mlir::OwningOpRef<mlir::ModuleOp> loadProgram(mlir::MLIRContext *context, const std::string &path,
                                              const std::optional<std::string> &text = std::nullopt,
                                              llvm::raw_ostream &errors = llvm::errs());

/// Selects the function to compile: `name` if given, else @main, else the only public one. Erases
/// all other public functions, so that later phases concern one program. Null after one printed
/// error, which names the file `path`.
mlir::func::FuncOp selectFunction(mlir::ModuleOp module, const std::string &name,
                                  const std::string &path,
                                  llvm::raw_ostream &errors = llvm::errs());

} // namespace tessera

#endif // TESSERA_DRIVER_LOAD_H
