//===- MessagePlan.cpp - A rank's part in a collective --------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MessagePlan.h"

namespace tessera::runtime {

int64_t MessagePlan::messagesSent() const {
  int64_t sum = 0;
  for (const Round &round : rounds)
    for (const Message &message : round.messages)
      sum += message.send;
  return sum;
}

int64_t MessagePlan::elementsSent() const {
  int64_t sum = 0;
  for (const Round &round : rounds)
    for (const Message &message : round.messages)
      sum += message.send ? message.slice.count : 0;
  return sum;
}

static std::string textOf(const Slice &slice) {
  static const char *const names[] = {"input", "output", "scratch"};
  return std::string(names[static_cast<int>(slice.buffer)]) + "[" + std::to_string(slice.begin) +
         ":" + std::to_string(slice.end()) + "]";
}

std::string MessagePlan::text() const {
  std::string text;
  for (size_t i = 0; i < rounds.size(); ++i) {
    std::string line;
    auto add = [&](const std::string &part) { line += (line.empty() ? "" : ", ") + part; };
    for (const Copy &copy : rounds[i].copies)
      add(textOf(copy.to) + " = " + textOf(copy.from));
    for (const Message &message : rounds[i].messages)
      add((message.send ? "send " : "receive ") + textOf(message.slice) +
          (message.send ? " to " : " from ") + std::to_string(message.peer));
    for (const Combination &each : rounds[i].combinations) {
      std::string sum;
      for (const Slice &source : each.sources)
        sum += (sum.empty() ? "" : " + ") + textOf(source);
      add(textOf(each.target) + " = " + sum);
    }
    if (!line.empty())
      text += std::to_string(i) + ": " + line + "\n";
  }
  return text;
}

} // namespace tessera::runtime
