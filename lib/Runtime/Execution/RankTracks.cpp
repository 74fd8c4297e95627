//===- RankTracks.cpp - The tracks of a job's processes -------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RankTracks.h"

#include "../Artifact/Steps.h"

#include <map>
#include <memory>
#include <sstream>

namespace tessera::runtime {

/// Spans as text; the order of a step identifies it.
static std::string textOf(const Track &track) {
  std::ostringstream text;
  text << track.full << "\n";
  for (const TraceEvent &event : track.events)
    text << event.step->order << " " << event.beginNs << " " << event.endNs << " " << event.what
         << "\n";
  return text.str();
}

/// Spans from text. `names` owns texts that are not literals.
static Status addSpans(const std::string &text, const Program &program, Track &track,
                       std::vector<std::unique_ptr<std::string>> &names) {
  std::map<int64_t, const Step *> byOrder;
  for (const Part &part : program.parts)
    forEachStep(part.steps, [&](const Step &step) { byOrder[step.order] = &step; });
  std::map<std::string, const char *> known;
  std::istringstream lines(text);
  bool full = false;
  if (!(lines >> full))
    return text.empty() ? Status() : Status::error("a rank sent a trace in an unknown format");
  track.full |= full;
  int64_t order = 0, begin = 0, end = 0;
  std::string what;
  while (lines >> order >> begin >> end >> what) {
    auto step = byOrder.find(order);
    if (step == byOrder.end())
      return Status::error("a rank sent a trace of step " + std::to_string(order));
    const char *&name = known[what];
    if (!name) {
      names.push_back(std::make_unique<std::string>(what));
      name = names.back()->c_str();
    }
    track.add({step->second, name, begin, end});
  }
  return {};
}

Expected<std::string> traceOfRanks(const Program &program, std::vector<Track> &tracks, int64_t mine,
                                   const GatherTexts &gather) {
  std::vector<std::unique_ptr<std::string>> names;
  if (gather) {
    auto texts = gather(textOf(tracks[mine]));
    if (!texts)
      return texts.status();
    for (size_t rank = 0; rank < tracks.size(); ++rank)
      if (static_cast<int64_t>(rank) != mine)
        TESSERA_RETURN_IF_ERROR(addSpans((*texts)[rank], program, tracks[rank], names));
  }
  std::vector<const Track *> list;
  std::vector<std::string> titles;
  for (size_t i = 0; i < tracks.size(); ++i) {
    list.push_back(&tracks[i]);
    titles.push_back("device " + std::to_string(i));
  }
  return traceJson(list, titles, program);
}

} // namespace tessera::runtime
