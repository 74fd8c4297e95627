//===- Explain.cpp - tessera explain ---------------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Driver/Commands.h"
#include "tessera/Driver/Compilation.h"
#include "tessera/Driver/Memory.h"

#include "llvm/Support/raw_ostream.h"

using namespace tessera;

int tessera::explain(const ExplainOptions &options) {
  Compilation compilation(options);
  if (mlir::failed(compilation.toLocalView()))
    return 1;
  mlir::FailureOr<Report> report = compilation.report();
  if (mlir::failed(report))
    return 1;
  if (mlir::failed(compilation.toSteps()))
    return 1;
  report->peakMemoryBytes = peakMemory(compilation.module());
  if (options.json.empty()) {
    report->printTable(llvm::outs());
    return 0;
  }
  llvm::json::Value json = report->toJson();
  if (options.timing)
    json.getAsObject()->insert({"timing", compilation.timing()});
  return writeText(options.json, llvm::formatv("{0:2}\n", json).str());
}
