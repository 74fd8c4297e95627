//===- PendingMessages.h - Diagnostics of an attempt ------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_VARIANTS_PENDINGMESSAGES_H
#define TESSERA_LIB_VARIANTS_PENDINGMESSAGES_H

#include "mlir/IR/Diagnostics.h"

namespace tessera {

/// Keeps diagnostics other than errors until the attempt is chosen.
class PendingMessages {
public:
  explicit PendingMessages(mlir::MLIRContext *context)
      : handler(context, [this](mlir::Diagnostic &message) {
          if (message.getSeverity() == mlir::DiagnosticSeverity::Error)
            return mlir::failure();
          pending.push_back(std::move(message));
          return mlir::success();
        }) {}

  /// Keeps only the first `count`.
  void keep(size_t count) {
    pending.erase(pending.begin() + static_cast<std::ptrdiff_t>(count), pending.end());
  }
  size_t size() const { return pending.size(); }
  std::vector<mlir::Diagnostic> take() { return std::move(pending); }
  void replace(std::vector<mlir::Diagnostic> messages) { pending = std::move(messages); }
  std::vector<mlir::Diagnostic> copy() const {
    std::vector<mlir::Diagnostic> copies;
    for (const mlir::Diagnostic &message : pending) {
      mlir::Diagnostic &same = copies.emplace_back(message.getLocation(), message.getSeverity());
      same << message.str();
      for (const mlir::Diagnostic &note : const_cast<mlir::Diagnostic &>(message).getNotes())
        same.attachNote(note.getLocation()) << note.str();
    }
    return copies;
  }

private:
  std::vector<mlir::Diagnostic> pending;
  mlir::ScopedDiagnosticHandler handler;
};

} // namespace tessera

#endif // TESSERA_LIB_VARIANTS_PENDINGMESSAGES_H
