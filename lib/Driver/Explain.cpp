//===- Explain.cpp - tessera explain --------------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Driver/Commands.h"
#include "tessera/Driver/Compilation.h"
#include "tessera/Support/Bytes.h"
#include "tessera/Variants/Arena.h"

#include "llvm/Support/raw_ostream.h"

using namespace tessera;

/// Warns if the planned program does not fit into a device of the machine.
static void warnOfMemory(Compilation &compilation, const ProgramOptions &options,
                         const Report &report) {
  auto peak = static_cast<double>(report.peakMemoryBytes);
  if (peak <= report.deviceMemoryBytes)
    return;
  compilation.errors() << options.file << ": warning: peak memory is " << bytesText(peak)
                       << " per device, a device of '" << report.machine << "' has "
                       << bytesText(report.deviceMemoryBytes)
                       << "; cut more tensors, bound the plan with --memory-budget, or name "
                          "another machine with --topology\n";
}

static mlir::FailureOr<Report> explainWith(Compilation &compilation,
                                           const ProgramOptions &options) {
  if (mlir::failed(compilation.toLocalView()))
    return mlir::failure();
  mlir::FailureOr<Report> report = compilation.report();
  if (mlir::failed(report) || mlir::failed(compilation.toSteps()))
    return mlir::failure();
  report->peakMemoryBytes = peakMemory(compilation.module());
  addProcessAlgorithms(*report, compilation.module());
  warnOfMemory(compilation, options, *report);
  return report;
}

static std::string jsonText(const Report &report, const Compilation &compilation, bool timing) {
  llvm::json::Value json = report.toJson();
  if (timing)
    json.getAsObject()->insert({"timing", compilation.timing()});
  return llvm::formatv("{0:2}\n", json).str();
}

int tessera::explain(const ExplainOptions &options) {
  Compilation compilation(options);
  mlir::FailureOr<Report> report = explainWith(compilation, options);
  if (mlir::failed(report))
    return 1;
  if (!options.json.empty())
    return writeText(options.json, jsonText(*report, compilation, options.timing));
  if (options.communication)
    report->printCommunication(llvm::outs());
  else
    report->printTable(llvm::outs());
  return 0;
}

std::optional<ReportTexts> tessera::explainTexts(const ExplainOptions &options) {
  Compilation compilation(options);
  mlir::FailureOr<Report> report = explainWith(compilation, options);
  if (mlir::failed(report))
    return std::nullopt;
  ReportTexts texts{jsonText(*report, compilation, options.timing), {}};
  llvm::raw_string_ostream table(texts.table);
  report->printTable(table);
  return texts;
}

std::optional<std::string> tessera::lowerProgram(const ProgramOptions &options,
                                                 const std::string &to) {
  Compilation compilation(options);
  std::optional<Phase> phase = parsePhase(to);
  if (!phase) {
    compilation.errors() << "error: unknown phase '" << to << "'; phases are " << phaseNames()
                         << "\n";
    return std::nullopt;
  }
  if (mlir::failed(compilation.toPhase(*phase)))
    return std::nullopt;
  std::string text;
  llvm::raw_string_ostream os(text);
  compilation.module().print(os);
  return text;
}
