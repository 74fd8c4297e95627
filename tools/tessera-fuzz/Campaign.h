//===- Campaign.h - Many seeds, each in its own process ---------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TOOLS_TESSERA_FUZZ_CAMPAIGN_H
#define TESSERA_TOOLS_TESSERA_FUZZ_CAMPAIGN_H

#include "tessera/Fuzz/Check.h"

#include <functional>

namespace tessera::fuzz {

/// The result of one seed, from its process or from the way in which that ended.
struct Verdict {
  std::string status = "crash"; ///< CheckResult's, or crash, timeout
  std::string message;
  Coverage coverage;
};

/// Runs `work` for each seed in [first, last) in a child process, at most `jobs` at once and each
/// for at most `seconds`, and calls `report` in the order of the seeds. A crash or a hang of one
/// seed ends only that seed.
void runCampaign(uint64_t first, uint64_t last, unsigned jobs, unsigned seconds,
                 const std::function<CheckResult(uint64_t)> &work,
                 const std::function<void(uint64_t, const Verdict &)> &report);

} // namespace tessera::fuzz

#endif // TESSERA_TOOLS_TESSERA_FUZZ_CAMPAIGN_H
