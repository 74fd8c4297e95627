//===- PluginTransport.cpp - Transports of shared objects -----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Execution/SharedLibrary.h"
#include "Transports.h"
#include "tessera/Runtime/tessera_groups.h"

namespace tessera::runtime {

namespace {
class PluginTransport final : public Transport {
public:
  explicit PluginTransport(const tessera_transport &table) : table(table) {
    for (int64_t rank = 0; rank < table.size; ++rank)
      hosts.emplace_back(table.hosts[rank]);
  }
  ~PluginTransport() override { table.close(table.self); }

  int64_t rank() const override { return table.rank; }
  int64_t size() const override { return table.size; }
  const std::string &hostOf(int64_t rank) const override { return hosts[rank]; }

  Expected<int64_t> openChannel(const std::vector<int64_t> &ranks) override {
    int64_t channel = 0;
    return result(
        table.open_channel(table.self, ranks.data(), static_cast<int64_t>(ranks.size()), &channel),
        channel);
  }
  Expected<Request> send(int64_t channel, int64_t peer, const std::byte *data,
                         int64_t bytes) override {
    Request request = 0;
    return result(table.send(table.self, channel, peer, data, bytes, &request), request);
  }
  Expected<Request> receive(int64_t channel, int64_t peer, std::byte *data,
                            int64_t bytes) override {
    Request request = 0;
    return result(table.receive(table.self, channel, peer, data, bytes, &request), request);
  }
  Expected<bool> test(Request request) override {
    int isDone = 0;
    int failed = table.test(table.self, request, &isDone);
    return result(failed, isDone != 0);
  }
  void rest(int64_t microseconds) override {
    if (table.rest)
      table.rest(table.self, microseconds);
    else
      Transport::rest(microseconds);
  }
  void abandon() override { table.abandon(table.self); }

private:
  template <typename T> Expected<T> result(int failed, const T &value) const {
    if (failed)
      return Status::error(table.error(table.self));
    return value;
  }

  const tessera_transport table;
  std::vector<std::string> hosts;
};
} // namespace

static Expected<std::unique_ptr<Transport>>
openPlugin(const std::string &name, tessera_open_transport open, const JobOptions &options) {
  auto [rank, size, local] = options.rank;
  tessera_group_options given{sizeof(given),
                              name.c_str(),
                              options.place.address.c_str(),
                              options.place.token.empty() ? nullptr : options.place.token.c_str(),
                              rank,
                              size,
                              local,
                              options.timeout};
  tessera_transport table{};
  table.struct_size = sizeof(table);
  char message[1024] = "";
  if (open(&given, &table, message, sizeof(message)) != 0)
    return Status::error("backend '" + name + "': " + message);
  for (const void *each :
       {reinterpret_cast<const void *>(table.open_channel),
        reinterpret_cast<const void *>(table.send), reinterpret_cast<const void *>(table.receive),
        reinterpret_cast<const void *>(table.test), reinterpret_cast<const void *>(table.abandon),
        reinterpret_cast<const void *>(table.close), reinterpret_cast<const void *>(table.error),
        reinterpret_cast<const void *>(table.hosts)})
    if (!each)
      return Status::error("backend '" + name + "' has a null function; only rest may be null");
  if (table.rank != rank || table.size != size)
    return Status::error("backend '" + name + "' reports rank " + std::to_string(table.rank) +
                         " of " + std::to_string(table.size) + ", expected rank " +
                         std::to_string(rank) + " of " + std::to_string(size));
  return std::unique_ptr<Transport>(new PluginTransport(table));
}

Status loadTransport(const std::string &path) {
  SharedLibrary library; // stays loaded
  TESSERA_RETURN_IF_ERROR(library.open({path.c_str()}, "a backend of process groups"));
  tessera_transport_entry_fn entry = nullptr;
  TESSERA_RETURN_IF_ERROR(library.find(entry, TESSERA_TRANSPORT_ENTRY));
  tessera_open_transport open = nullptr;
  const char *name = entry(&open);
  if (!name || !open)
    return Status::error("'" + path + "' gives no name for its transport");
  std::string copy = name;
  return registerTransport(
      copy, [copy, open](const JobOptions &options) { return openPlugin(copy, open, options); });
}

} // namespace tessera::runtime
