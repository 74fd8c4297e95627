//===- Session.cpp - Running artifacts from Python ------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Module.h"

#include "tessera/Runtime/tessera_rt.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
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

/// An argument or a result. `dtype` is the element type as in MLIR.
struct Tensor {
  std::string name, dtype, home;
  std::vector<int64_t> shape;
  int64_t feeds;
};

/// The contents of a DLPack capsule.
class Memory {
public:
  explicit Memory(nb::object capsule) : array(nb::cast<nb::ndarray<nb::ro>>(capsule)) {}
  int64_t device() const { return array.device_id(); }
  uintptr_t address() const { return reinterpret_cast<uintptr_t>(array.data()); }
  std::vector<int64_t> shape() const {
    std::vector<int64_t> shape;
    for (size_t d = 0; d < array.ndim(); ++d)
      shape.push_back(static_cast<int64_t>(array.shape(d)));
    return shape;
  }
  std::tuple<int, int, int> type() const {
    return {array.dtype().code, array.dtype().bits, array.dtype().lanes};
  }
  bool isDense() const {
    int64_t stride = 1;
    for (size_t d = array.ndim(); d-- > 0; stride *= static_cast<int64_t>(array.shape(d)))
      if (array.shape(d) != 1 && array.stride(d) != stride)
        return false;
    return true;
  }

private:
  nb::ndarray<nb::ro> array;
};

/// A result that stays on its devices.
class Value {
public:
  explicit Value(tessera_value *value) : value(value) {}
  void read(Buffer data) const {
    tessera_status status;
    {
      nb::gil_scoped_release unlocked;
      status = tessera_value_read(value.get(), data.data(), data.size());
    }
    check(status);
  }
  /// The number of the GPU that holds all of it, and its address; -1 if there is none.
  std::pair<int64_t, uintptr_t> memory(uint64_t stream) const {
    int64_t device = -1;
    void *data = nullptr;
    check(tessera_value_memory(value.get(), stream, &device, &data));
    return {device, reinterpret_cast<uintptr_t>(data)};
  }
  /// A DLPack capsule, which keeps `self` alive.
  static nb::object dlpack(nb::object self, const std::vector<size_t> &shape, uint8_t code,
                           uint8_t bits, uint64_t stream) {
    auto [device, data] = nb::cast<Value &>(self).memory(stream);
    nb::ndarray<> array(reinterpret_cast<void *>(data), shape.size(), shape.data(), self, nullptr,
                        nb::dlpack::dtype{code, bits, 1}, nb::device::cuda::value,
                        static_cast<int>(device));
    return nb::cast(array);
  }
  const tessera_value *get() const { return value.get(); }

private:
  struct Free {
    void operator()(tessera_value *kept) const { tessera_value_free(kept); }
  };
  std::unique_ptr<tessera_value, Free> value;
};

