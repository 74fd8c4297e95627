//===- Groups.cpp - The Python module tessera._groups ---------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Process groups over the C interface of the runtime. Buffers are addresses: the
// package (python/tessera/distributed) handles types, sizes and lifetimes.
//
//===----------------------------------------------------------------------===//

#include "tessera/Runtime/tessera_groups.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <stdexcept>

namespace nb = nanobind;
using namespace nb::literals;

namespace {

struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

void check(tessera_status status) {
  if (status != TESSERA_OK)
    throw Error(tessera_last_error());
}

const char *orNull(const std::optional<std::string> &text) {
  return text ? text->c_str() : nullptr;
}

class Work {
public:
  explicit Work(tessera_work *made) : work(made) {}
  bool isCompleted() const { return tessera_work_is_completed(work.get()); }
  /// Lets signals through, so that a wait can be interrupted.
  void wait() {
    while (true) {
      int hasEnded;
      {
        nb::gil_scoped_release unlocked;
        hasEnded = tessera_work_wait_for(work.get(), 0.2);
      }
      if (hasEnded)
        break;
      if (PyErr_CheckSignals() != 0)
        throw nb::python_error();
    }
    check(tessera_work_wait(work.get()));
  }
  int64_t source() const { return tessera_work_source(work.get()); }

private:
  struct Free {
    void operator()(tessera_work *held) const { tessera_work_free(held); }
  };
  std::unique_ptr<tessera_work, Free> work;
};

class Group {
public:
  explicit Group(tessera_group *made) : group(made) {}

  static std::unique_ptr<Group> open(const std::string &backend, const std::string &address,
                                     const std::optional<std::string> &token, int64_t rank,
                                     int64_t size, int64_t localRank, double timeout) {
    tessera_group_options options{
        sizeof(options), backend.c_str(), address.c_str(), orNull(token), rank, size,
        localRank,       timeout};
    tessera_group *made = nullptr;
    tessera_status status;
    {
      nb::gil_scoped_release unlocked;
      status = tessera_group_open(&options, &made);
    }
    check(status);
    return std::make_unique<Group>(made);
  }
  std::unique_ptr<Group> make(const std::vector<int64_t> &ranks, double timeout) const {
    tessera_group *made = nullptr;
    tessera_status status;
    {
      nb::gil_scoped_release unlocked;
      status = tessera_group_new(group.get(), ranks.data(), static_cast<int64_t>(ranks.size()),
                                 timeout, &made);
    }
    check(status);
    return made ? std::make_unique<Group>(made) : nullptr;
  }
  void close() {
    nb::gil_scoped_release unlocked;
    group.reset();
  }
  std::vector<int64_t> members() const {
    std::vector<int64_t> ranks;
    for (int64_t place = 0; place < tessera_group_size(group.get()); ++place)
      ranks.push_back(tessera_group_member(group.get(), place));
    return ranks;
  }
  std::string host(int64_t rank) const {
    const char *name = tessera_group_host(group.get(), rank);
    return name ? name : "";
  }
  std::unique_ptr<Work> call(const std::string &kind, const std::string &type,
                             const std::optional<std::string> &reduction, int64_t root,
                             const std::vector<int64_t> &counts,
                             const std::vector<int64_t> &receives, uintptr_t input,
                             uintptr_t output, const std::optional<std::string> &algorithm,
                             const std::optional<std::string> &where,
                             const std::optional<std::string> &device, uintptr_t stream,
                             const std::vector<uintptr_t> &inputs,
                             const std::vector<uintptr_t> &outputs) const {
    tessera_collective collective =
        describe(kind, type, reduction, root, counts, receives, algorithm);
    collective.device = orNull(device);
    collective.stream = reinterpret_cast<void *>(stream);
    collective.inputs =
        inputs.empty() ? nullptr : reinterpret_cast<const void *const *>(inputs.data());
    collective.outputs =
        outputs.empty() ? nullptr : reinterpret_cast<void *const *>(outputs.data());
    collective.where = orNull(where);
    collective.input = reinterpret_cast<const void *>(input);
    collective.output = reinterpret_cast<void *>(output);
    tessera_work *work = nullptr;
    check(tessera_group_call(group.get(), &collective, &work));
    return std::make_unique<Work>(work);
  }
  std::string algorithm(const std::string &kind, const std::string &type, int64_t root,
                        const std::vector<int64_t> &counts,
                        const std::vector<int64_t> &receives) const {
    tessera_collective collective = describe(kind, type, {}, root, counts, receives, {});
    const char *name = nullptr;
    check(tessera_group_algorithm(group.get(), &collective, &name));
    return name;
  }
  std::vector<int64_t> sentBytes(const std::string &kind, const std::string &type, int64_t root,
                                 const std::vector<int64_t> &counts,
                                 const std::vector<int64_t> &receives,
                                 const std::optional<std::string> &algorithm) const {
    tessera_collective collective = describe(kind, type, {}, root, counts, receives, algorithm);
    std::vector<int64_t> bytes(static_cast<size_t>(tessera_group_size(group.get())));
    check(tessera_group_sent_bytes(group.get(), &collective, bytes.data()));
    return bytes;
  }
  std::unique_ptr<Work> refuse(const std::string &reason) const {
    tessera_work *work = nullptr;
    check(tessera_group_refuse(group.get(), reason.c_str(), &work));
    return std::make_unique<Work>(work);
  }
  std::unique_ptr<Work> send(int64_t peer, int64_t tag, uintptr_t data, size_t bytes,
                             const std::string &what) const {
    tessera_work *work = nullptr;
    check(tessera_group_send(group.get(), peer, tag, reinterpret_cast<const void *>(data), bytes,
                             what.c_str(), &work));
    return std::make_unique<Work>(work);
  }
  std::unique_ptr<Work> sendFromDevice(int64_t peer, int64_t tag, uintptr_t data, size_t bytes,
                                       const std::string &what, uintptr_t stream) const {
    tessera_work *work = nullptr;
    tessera_status status;
    {
      nb::gil_scoped_release unlocked; // it waits for the stream
      status = tessera_group_send_from_device(
          group.get(), peer, tag, reinterpret_cast<const void *>(data), bytes, what.c_str(),
          reinterpret_cast<void *>(stream), &work);
    }
    check(status);
    return std::make_unique<Work>(work);
  }
  std::unique_ptr<Work> receiveToDevice(int64_t peer, int64_t tag, uintptr_t data, size_t bytes,
                                        const std::string &what) const {
    tessera_work *work = nullptr;
    check(tessera_group_receive_to_device(group.get(), peer, tag, reinterpret_cast<void *>(data),
                                          bytes, what.c_str(), &work));
    return std::make_unique<Work>(work);
  }
  std::unique_ptr<Work> receive(int64_t peer, int64_t tag, uintptr_t data, size_t bytes,
                                const std::string &what) const {
    tessera_work *work = nullptr;
    check(tessera_group_receive(group.get(), peer, tag, reinterpret_cast<void *>(data), bytes,
                                what.c_str(), &work));
    return std::make_unique<Work>(work);
  }

private:
  static tessera_collective describe(const std::string &kind, const std::string &type,
                                     const std::optional<std::string> &reduction, int64_t root,
                                     const std::vector<int64_t> &counts,
                                     const std::vector<int64_t> &receives,
                                     const std::optional<std::string> &algorithm) {
    tessera_collective collective{};
    collective.struct_size = sizeof(collective);
    collective.kind = kind.c_str();
    collective.type = type.c_str();
    collective.reduction = orNull(reduction);
    collective.root = root;
    collective.counts = counts.data();
    collective.num_counts = static_cast<int64_t>(counts.size());
    collective.receives = receives.empty() ? nullptr : receives.data();
    collective.algorithm = orNull(algorithm);
    return collective;
  }

