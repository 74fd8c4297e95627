//===- StubStreams.cpp - Streams, events and graphs of the stub -----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StubStreams.h"

#include <algorithm>
#include <map>

namespace tessera::runtime::gpu {

template <typename T> static void addOnce(std::vector<T> &list, const std::vector<T> &more) {
  for (const T &each : more)
    if (std::find(list.begin(), list.end(), each) == list.end())
      list.push_back(each);
}

Status StubDriver::record(Event event, Stream stream) {
  ++counted.records;
  event->frontier = stream->capture ? std::vector<StubNodePtr>() : stream->frontier;
  event->capture = stream->capture;
  event->captured = stream->captured;
  return {};
}

Status StubDriver::wait(Stream stream, Event event) {
  ++counted.waits;
  if (!event->capture) {
    if (stream->capture)
      return Status::error("stream " + stream->name +
                           " is captured and waits for an event outside the capture");
    addOnce(stream->frontier, event->frontier);
    return {};
  }
  if (event->capture->ended)
    return Status::error("stream " + stream->name +
                         " waits for an event of a capture that has ended");
  if (!stream->capture) { // joins the capture
    stream->capture = event->capture;
    stream->captured.clear();
    event->capture->members.push_back(stream);
  }
  addOnce(stream->captured, event->captured);
  return {};
}

Expected<bool> StubDriver::isDone(Event event) {
  return std::all_of(event->frontier.begin(), event->frontier.end(),
                     [](const StubNodePtr &node) { return node->done; });
}

Status StubDriver::enqueue(Issue issue, std::function<Status()> run,
                           std::optional<StubMeeting> meeting) {
  ++counted.launches;
  auto work = std::make_shared<StubWork>();
  work->step = issue.step;
  work->what = issue.what;
  work->device = issue.stream->device;
  work->touches = std::move(issue.touches);
  work->run = std::move(run);
  work->meeting = std::move(meeting);
  Stream stream = issue.stream;
  if (GraphObject *graph = stream->capture) {
    for (int64_t item : stream->captured)
      graph->items[item].isLeaf = false;
    auto index = static_cast<int64_t>(graph->items.size());
    graph->items.push_back({stream, 0, std::move(work), std::move(stream->captured)});
    stream->captured = {index};
    return {};
  }
  stream->frontier = {submit(stream->chain, std::move(work), stream->frontier)};
  return {};
}

StubNodePtr StubDriver::submit(int64_t chain, std::shared_ptr<const StubWork> work,
                               const std::vector<StubNodePtr> &after) {
  auto node = std::make_shared<StubNode>();
  for (const StubNodePtr &each : after) {
    join(node->clock, each->clock);
    if (each->done)
      continue;
    ++node->missing;
    each->followers.push_back(node);
  }
  if (static_cast<int64_t>(node->clock.size()) <= chain)
    node->clock.resize(static_cast<size_t>(chain) + 1);
  if (static_cast<int64_t>(lengths.size()) <= chain)
    lengths.resize(static_cast<size_t>(chain) + 1);
  node->clock[chain] = ++lengths[chain];
  node->accessor = {chain, lengths[chain], work->step, work->what, work->device};
  node->work = std::move(work);
  ++unfinished;
  if (node->missing == 0)
    ready.push_back(node);
  return node;
}

Status StubDriver::beginCapture(Stream origin) {
  graphs.push_back(std::make_unique<GraphObject>());
  graphs.back()->origin = origin;
  graphs.back()->members = {origin};
  origin->capture = graphs.back().get();
  origin->captured.clear();
  return {};
}

Expected<Graph> StubDriver::endCapture(Stream origin) {
  GraphObject *graph = origin->capture;
  std::map<int64_t, int64_t> chainOf; ///< of streams, by their own chain
  for (GraphObject::Item &item : graph->items) {
    auto [it, isNew] = chainOf.try_emplace(item.stream->chain, chains);
    chains += isNew;
    item.chain = it->second;
  }
  // All items must precede the end of the origin, or the end of the graph would not imply theirs.
  std::vector<bool> joined(graph->items.size());
  for (int64_t item : origin->captured)
    joined[item] = true;
  for (size_t i = joined.size(); i-- > 0;)
    if (joined[i])
      for (int64_t before : graph->items[i].after)
        joined[before] = true;
  for (size_t i = 0; i < joined.size(); ++i)
    if (!joined[i])
      return Status::error("stream " + graph->items[i].stream->name +
                           " of a capture was not joined");
  for (Stream member : graph->members) {
    member->capture = nullptr;
    member->captured.clear();
  }
  graph->ended = true;
  ++counted.graphs;
  return graph;
}

Status StubDriver::launchGraph(Graph graph, Stream stream) {
  ++counted.graphLaunches;
  std::vector<StubNodePtr> nodes, leaves;
  for (const GraphObject::Item &item : graph->items) {
    std::vector<StubNodePtr> after;
    for (int64_t before : item.after)
      after.push_back(nodes[before]);
    if (after.empty())
      after = stream->frontier;
    nodes.push_back(submit(item.chain, item.work, after));
    if (item.isLeaf)
      leaves.push_back(nodes.back());
  }
  if (!leaves.empty())
    stream->frontier = std::move(leaves);
  return {};
}

Status StubDriver::progress() {
  while (failure.ok() && !ready.empty()) {
    std::swap(ready[random() % ready.size()], ready.back());
    StubNodePtr node = std::move(ready.back());
    ready.pop_back();
    failure = execute(node);
  }
  return failure;
}

Status StubDriver::execute(const StubNodePtr &node) {
  for (const Touch &touch : node->work->touches)
    TESSERA_RETURN_IF_ERROR(hazards.access(touch, node->accessor, node->clock));
  if (!node->work->meeting) {
    TESSERA_RETURN_IF_ERROR(node->work->run().in(describe(node->accessor)));
    complete(node);
    return {};
  }
  arrived.push_back(node);
  std::vector<StubNodePtr> done;
  TESSERA_RETURN_IF_ERROR(meetings->arrive(node, done));
  for (const StubNodePtr &each : done) {
    arrived.erase(std::find(arrived.begin(), arrived.end(), each));
    complete(each);
  }
  return {};
}

void StubDriver::complete(const StubNodePtr &node) {
  node->done = true;
  --unfinished;
  for (const StubNodePtr &follower : node->followers)
    if (--follower->missing == 0)
      ready.push_back(follower);
  node->followers.clear();
  if (finished)
    finished(*node->work);
}

} // namespace tessera::runtime::gpu
