//===- SignatureAttrs.h - Attributes of arguments and results ---*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_DIALECT_DIST_IR_SIGNATUREATTRS_H
#define TESSERA_DIALECT_DIST_IR_SIGNATUREATTRS_H

#include "mlir/Interfaces/FunctionInterfaces.h"

namespace tessera::dist {

/// The attributes of all arguments and results of a function, modified and then written at once.
/// FunctionOpInterface::setArgAttr rebuilds the list of all arguments for each change, so a loop of
/// such calls takes time and memory quadratic in their number.
class SignatureAttrs {
public:
  explicit SignatureAttrs(mlir::FunctionOpInterface function) : function(function) {
    for (unsigned i = 0; i < function.getNumArguments(); ++i)
      arguments.emplace_back(function.getArgAttrDict(i));
    for (unsigned i = 0; i < function.getNumResults(); ++i)
      results.emplace_back(function.getResultAttrDict(i));
  }

  /// The modified attributes.
  mlir::NamedAttrList &ofArgument(unsigned index) { return arguments[index]; }
  mlir::NamedAttrList &ofResult(unsigned index) { return results[index]; }

  /// Writes them to the function.
  void write() {
    mlir::MLIRContext *context = function.getContext();
    auto dictionaries = [&](auto &lists) {
      llvm::SmallVector<mlir::DictionaryAttr> all;
      for (mlir::NamedAttrList &list : lists)
        all.push_back(list.getDictionary(context));
      return all;
    };
    function.setAllArgAttrs(dictionaries(arguments));
    function.setAllResultAttrs(dictionaries(results));
  }

private:
  mlir::FunctionOpInterface function;
  llvm::SmallVector<mlir::NamedAttrList> arguments, results;
};

} // namespace tessera::dist

#endif // TESSERA_DIALECT_DIST_IR_SIGNATUREATTRS_H