class Session {
public:
  Session(nb::bytes artifact, const std::string &backend, int64_t devices, int64_t cores,
          uint64_t seed, const std::string &precision, bool pin) {
    tessera_open_options options{
        sizeof(options), backend.c_str(), devices, cores, seed, precision.c_str(), pin};
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
  bool readsAlone(int64_t index) const {
    return tessera_session_reads_alone(session.get(), index) == 1;
  }
  std::unique_ptr<Value> keepResult(int64_t index) {
    tessera_value *value = nullptr;
    check(tessera_session_keep_result(session.get(), index, &value));
    return value ? std::make_unique<Value>(value) : nullptr;
  }
  bool setArgumentValue(int64_t index, const Value &value) {
    int taken = 0;
    check(tessera_session_set_argument_value(session.get(), index, value.get(), &taken));
    return taken != 0;
  }
  bool setArgumentMemory(int64_t index, uintptr_t data, size_t bytes, int64_t device) {
    int taken = 0;
    check(tessera_session_set_argument_memory(
        session.get(), index, reinterpret_cast<const void *>(data), bytes, device, &taken));
    return taken != 0;
  }
  std::map<std::string, int64_t> counters() const {
    std::map<std::string, int64_t> found;
    char name[64];
    int64_t count = 0;
    for (int64_t i = 0; tessera_session_counter(session.get(), i, name, &count) == TESSERA_OK; ++i)
      found[name] = count;
    return found;
  }
  int64_t wireBytes() const { return tessera_session_wire_bytes(session.get()); }
  bool keepsOnDevices() const { return tessera_session_keeps_on_devices(session.get()); }

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
  nb::class_<Value>(m, "Value", "A result that stays on its devices.")
      .def("read", &Value::read, "data"_a)
      .def("memory", &Value::memory, "stream"_a = 0,
           "The GPU that holds the whole value (-1: none) and its address, valid for later work of "
           "the CUDA stream.")
      .def(
          "dlpack",
          [](nb::object self, const std::vector<size_t> &shape, uint8_t code, uint8_t bits,
             uint64_t stream) { return Value::dlpack(self, shape, code, bits, stream); },
          "shape"_a, "code"_a, "bits"_a, "stream"_a, "A DLPack capsule.");
  nb::class_<Memory>(m, "Memory", "A foreign array on a GPU, from a DLPack capsule.")
      .def(nb::init<nb::object>(), "capsule"_a)
      .def_prop_ro("device", &Memory::device)
      .def_prop_ro("address", &Memory::address)
      .def_prop_ro("shape", &Memory::shape)
      .def_prop_ro("type", &Memory::type, "DLPack's code, bits and lanes")
      .def_prop_ro("is_dense", &Memory::isDense, "row-major, without gaps");
  nb::class_<Session>(m, "Session", "An artifact on its devices. Buffers are flat arrays of bytes.")
      .def(nb::init<nb::bytes, const std::string &, int64_t, int64_t, uint64_t, const std::string &,
                    bool>(),
           "artifact"_a, "backend"_a = "threads", "devices"_a = 0, "cores"_a = 0, "seed"_a = 0,
           "precision"_a = "", "pin"_a = false)
      .def_prop_ro("arguments", &Session::arguments)
      .def_prop_ro("results", &Session::results)
      .def("set_argument", &Session::setArgument, "index"_a, "data"_a)
      .def("run", &Session::run, "steps"_a = 1)
      .def("read_result", &Session::readResult, "index"_a, "data"_a)
      .def("argument_box", &Session::argumentBox, "index"_a,
           "The box of an argument that this process holds, in a list that is empty if it holds "
           "none; None if whole values must be given.")
      .def("result_box", &Session::resultBox, "index"_a)
      .def("set_argument_box", &Session::setArgumentBox, "index"_a, "data"_a)
      .def("read_result_box", &Session::readResultBox, "index"_a, "data"_a)
      .def("reads_alone", &Session::readsAlone, "index"_a,
           "Whether this process reads a result without the others.")
      .def("keep_result", &Session::keepResult, "index"_a,
           "A copy of a result on its devices; None if the host has it, or other processes have a "
           "part.")
      .def("set_argument_value", &Session::setArgumentValue, "index"_a, "value"_a,
           "False if the argument and the value have different layouts.")
      .def("set_argument_memory", &Session::setArgumentMemory, "index"_a, "data"_a, "bytes"_a,
           "device"_a, "The same for GPU memory, which the next run reads.")
      .def_prop_ro("counters", &Session::counters, "counters of the backend's driver, by name")
      .def_prop_ro("wire_bytes", &Session::wireBytes,
                   "bytes on the wire since the session was opened")
      .def_prop_ro("keeps_on_devices", &Session::keepsOnDevices,
                   "whether results stay on the devices until they are read");
  m.def(
      "backend_target",
      [](const std::string &name) {
        const char *target = tessera_backend_target(name.c_str());
        if (!target)
          check(TESSERA_INVALID_ARGUMENT);
        return std::string(target);
      },
      "name"_a, "The target of `compile` whose code a backend executes: cpu, cuda, stub.");
  m.def(
      "device_memory",
      [](int64_t device) {
        tessera_memory_use use{};
        use.struct_size = sizeof(use);
        check(tessera_device_memory(device, &use));
        return std::vector<int64_t>{use.allocated, use.reserved, use.peak_allocated,
                                    use.peak_reserved};
      },
      "device"_a, "Bytes of the open sessions on a device: used, reserved, and the peaks of both.");
  m.def(
      "reset_peak_memory", [](int64_t device) { check(tessera_device_reset_peak_memory(device)); },
      "device"_a, "Resets the peaks to the current values.");
  m.def(
      "devices_with_memory",
      [] {
        std::vector<int64_t> devices(static_cast<size_t>(tessera_devices_with_memory(nullptr, 0)));
        devices.resize(static_cast<size_t>(std::min<int64_t>(
            static_cast<int64_t>(devices.size()),
            tessera_devices_with_memory(devices.data(), static_cast<int64_t>(devices.size())))));
        return devices;
      },
      "The devices on which this process has had memory, ascending.");
}
