//===- DriverReport.cpp - Output of a run: files, JSON, checks ------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Runtime/CommandLine/Driver.h"
#include "tessera/Runtime/CommandLine/Npy.h"
#include "tessera/Runtime/Session/Compare.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>

namespace tessera::runtime {

int64_t RunReport::countedWireBytes() const {
  int64_t sum = 0;
  for (const CollectiveStats &stats : collectives)
    sum += stats.countedWireBytes();
  return sum;
}

std::string planSummary(const Artifact &artifact) {
  auto report = nlohmann::json::parse(artifact.report, nullptr, /*allow_exceptions=*/false);
  bool found = report.is_object() && report.contains("summary") && report["summary"].is_string();
  return found ? report["summary"].get<std::string>() : "";
}

static HostTensor scalarTensor(double value) {
  HostTensor tensor = HostTensor::zeros(DType::f64, {});
  std::memcpy(tensor.data.data(), &value, sizeof(value));
  return tensor;
}

/// Compares scalars of the steps before the last, as one tensor check each: otherwise only lasting
/// differences would be detected.
static void checkScalars(RunReport &report, const RunReport &reference) {
  for (size_t i = 0; i < report.scalarNames.size(); ++i) {
    auto result = std::find_if(report.results.begin(), report.results.end(),
                               [&](auto &r) { return r.name == report.scalarNames[i]; });
    auto check = std::find_if(report.checks.begin(), report.checks.end(),
                              [&](auto &c) { return c.name == report.scalarNames[i]; });
    if (result == report.results.end() || check == report.checks.end())
      continue;
    for (size_t step = 0; step + 1 < report.scalars.size(); ++step) {
      if (step >= reference.scalars.size() || i >= reference.scalars[step].size())
        break;
      HostTensor a = scalarTensor(report.scalars[step][i]);
      HostTensor b = scalarTensor(reference.scalars[step][i]);
      Comparison found = compare(a, b);
      double allowed = toleranceOf(result->value.dtype, static_cast<int64_t>(step) + 1);
      check->maxError = std::max(check->maxError, found.maxError);
      bool kindDiffers = !found.equal && found.maxRelative == 0;
      if (check->equal && (kindDiffers || found.maxRelative > allowed)) {
        check->equal = false;
        check->text = "at step " + std::to_string(step + 1) + ": " + found.text(a, b);
      }
    }
  }
}

bool checkAgainst(RunReport &report, const RunReport &reference) {
  report.checks.clear();
  for (const RunReport::Value &result : report.results) {
    auto expected = std::find_if(reference.results.begin(), reference.results.end(),
                                 [&](auto &r) { return r.name == result.name; });
    if (expected == reference.results.end()) {
      report.checks.push_back(
          {result.name, false, 0, 0, "the reference run has no such result", {}});
      continue;
    }
    Comparison found = compare(result.value, expected->value, report.steps);
    report.checks.push_back({result.name, found.equal, found.maxError, found.tolerance,
                             found.text(result.value, expected->value), found.warnings});
  }
  checkScalars(report, reference);
  return std::all_of(report.checks.begin(), report.checks.end(),
                     [](const ResultCheck &check) { return check.equal; });
}

void printChecks(const RunReport &report) {
  for (const ResultCheck &check : report.checks) {
    std::printf("check  %s  %s  %s\n", check.name.c_str(), check.equal ? "ok" : "DIFFERS",
                check.text.c_str());
    for (const std::string &warning : check.warnings)
      std::printf("check  %s  warning: %s\n", check.name.c_str(), warning.c_str());
  }
}

using Json = nlohmann::ordered_json;

static Json resultJson(const RunReport::Value &result) {
  Json json{{"name", result.name},
            {"dtype", toString(result.value.dtype)},
            {"shape", result.value.shape},
            {"checksum", hexText(result.value.checksum())}};
  if (result.value.shape.empty()) {
    if (isFloat(result.value.dtype))
      json["value"] = result.value.number(0); // null when it is not finite
    else
      json["value"] = result.value.integer(0);
  }
  return json;
}

static Json collectiveJson(const CollectiveStats &stats) {
  return {{"id", stats.id},
          {"kind", stats.kind},
          {"loc", stats.loc},
          {"executions", stats.executions},
          {"wire_bytes", stats.predictedWireBytes},
          {"counted_wire_bytes", stats.countedWireBytes()},
          {"counted_sent", stats.sentBytes},
          {"counted_received", stats.receivedBytes},
          {"counted_total", stats.totalBytes()}};
}

std::string reportJson(const RunReport &report) {
  Json json{{"version", 1},
            {"backend", report.backend},
            {"devices", report.devices},
            {"seed", report.seed},
            {"steps", report.steps}};
  json["results"] = Json::array();
  for (const RunReport::Value &result : report.results)
    json["results"].push_back(resultJson(result));
  json["scalars"] = Json::object();
  for (size_t i = 0; i < report.scalarNames.size(); ++i) {
    Json values = Json::array();
    for (const std::vector<double> &step : report.scalars)
      values.push_back(step[i]);
    json["scalars"][report.scalarNames[i]] = values;
  }
  json["collectives"] = Json::array();
  int64_t predicted = 0, moved = 0;
  for (const CollectiveStats &stats : report.collectives) {
    json["collectives"].push_back(collectiveJson(stats));
    predicted += stats.predictedWireBytes * stats.executions;
    moved += stats.totalBytes();
  }
  for (const RunReport::Routes &routes : report.routes) {
    Json sent = Json::array();
    for (const RunReport::Routes::Bytes &each : routes.sent)
      sent.push_back({{"from", each.from}, {"to", each.to}, {"bytes", each.bytes}});
    for (Json &each : json["collectives"])
      if (each["id"] == routes.id) {
        each["algorithms"] = routes.algorithms;
        each["sent"] = sent;
      }
  }
  json["wire_bytes_total"] = predicted;
  json["counted_wire_bytes_total"] = report.countedWireBytes();
  json["counted_bytes_total"] = moved;
  if (!report.firstStep.empty())
    json["driver"] = {
        {"first_step", Json(Json::object_t(report.firstStep.begin(), report.firstStep.end()))},
        {"later_steps", Json(Json::object_t(report.laterSteps.begin(), report.laterSteps.end()))}};
  if (!report.checks.empty()) {
    json["check"] = Json::array();
    for (const ResultCheck &check : report.checks)
      json["check"].push_back({{"name", check.name},
                               {"equal", check.equal},
                               {"max_error", check.maxError},
                               {"tolerance", check.tolerance},
                               {"text", check.text},
                               {"warnings", check.warnings}});
  }
  if (!report.cpu.empty())
    json["cpu"] = report.cpu;
  if (!report.products.empty())
    json["products"] = report.products;
  json["timing"] = {{"seconds", report.seconds},
                    {"step_seconds", report.stepSeconds},
                    {"step_core_seconds", report.stepCoreSeconds}};
  if (!report.deviceStepSeconds.empty())
    json["timing"]["device_step_seconds"] = report.deviceStepSeconds;
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Status writeOutputs(const RunReport &report, const DriverOptions &options) {
  if (!report.reportsResults)
    return {};
  for (auto &[name, path] : options.outputs)
    for (const RunReport::Value &result : report.results)
      if (result.name == name)
        TESSERA_RETURN_IF_ERROR(writeNpy(path, result.value).in("--output " + name));
  if (!options.tracePath.empty())
    TESSERA_RETURN_IF_ERROR(writeFile(options.tracePath, report.trace).in("--trace"));
  if (options.jsonPath == "-")
    std::fputs(reportJson(report).c_str(), stdout);
  else if (!options.jsonPath.empty())
    TESSERA_RETURN_IF_ERROR(writeFile(options.jsonPath, reportJson(report)).in("--json"));
  return {};
}

} // namespace tessera::runtime
