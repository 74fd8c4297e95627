//===- ReportPrint.cpp - A report as JSON and as tables -------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PipelineReport.h"
#include "tessera/Report/Report.h"
#include "tessera/Support/SaturatingCounts.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Format.h"

using namespace tessera;
using llvm::StringRef;

int64_t Report::wireBytesTotal() const {
  int64_t total = 0;
  for (const CollectiveReport &entry : collectives)
    total = plus(total, times(entry.traffic.wireBytes, entry.trips));
  return total;
}

int64_t Report::collectiveCountTotal() const {
  int64_t total = 0;
  for (const CollectiveReport &entry : collectives)
    total = plus(total, times(entry.traffic.count, entry.trips));
  return total;
}

double Report::communicationSeconds() const {
  double seconds = 0;
  for (const CollectiveReport &entry : collectives)
    seconds += static_cast<double>(entry.modelledTrips) * entry.timing.seconds;
  return seconds;
}

double Report::exposedSeconds() const {
  double seconds = 0;
  for (const CollectiveReport &entry : collectives)
    seconds += static_cast<double>(entry.modelledTrips) * entry.exposedSeconds;
  return seconds;
}

/// Three significant digits in a suitable unit: "12.3 µs", "1.23 ms", "12.3 s".
static std::string timeText(double seconds) {
  auto [scale, unit] = seconds < 0.9995e-3 ? std::pair(1e6, "µs")
                       : seconds < 0.9995  ? std::pair(1e3, "ms")
                                           : std::pair(1.0, "s");
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%.3g %s", scale * seconds, unit);
  return text;
}

llvm::json::Value Report::toJson() const {
  using llvm::json::Array;
  using llvm::json::Object;
  auto values = [](const std::vector<ValueReport> &list) {
    Array array;
    for (const ValueReport &value : list)
      array.push_back(Object{{"name", value.name},
                             {"type", value.type},
                             {"sharding", value.sharding},
                             {"local_shape", Array(value.localShape)},
                             {"origin", value.origin}});
    return array;
  };
  Array meshList, collectiveList;
  for (const sharding::Mesh &mesh : meshes)
    meshList.push_back(Object{{"name", mesh.name},
                              {"shape", Array(mesh.shape)},
                              {"dim_names", Array(mesh.axisNames)},
                              {"process_ids", Array(mesh.processIds.vec())}});
  for (const CollectiveReport &entry : collectives)
    collectiveList.push_back(Object{{"kind", entry.kind},
                                    {"mesh", entry.mesh},
                                    {"axes", Array(entry.axes)},
                                    {"group_size", entry.groupSize},
                                    {"dtype", entry.dtype},
                                    {"bytes", entry.traffic.bytes},
                                    {"wire_bytes", entry.traffic.wireBytes},
                                    {"trips", entry.trips},
                                    {"count", times(entry.traffic.count, entry.trips)},
                                    {"messages", entry.traffic.messages},
                                    {"algorithm", std::string(toString(entry.timing.algorithm))},
                                    {"process_algorithms", Array(entry.processAlgorithms)},
                                    {"modelled_seconds", entry.timing.seconds},
                                    {"exposed_seconds", entry.exposedSeconds},
                                    {"ready_at", entry.readySeconds},
                                    {"begins_at", entry.beginSeconds},
                                    {"overlapped", entry.isOverlapped},
                                    {"bounded", entry.bounded},
                                    {"loc", entry.loc},
                                    {"reason", entry.reason}});
  Object report{{"version", 1},
                {"meshes", std::move(meshList)},
                {"arguments", values(arguments)},
                {"results", values(results)},
                {"collectives", std::move(collectiveList)},
                {"wire_bytes_total", wireBytesTotal()},
                {"collective_count_total", collectiveCountTotal()},
                {"peak_memory_bytes", peakMemoryBytes},
                {"modelled_compute_seconds", computeSeconds},
                {"modelled_communication_seconds", communicationSeconds()},
                {"modelled_exposed_seconds", exposedSeconds()},
                {"modelled_seconds", stepSeconds}};
  if (parallelisms)
    report["parallelisms"] = Array(*parallelisms);
  if (search)
    report["search"] = Object(*search);
  if (pipeline)
    report["pipeline"] = tessera::toJson(*pipeline);
  if (!rolledPipelines.empty())
    report["rolled_pipelines"] = tessera::toJson(rolledPipelines);
  return report;
}

/// "  [direct]".
static std::string ofProcesses(const CollectiveReport &entry) {
  if (entry.processAlgorithms.empty())
    return "";
  return "  [" + llvm::join(entry.processAlgorithms, ", ") + "]";
}

void Report::printCommunication(llvm::raw_ostream &os) const {
  os << "communication on " << machine << "\n";
  if (collectives.empty())
    os << "  none\n";
  for (const CollectiveReport &entry : collectives) {
    os << "  " << entry.kind << " @" << entry.mesh << " [" << llvm::join(entry.axes, ", ")
       << "] of " << entry.groupSize << ", " << entry.traffic.bytes
       << " B: " << toString(entry.timing.algorithm) << " " << timeText(entry.timing.seconds);
    std::string others;
    for (const sharding::Timing &timing : entry.candidates)
      if (timing.algorithm != entry.timing.algorithm)
        others += (others.empty() ? "; " : ", ") + std::string(toString(timing.algorithm)) + " " +
                  timeText(timing.seconds);
    os << others << "  " << entry.loc << ofProcesses(entry) << "\n";
  }
}

