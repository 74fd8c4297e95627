//===- RecorderBench.cpp - What recording a collective costs --------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Processor time, which is independent of other work on the machine, for the records of
// a rank of a compiled program per collective, and for the queries of the watchdog,
// five times per second.
//
//===----------------------------------------------------------------------===//

#include "Execution/Recorder.h"
#include "Ranks/CallLog.h"

#include <cstdio>
#include <ctime>

using namespace tessera::runtime;

static double processorSeconds() {
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

int main() {
  constexpr int64_t kCalls = 1000000, kStates = 100000, kStreams = 8;
  CallLog log(0);
  Recorder recorder;
  std::vector<CallShapePtr> shapes;
  for (int64_t i = 0; i < kStreams; ++i) {
    auto shape = std::make_shared<CallShape>();
    shape->kind = "all_reduce";
    shape->text = "all_reduce 3 of 65536 f32 by sum";
    shape->loc = "/home/user/examples/mlp/mlp_dptp.mlir:32:9";
    shape->stream = "part 0 lane " + std::to_string(i) + " 0 1 2 3 4 5 6 7";
    shape->group = {0, 1, 2, 3, 4, 5, 6, 7};
    shapes.push_back(shape);
  }
  double begin = processorSeconds();
  for (int64_t i = 0; i < kCalls; ++i) {
    const CallShapePtr &shape = shapes[i % kStreams];
    int64_t call = log.issue(shape);
    log.begin(call);
    log.waits();
    log.progressed();
    log.end(call);
    recorder.add({3, shape->kind, shape->loc, i, 0, i, i});
  }
  double recorded = processorSeconds();
  std::printf("%.0f ns a collective, over %lld of them\n",
              (recorded - begin) / static_cast<double>(kCalls) * 1e9,
              static_cast<long long>(kCalls));
  size_t seen = 0;
  for (int64_t i = 0; i < kStates; ++i)
    seen += log.state().issued.size();
  std::printf("%.0f ns a state that the watchdog asks for (%zu)\n",
              (processorSeconds() - recorded) / static_cast<double>(kStates) * 1e9, seen / kStates);
}