  struct Close {
    void operator()(tessera_group *held) const { tessera_group_close(held); }
  };
  std::unique_ptr<tessera_group, Close> group;
};

} // namespace

NB_MODULE(_groups, m) {
  nb::exception<Error>(m, "Error");
  m.def("backends", [] { return std::string(tessera_group_backends()); });
  m.def("load_backend",
        [](const std::string &path) { check(tessera_load_transport(path.c_str())); });
  nb::class_<Work>(m, "Work")
      .def("is_completed", &Work::isCompleted)
      .def("wait", &Work::wait)
      .def_prop_ro("source", &Work::source);
  nb::class_<Group>(m, "Group")
      .def_static("open", &Group::open, "backend"_a, "address"_a, "token"_a.none(), "rank"_a,
                  "size"_a, "local_rank"_a, "timeout"_a)
      .def("make", &Group::make, "ranks"_a, "timeout"_a)
      .def("close", &Group::close)
      .def("members", &Group::members)
      .def("host", &Group::host, "rank"_a)
      .def("call", &Group::call, "kind"_a, "type"_a, "reduction"_a.none(), "root"_a, "counts"_a,
           "receives"_a, "input"_a, "output"_a, "algorithm"_a.none(), "where"_a.none(),
           "device"_a.none() = nb::none(), "stream"_a = 0, "inputs"_a = std::vector<uintptr_t>(),
           "outputs"_a = std::vector<uintptr_t>())
      .def("algorithm", &Group::algorithm, "kind"_a, "type"_a, "root"_a, "counts"_a, "receives"_a)
      .def("sent_bytes", &Group::sentBytes, "kind"_a, "type"_a, "root"_a, "counts"_a, "receives"_a,
           "algorithm"_a.none())
      .def("refuse", &Group::refuse, "reason"_a)
      .def("send", &Group::send, "peer"_a, "tag"_a, "data"_a, "bytes"_a, "what"_a)
      .def("send_from_device", &Group::sendFromDevice, "peer"_a, "tag"_a, "data"_a, "bytes"_a,
           "what"_a, "stream"_a)
      .def("receive_to_device", &Group::receiveToDevice, "peer"_a, "tag"_a, "data"_a, "bytes"_a,
           "what"_a)
      .def("receive", &Group::receive, "peer"_a, "tag"_a, "data"_a, "bytes"_a, "what"_a);
}
