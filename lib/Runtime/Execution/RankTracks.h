//===- RankTracks.h - The tracks of a job's processes -----------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_EXECUTION_RANKTRACKS_H
#define TESSERA_LIB_RUNTIME_EXECUTION_RANKTRACKS_H

#include "Recorder.h"

#include <functional>

namespace tessera::runtime {

/// Gathers one text per process on all processes, by rank.
using GatherTexts = std::function<Expected<std::vector<std::string>>(const std::string &)>;

/// The trace of all devices, by `tracks`. With `gather`, this process has the track of device
/// `mine`, and gets those of the other devices, each of which is a process: a collective call.
Expected<std::string> traceOfRanks(const Program &program, std::vector<Track> &tracks, int64_t mine,
                                   const GatherTexts &gather);

} // namespace tessera::runtime

#endif // TESSERA_LIB_RUNTIME_EXECUTION_RANKTRACKS_H
