//===- Verdict.h - Ranks for which a job waits ------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_RANKS_VERDICT_H
#define TESSERA_LIB_RUNTIME_RANKS_VERDICT_H

#include "CallLog.h"

namespace tessera::runtime {

/// The state of a rank as known by rank 0.
struct RankReport {
  std::string host;
  bool isGone = false;  ///< its connection has ended without a leave message
  bool hasLeft = false; ///< it has sent a leave message
  double silent = 0;    ///< seconds since its last report
  double stalled = 0;   ///< seconds of waiting without progress
  RankState state;
};

/// The order in which a rank may issue calls.
enum class Calls {
  concurrent, ///< a waiting rank may issue other calls, from other threads
  blocking,   ///< a rank that waits in its only open call issues none until that has ended
};

/// Why the job cannot continue: a rank is lost; one waits for a rank that has left; ranks deadlock,
/// which for blocking calls is known after a moment; or one has waited for `deadline` seconds. The
/// message names the missing ranks, their positions, and the call in which others wait. Nothing
/// without such a problem.
std::optional<std::string> verdictOf(const std::vector<RankReport> &ranks, double deadline,
                                     Calls calls = Calls::concurrent);

/// A lack of progress in a job that may yet continue: a rank has waited in a call for `seconds`. A
/// live rank that has not called may be computing, so this is only a warning. `call` is the key of
/// the awaited call.
struct LateCall {
  std::string text, call;
};
std::optional<LateCall> findLateCall(const std::vector<RankReport> &ranks, double seconds);

/// "rank 0 (gpu01) has ended", "… is stopped: it sends no reports".
std::string lostRankText(int64_t rank, const std::string &host);
std::string silentText(int64_t rank, const std::string &host);

/// The silence after which a rank counts as stopped.
double silenceOf(double deadline);

} // namespace tessera::runtime

#endif // TESSERA_LIB_RUNTIME_RANKS_VERDICT_H
