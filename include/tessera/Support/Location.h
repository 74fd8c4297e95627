//===- Location.h - Locations as text ---------------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_SUPPORT_LOCATION_H
#define TESSERA_SUPPORT_LOCATION_H

#include "mlir/IR/Location.h"

#include <string>

namespace tessera {

/// `file:line:column` of a location, the outermost file position of a compound one.
inline std::string toString(mlir::Location loc) {
  std::string text;
  loc->walk([&](mlir::Location inner) {
    if (auto file = llvm::dyn_cast<mlir::FileLineColLoc>(inner)) {
      text = (file.getFilename().getValue() + ":" + llvm::Twine(file.getLine()) + ":" +
              llvm::Twine(file.getColumn()))
                 .str();
      return mlir::WalkResult::interrupt();
    }
    return mlir::WalkResult::advance();
  });
  return text.empty() ? "unknown location" : text;
}

} // namespace tessera

#endif // TESSERA_SUPPORT_LOCATION_H