/// Why a plan has no parallelism: the times of computation and of the least communication.
static std::string explainNoParallelism(const Report &report) {
  if (report.isAnythingCut || !report.collectives.empty())
    return "no contraction is cut";
  std::string text = "nothing is parallel";
  if (report.leastMessageSeconds == 0)
    return text;
  text += ": computing takes " + timeText(report.computeSeconds) +
          " on one device, one collective at least " + timeText(report.leastMessageSeconds);
  if (report.computeSeconds > report.leastMessageSeconds)
    text += ", and a cut saves less than its collectives take";
  return text;
}

void Report::printTable(llvm::raw_ostream &os) const {
  for (const sharding::Mesh &mesh : meshes) {
    os << "mesh @" << mesh.name << " ";
    for (auto [index, extent] : llvm::enumerate(mesh.shape))
      os << (index ? " x " : "") << mesh.axisNames[index] << "=" << extent;
    os << ", " << mesh.numDevices() << " devices\n";
  }
  auto shape = [](const std::vector<int64_t> &dims) {
    std::string text;
    for (int64_t dim : dims)
      text += (text.empty() ? "" : "x") + std::to_string(dim);
    return text.empty() ? std::string("scalar") : text;
  };
  auto values = [&](StringRef title, const std::vector<ValueReport> &list) {
    size_t width = 8, typeWidth = 8;
    for (const ValueReport &value : list) {
      width = std::max(width, value.name.size());
      typeWidth = std::max(typeWidth, value.type.size());
    }
    os << title << "\n";
    for (const ValueReport &value : list)
      os << "  " << llvm::left_justify(value.name, width) << "  "
         << llvm::left_justify(value.type, typeWidth) << "  local " << shape(value.localShape)
         << (value.sharding.empty()
                 ? ""
                 : "  " + StringRef(value.sharding).drop_front(15).drop_back().str())
         << "  (" << value.origin << ")\n";
  };
  values("arguments", arguments);
  values("results", results);
  os << "collectives\n";
  if (collectives.empty())
    os << "  none\n";
  for (const CollectiveReport &entry : collectives)
    os << "  " << llvm::left_justify(entry.kind, 14) << " @" << entry.mesh << " ["
       << llvm::join(entry.axes, ", ") << "] of " << entry.groupSize << "  " << entry.dtype << "  "
       << entry.traffic.bytes << " B, " << entry.traffic.wireBytes << " on the wire"
       << (entry.trips != 1 ? " x " + std::to_string(entry.trips) + " trips" : std::string())
       << (entry.bounded ? "" : " (trips unknown)") << "  " << entry.loc << "  " << entry.reason
       << (entry.isOverlapped ? "  (overlapped: " + timeText(entry.exposedSeconds) + " of " +
                                    timeText(entry.timing.seconds) + " exposed)"
                              : std::string())
       << ofProcesses(entry) << "\n";
  os << "total: " << collectiveCountTotal()
     << (collectiveCountTotal() == 1 ? " collective, " : " collectives, ") << wireBytesTotal()
     << " bytes on the wire per device; peak memory " << peakMemoryBytes << " bytes per device\n";
  os << "modelled on " << machine << ": " << timeText(stepSeconds) << " per step, "
     << timeText(computeSeconds) << " of it computing";
  if (llvm::any_of(collectives, [](const CollectiveReport &entry) { return entry.isOverlapped; }))
    os << ", " << timeText(exposedSeconds()) << " of " << timeText(communicationSeconds())
       << " of communication exposed";
  os << "\n";
  if (parallelisms)
    os << "parallelism: " << (parallelisms->empty() ? "none" : llvm::join(*parallelisms, "; "))
       << "\n";
  if (pipeline)
    printPipeline(os);
  printRolledPipelines(os);
  if (!search)
    return;
  auto number = [&](StringRef name) { return search->getNumber(name).value_or(0); };
  os << "search: " << search->getString("mode").value_or("") << ", "
     << llvm::format(
            "%.6g ms per step modelled (%.6g ms of it computing), at least %.6g ms (gap %.2g %% of "
            "the model's space, before collectives are joined)",
            1e3 * number("cost"), 1e3 * number("compute"), 1e3 * number("lower_bound"),
            100 * number("gap"))
     << (search->getBoolean("stopped_by_time").value_or(false) ? ", stopped by the time limit" : "")
     << llvm::format("; propagation alone %.6g ms\n", 1e3 * number("propagation_cost"));
  std::string names;
  if (const llvm::json::Array *list = search->getArray("parallelisms"))
    for (const llvm::json::Value &name : *list)
      names += (names.empty() ? "" : "; ") + name.getAsString().value_or("").str();
  std::optional<StringRef> taken = search->getString("taken");
  os << llvm::format("        memory %.4g MiB per device, estimated", number("memory") / (1 << 20))
     << (taken ? "" : "; " + (names.empty() ? explainNoParallelism(*this) : names)) << "\n";
  const llvm::json::Array *plans = search->getArray("portfolio");
  if (!plans)
    return;
  os << "        compiled " << timeText(number("compiled")) << ", best of " << plans->size()
     << (plans->size() == 1 ? " plan" : " plans");
  if (taken)
    if (const llvm::json::Object *searched = plans->front().getAsObject())
      os << ": '" << *taken << "' is taken, the plan that was found takes "
         << timeText(searched->getNumber("compiled").value_or(0));
  os << "\n";
}
