//===- Recorder.cpp - The last collectives, and a trace of everything -----===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Recorder.h"

#include <nlohmann/json.hpp>

namespace tessera::runtime {

void Recorder::add(const CollectiveRecord &record) {
  std::lock_guard lock(mutex);
  if (ring.size() < kCapacity)
    ring.push_back(record);
  else
    ring[next] = record;
  next = (next + 1) % kCapacity;
}

std::vector<CollectiveRecord> Recorder::last() const {
  std::lock_guard lock(mutex);
  std::vector<CollectiveRecord> result;
  size_t oldest = ring.size() < kCapacity ? 0 : next;
  for (size_t i = 0; i < ring.size(); ++i)
    result.push_back(ring[(oldest + i) % ring.size()]);
  return result;
}

using Json = nlohmann::ordered_json;

/// The title of a span, and its details.
static Json describe(const TraceEvent &event, const Program &program) {
  const Step &step = *event.step;
  std::string name = event.what;
  Json details = Json::object();
  if (auto *launch = std::get_if<LaunchStep>(&step.action)) {
    name = program.kernels[launch->kernel];
  } else if (auto *gemm = std::get_if<GemmStep>(&step.action)) {
    name = "gemm " + std::to_string(gemm->m) + "x" + std::to_string(gemm->n) + "x" +
           std::to_string(gemm->k);
  } else if (auto *contract = std::get_if<ContractStep>(&step.action)) {
    name = "contract";
    for (const ContractLoop &loop : contract->loops)
      name += (&loop == contract->loops.data() ? " " : "x") + std::to_string(loop.extent);
  } else if (auto *collective = std::get_if<CollectiveStep>(&step.action)) {
    name = sharding::toString(collective->kind);
    details["id"] = collective->id;
    details["wire_bytes"] = collective->wireBytes;
  } else if (auto *transfer = std::get_if<TransferStep>(&step.action)) {
    details["id"] = transfer->id;
    details["wire_bytes"] = transfer->wireBytes;
  }
  if (!step.name.empty())
    name = step.name;
  if (!step.loc.empty())
    details["loc"] = step.loc;
  details["order"] = step.order;
  return {{"name", name}, {"cat", event.what}, {"args", details}};
}

std::string traceJson(const std::vector<const Track *> &tracks,
                      const std::vector<std::string> &names, const Program &program) {
  std::string text = "{\"displayTimeUnit\": \"ns\", \"traceEvents\": [\n";
  auto add = [&](Json event, size_t track) {
    event["pid"] = 0;
    event["tid"] = track;
    text += event.dump(-1, ' ', false, Json::error_handler_t::replace) + ",\n";
  };
  for (size_t i = 0; i < tracks.size(); ++i) {
    std::string title = names[i] + (tracks[i]->full ? " (cut off: too many events)" : "");
    add({{"ph", "M"}, {"name", "thread_name"}, {"args", {{"name", title}}}}, i);
    for (const TraceEvent &event : tracks[i]->events) {
      Json json = describe(event, program);
      json["ph"] = "X";
      json["ts"] = static_cast<double>(event.beginNs) / 1e3; // microseconds
      json["dur"] = static_cast<double>(event.endNs - event.beginNs) / 1e3;
      add(std::move(json), i);
    }
  }
  text += R"({"ph": "M", "name": "process_name", "pid": 0, "args": {"name": "tessera"}})";
  return text + "\n]}\n";
}

} // namespace tessera::runtime
