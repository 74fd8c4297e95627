//===- CountedTransport.h - Messages, counted by peer -----------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_UNITTESTS_RUNTIME_RANKS_COUNTEDTRANSPORT_H
#define TESSERA_UNITTESTS_RUNTIME_RANKS_COUNTEDTRANSPORT_H

#include "Ranks/Transport.h"

#include <memory>

namespace tessera::runtime::test {

/// Wraps a transport and counts the bytes sent to each other rank.
class CountedTransport final : public Transport {
public:
  explicit CountedTransport(std::unique_ptr<Transport> counted)
      : sent(static_cast<size_t>(counted->size())), base(std::move(counted)) {}

  std::vector<int64_t> sent;

  int64_t rank() const override { return base->rank(); }
  int64_t size() const override { return base->size(); }
  const std::string &hostOf(int64_t rank) const override { return base->hostOf(rank); }
  Expected<int64_t> openChannel(const std::vector<int64_t> &ranks) override {
    return base->openChannel(ranks);
  }
  Expected<Request> send(int64_t channel, int64_t peer, const std::byte *data,
                         int64_t bytes) override {
    if (peer != rank())
      sent[peer] += bytes;
    return base->send(channel, peer, data, bytes);
  }
  Expected<Request> receive(int64_t channel, int64_t peer, std::byte *data,
                            int64_t bytes) override {
    return base->receive(channel, peer, data, bytes);
  }
  Expected<bool> test(Request request) override { return base->test(request); }
  void rest(int64_t microseconds) override { base->rest(microseconds); }
  void abandon() override { base->abandon(); }

private:
  const std::unique_ptr<Transport> base;
};

} // namespace tessera::runtime::test

#endif // TESSERA_UNITTESTS_RUNTIME_RANKS_COUNTEDTRANSPORT_H
