//===- CheckTools.h - Shared by checks of programs --------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_FUZZ_CHECKTOOLS_H
#define TESSERA_LIB_FUZZ_CHECKTOOLS_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"

#include <string>

namespace tessera::fuzz {

/// Keeps the first error instead of printing it.
class FirstError : public mlir::ScopedDiagnosticHandler {
public:
  explicit FirstError(mlir::MLIRContext *context) : ScopedDiagnosticHandler(context) {
    setHandler([this](mlir::Diagnostic &diagnostic) {
      if (diagnostic.getSeverity() == mlir::DiagnosticSeverity::Error && text.empty())
        text = diagnostic.str();
    });
  }
  std::string text;
};

/// Runs a textual pipeline, anchored on the module. Fails with an error if it does not parse.
mlir::LogicalResult runPasses(mlir::ModuleOp module, llvm::StringRef pipeline);

} // namespace tessera::fuzz

#endif // TESSERA_LIB_FUZZ_CHECKTOOLS_H
