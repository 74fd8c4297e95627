//===- Deadlock.cpp - Report of a deadlock --------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Deadlock.h"

namespace tessera::runtime {

constexpr int64_t kListed = 4;

void DeadlockReport::add(int64_t device, const std::string &wait) {
  if (wait.empty()) {
    finished += (finished.empty() ? "" : ", ") + std::to_string(device);
    return;
  }
  if (++count <= kListed)
    waiting +=
        (waiting.empty() ? "deadlock: " : "; ") + unit + " " + std::to_string(device) + " " + wait;
}

std::string DeadlockReport::text() const {
  if (count == 0)
    return {};
  return waiting + (count > kListed ? "; and " + std::to_string(count - kListed) + " more" : "") +
         (finished.empty() ? "" : "; finished: " + finished);
}

std::string waitText(const Step &step) {
  std::string text = "waits in ";
  if (auto *collective = std::get_if<CollectiveStep>(&step.action))
    text += "collective " + std::to_string(collective->id) + " (" +
            std::string(toString(collective->kind)) + ")";
  else if (auto *transfer = std::get_if<TransferStep>(&step.action))
    text += (transfer->isSend ? "send " : "recv ") + std::to_string(transfer->id);
  return text + (step.loc.empty() ? "" : " at " + step.loc);
}

std::string devicesText(const std::vector<int64_t> &devices) {
  std::string text = devices.size() == 1 ? "device " : "devices ";
  for (size_t i = 0; i < devices.size(); ++i)
    text += (i ? ", " : "") + std::to_string(devices[i]);
  return text;
}

} // namespace tessera::runtime
