//===- Load.cpp - Read programs and print diagnostics ---------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Driver/Load.h"
#include "tessera/Driver/Supervisor.h"

#include "tessera/Dialect/Dist/IR/ValueShardings.h"
#include "tessera/Runtime/Artifact/Artifact.h"

#include "mlir/Parser/Parser.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/SourceMgr.h"

#include <set>

using namespace mlir;
using namespace tessera;

LineDiagnostics::LineDiagnostics(MLIRContext *context, bool remarks, llvm::raw_ostream &os)
    : ScopedDiagnosticHandler(context) {
  setHandler([remarks, &os](Diagnostic &diagnostic) {
    auto print = [&os](Diagnostic &one, StringRef kind) {
      if (!isa<UnknownLoc>(one.getLocation())) // otherwise it is on the command line
        os << toString(one.getLocation()) << ": ";
      os << kind << ": " << one << "\n";
    };
    switch (diagnostic.getSeverity()) {
    case DiagnosticSeverity::Error:
      print(diagnostic, "error");
      break;
    case DiagnosticSeverity::Warning:
      print(diagnostic, "warning");
      break;
    case DiagnosticSeverity::Remark:
      if (remarks)
        print(diagnostic, "remark");
      return success();
    case DiagnosticSeverity::Note:
      print(diagnostic, "note");
    }
    for (Diagnostic &note : diagnostic.getNotes())
      print(note, "note");
    return success();
  });
}

OwningOpRef<ModuleOp> tessera::loadProgram(MLIRContext *context, const std::string &path,
                                           const std::optional<std::string> &text,
                                           llvm::raw_ostream &errors) {
  if (!text && StringRef(path).ends_with(".py")) {
    errors << path << ": error: a Python file, expected a program in MLIR; import it with "
           << "python3 -m tessera.import_jax " << path << ":FUNCTION\n";
    return {};
  }
  llvm::ErrorOr<std::unique_ptr<llvm::MemoryBuffer>> buffer =
      text ? llvm::MemoryBuffer::getMemBufferCopy(*text, path)
           : llvm::MemoryBuffer::getFileOrSTDIN(path);
  if (std::error_code code = buffer.getError()) {
    errors << path << ": error: cannot be read: " << code.message() << "\n";
    return {};
  }
  if (runtime::isArtifact((*buffer)->getBuffer())) {
    errors << path << ": error: a compiled artifact, expected a program in MLIR; run it with "
           << "tessera-exec " << path << "\n";
    return {};
  }
  noteProgram((*buffer)->getBufferIdentifier().str(), (*buffer)->getBuffer());
  if (std::optional<std::string> error = checkNesting(**buffer)) {
    errors << *error << "\n";
    return {};
  }
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(std::move(*buffer), llvm::SMLoc());
  // Parses unknown ops so that the message can name them; they are rejected here.
  context->allowUnregisteredDialects();
  OwningOpRef<ModuleOp> module = parseSourceFile<ModuleOp>(sources, context);
  context->allowUnregisteredDialects(false);
  if (module && module
                    ->walk([](Operation *op) {
                      if (op->isRegistered())
                        return WalkResult::advance();
                      op->emitError() << "'" << op->getName()
                                      << "' is not a known operation; programs are written "
                                      << "in func, linalg, tensor, arith, math, scf and dist";
                      return WalkResult::interrupt();
                    })
                    .wasInterrupted())
    return {};
  return module;
}

/// The program of a function of the local view, else null.
static StringAttr partOf(func::FuncOp function) {
  return dist::isLocalView(function)
             ? function->getAttrOfType<StringAttr>(dist::DistDialect::kPartOf)
             : StringAttr();
}

/// Whether a function is a part of a program named after another function.
static bool isLaterPart(func::FuncOp function) {
  StringAttr program = partOf(function);
  return program && program.getValue() != function.getSymName();
}

/// Prints the available functions.
static void reportNoFunction(ArrayRef<func::FuncOp> candidates, const std::string &name,
                             const std::string &path, llvm::raw_ostream &errors) {
  std::string names;
  for (func::FuncOp function : candidates)
    names += (names.empty() ? "" : ", ") + function.getSymName().str();
  if (!name.empty())
    errors << "error: --function '" << name << "': " << path << " has no such function; it has "
           << (names.empty() ? "no public function" : names) << "\n";
  else if (candidates.empty())
    errors << path << ": error: the file has no public function; a program is one, best @main\n";
  else
    errors << path << ": error: there is no @main and " << candidates.size()
           << " public functions; choose one with --function: " << names << "\n";
}

func::FuncOp tessera::selectFunction(ModuleOp module, const std::string &name,
                                     const std::string &path, llvm::raw_ostream &errors) {
  SmallVector<func::FuncOp> candidates;
  func::FuncOp chosen;
  for (func::FuncOp function : module.getOps<func::FuncOp>()) {
    if (function.isPublic() && !isLaterPart(function))
      candidates.push_back(function);
    if (function.getSymName() == (name.empty() ? "main" : name))
      chosen = function;
  }
  if (!chosen && name.empty() && candidates.size() == 1)
    chosen = candidates.front();
  if (!chosen) {
    reportNoFunction(candidates, name, path, errors);
    return {};
  }
  chosen.setPublic();
  // Callees of the chosen function are needed; other public functions are other programs.
  std::set<StringRef> needed;
  SmallVector<func::FuncOp> work;
  // The same holds for the other parts of a program of several meshes.
  std::set<StringRef> parts;
  for (func::FuncOp function : module.getOps<func::FuncOp>())
    if (function == chosen || (partOf(chosen) && partOf(function) == partOf(chosen))) {
      needed.insert(function.getSymName());
      parts.insert(function.getSymName());
      work.push_back(function);
    }
  SymbolTable symbols(module);
  while (!work.empty()) {
    func::FuncOp function = work.pop_back_val();
    auto need = [&](FlatSymbolRefAttr name) {
      auto callee = name ? symbols.lookup<func::FuncOp>(name.getValue()) : func::FuncOp();
      if (callee && needed.insert(callee.getSymName()).second)
        work.push_back(callee);
    };
    function.walk([&](func::CallOp call) {
      need(call.getCalleeAttr());
      // A call names its derivative, even if it is not used.
      need(call->getAttrOfType<FlatSymbolRefAttr>(dist::DistDialect::kCustomVjp));
    });
  }
  for (func::FuncOp function : llvm::make_early_inc_range(module.getOps<func::FuncOp>())) {
    if (!needed.count(function.getSymName()))
      function.erase();
    else if (!parts.count(function.getSymName()))
      function.setPrivate();
  }
  return chosen;
}
