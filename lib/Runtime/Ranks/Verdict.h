//===- Verdict.h - Whom a job waits for -------------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_RANKS_VERDICT_H
#define TESSERA_LIB_RUNTIME_RANKS_VERDICT_H

#include "CallLog.h"

namespace tessera::runtime {

/// What rank 0 knows of a rank.
struct RankReport {
  std::string host;
  bool isGone = false;  ///< its connection has ended, and it has not said that it leaves
  bool hasLeft = false; ///< it has said so
  double silent = 0;    ///< seconds since it was heard of
  double stalled = 0;   ///< seconds that it has waited and nothing has come
  RankState state;
};

/// How ranks call.
enum class Calls {
  anyhow,   ///< a rank that waits may issue other calls meanwhile: other threads of the program do
  blocking, ///< a rank that waits in its only open call issues nothing until that has ended
};

/// Why the job cannot go on: a rank is gone; one waits for a rank that has left; ranks wait for
/// each other, which of blocking calls is known after a moment; or one has waited for `deadline`
/// seconds. The message names the ranks that are missing, where they are instead, and the call that
/// others wait in. Nothing while all is well.
std::optional<std::string> verdictOf(const std::vector<RankReport> &ranks, double deadline,
                                     Calls calls = Calls::anyhow);

/// A lack of progress in a job that may yet continue: a rank has waited in a call for `seconds`. A
/// rank that is alive and has not called may compute, so this is for people, and ends nothing.
/// `call` is the one that is waited in, as a key.
struct LateCall {
  std::string text, call;
};
std::optional<LateCall> lateIn(const std::vector<RankReport> &ranks, double seconds);

/// "rank 0 (gpu01) has ended", "… is stopped: it gives no sign of life".
std::string goneText(int64_t rank, const std::string &host);
std::string silentText(int64_t rank, const std::string &host);

/// How long a rank is silent that counts as stopped.
double silenceOf(double deadline);

} // namespace tessera::runtime

#endif // TESSERA_LIB_RUNTIME_RANKS_VERDICT_H
