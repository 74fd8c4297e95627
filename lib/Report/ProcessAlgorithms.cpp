//===- ProcessAlgorithms.cpp - Algorithms of processes in the report ------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Runtime/Ranks/Routes.h"
#include "tessera/Codegen/Compile.h"
#include "tessera/Report/Report.h"

using namespace tessera;

constexpr int64_t kMostDevices = 256;

/// Matches collectives of the report and of the program by kind and line, several on one line in
/// order.
void tessera::addProcessAlgorithms(Report &report, mlir::ModuleOp steps) {
  if (report.collectives.empty())
    return;
  mlir::FailureOr<codegen::SerializedProgram> serialized =
      codegen::serialize(steps, /*withConstants=*/false);
  if (mlir::failed(serialized) || serialized->program.numDevices() > kMostDevices)
    return;
  std::vector<int64_t> hosts;
  for (int64_t id = 0; report.devicesPerHost > 0 && id < serialized->program.numDevices(); ++id)
    hosts.push_back(id / report.devicesPerHost);
  auto all = runtime::algorithmsOf(serialized->program, hosts);
  if (!all)
    return;
  std::map<std::pair<std::string, std::string>, std::vector<std::vector<std::string>>> byLine;
  for (runtime::CollectiveRoutes &each : *all)
    byLine[{each.kind, each.loc}].push_back(std::move(each.algorithms));
  std::map<std::pair<std::string, std::string>, size_t> next;
  for (CollectiveReport &entry : report.collectives) {
    auto found = byLine.find({entry.kind, entry.loc});
    if (found == byLine.end())
      continue;
    size_t &at = next[found->first];
    entry.processAlgorithms = found->second[std::min(at, found->second.size() - 1)];
    ++at;
  }
}
