//===- Session.cpp - Running artifacts from Python -------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Module.h"

#include "tessera/Runtime/tessera_rt.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <memory>

namespace nb = nanobind;
using namespace nb::literals;
using tessera::python::Error;

static void check(tessera_status status) {
  if (status != TESSERA_OK)
    throw Error(tessera_last_error());
}

namespace {

using Buffer = nb::ndarray<uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using ConstBuffer = nb::ndarray<const uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

/// An argument or a result. `dtype` is the element type as MLIR names it.
struct Tensor {
  std::string name, dtype, home;
  std::vector<int64_t> shape;
  int64_t feeds;
};

class Session {
public:
  Session(nb::bytes artifact, const std::string &backend, int64_t devices, int64_t cores,
          uint64_t seed) {
    tessera_open_options options{sizeof(options), backend.c_str(), devices, cores, seed};
    const void *data = artifact.data();
    size_t size = artifact.size();
    tessera_session *opened = nullptr;
    tessera_status status;
    {
      nb::gil_scoped_release unlocked;
      status = tessera_session_open_memory(data, size, &options, &opened);
    }
    check(status);
    session.reset(opened);
  }

  std::vector<Tensor> arguments() const {
    return list(tessera_session_num_arguments(session.get()), tessera_session_argument);
  }
  std::vector<Tensor> results() const {
    return list(tessera_session_num_results(session.get()), tessera_session_result);
  }
  void setArgument(int64_t index, ConstBuffer data) {
    check(tessera_session_set_argument(session.get(), index, data.data(), data.size()));
  }
  void run(int64_t steps) {
    tessera_status status;
    {
      nb::gil_scoped_release unlocked;
      status = tessera_session_run(session.get(), steps);
    }
    check(status);
  }
  void readResult(int64_t index, Buffer data) const {
    check(tessera_session_read_result(session.get(), index, data.data(), data.size()));
  }
  using Boxes = std::vector<std::vector<std::pair<int64_t, int64_t>>>;
  std::optional<Boxes> argumentBox(int64_t index) const {
    return box(index, tessera_session_argument, tessera_session_argument_box);
  }
  std::optional<Boxes> resultBox(int64_t index) const {
    return box(index, tessera_session_result, tessera_session_result_box);
  }
  void setArgumentBox(int64_t index, ConstBuffer data) {
    check(tessera_session_set_argument_box(session.get(), index, data.data(), data.size()));
  }
  void readResultBox(int64_t index, Buffer data) const {
    check(tessera_session_read_result_box(session.get(), index, data.data(), data.size()));
  }
  int64_t wireBytes() const { return tessera_session_wire_bytes(session.get()); }

private:
  template <typename Describe, typename Ask>
  std::optional<Boxes> box(int64_t index, Describe describe, Ask ask) const {
    tessera_tensor_info info{};
    info.struct_size = sizeof(info);
    check(describe(session.get(), index, &info));
    std::vector<int64_t> pairs(2 * static_cast<size_t>(info.rank) + 1);
    int count = 0;
    check(ask(session.get(), index, pairs.data(), &count));
    if (count < 0)
      return {};
    Boxes boxes(static_cast<size_t>(count));
    for (auto &each : boxes)
      for (int64_t d = 0; d < info.rank; ++d)
        each.emplace_back(pairs[2 * d], pairs[2 * d + 1]);
    return boxes;
  }
  template <typename Ask> std::vector<Tensor> list(int64_t count, Ask ask) const {
    static const char *const names[] = {"f64", "f32", "f16", "bf16", "i64",
                                        "i32", "i16", "i8",  "i1",   "index"};
    std::vector<Tensor> result;
    for (int64_t i = 0; i < count; ++i) {
      tessera_tensor_info info{};
      info.struct_size = sizeof(info);
      check(ask(session.get(), i, &info));
      result.push_back({info.name, names[info.dtype], info.home,
                        std::vector<int64_t>(info.shape, info.shape + info.rank), info.feeds});
    }
    return result;
  }

  struct Close {
    void operator()(tessera_session *opened) const { tessera_session_close(opened); }
  };
  std::unique_ptr<tessera_session, Close> session;
};

} // namespace

void tessera::python::defineSession(nb::module_ &m) {
  nb::class_<Tensor>(m, "Tensor", "An argument or a result of a program.")
      .def_ro("name", &Tensor::name)
      .def_ro("dtype", &Tensor::dtype, "f64, f32, f16, bf16, i64, i32, i16, i8, i1 or index")
      .def_ro("shape", &Tensor::shape)
      .def_ro("home", &Tensor::home, "mesh and layout as JSON (docs/step-format.md), or \"\"")
      .def_ro("feeds", &Tensor::feeds, "the argument of the next step that a result is, or -1");
  nb::class_<Session>(m, "Session", "An artifact on its devices. Buffers are flat arrays of bytes.")
      .def(nb::init<nb::bytes, const std::string &, int64_t, int64_t, uint64_t>(), "artifact"_a,
           "backend"_a = "threads", "devices"_a = 0, "cores"_a = 0, "seed"_a = 0)
      .def_prop_ro("arguments", &Session::arguments)
      .def_prop_ro("results", &Session::results)
      .def("set_argument", &Session::setArgument, "index"_a, "data"_a)
      .def("run", &Session::run, "steps"_a = 1)
      .def("read_result", &Session::readResult, "index"_a, "data"_a)
      .def("argument_box", &Session::argumentBox, "index"_a,
           "The box that this process holds of an argument, in a list that is empty where it holds "
           "nothing; None where whole values are to be given.")
      .def("result_box", &Session::resultBox, "index"_a)
      .def("set_argument_box", &Session::setArgumentBox, "index"_a, "data"_a)
      .def("read_result_box", &Session::readResultBox, "index"_a, "data"_a)
      .def_prop_ro("wire_bytes", &Session::wireBytes, "what the runtime counted since it opened");
  m.def(
      "device_memory",
      [](int64_t device) {
        tessera_memory_use use{};
        use.struct_size = sizeof(use);
        check(tessera_device_memory(device, &use));
        return std::vector<int64_t>{use.allocated, use.reserved, use.peak_allocated,
                                    use.peak_reserved};
      },
      "device"_a,
      "Bytes that the open sessions have on a device: used, reserved, and the peaks of both.");
  m.def(
      "reset_peak_memory", [](int64_t device) { check(tessera_device_reset_peak_memory(device)); },
      "device"_a, "The peaks begin again from what there is now.");
  m.def(
      "devices_with_memory",
      [] {
        std::vector<int64_t> devices(static_cast<size_t>(tessera_devices_with_memory(nullptr, 0)));
        devices.resize(static_cast<size_t>(std::min<int64_t>(
            static_cast<int64_t>(devices.size()),
            tessera_devices_with_memory(devices.data(), static_cast<int64_t>(devices.size())))));
        return devices;
      },
      "The devices that have had memory in this process, ascending.");
}
