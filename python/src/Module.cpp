//===- Module.cpp - The Python module tessera._core -----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Programs are passed as MLIR text and returned as text, JSON or the bytes of an
// artifact. No MLIR type crosses into Python: two copies of MLIR in a process (jaxlib
// has one) must not exchange objects.
//
//===----------------------------------------------------------------------===//

#include "Module.h"

#include "tessera/Driver/Commands.h"
#include "tessera/Runtime/Artifact/Artifact.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>

namespace nb = nanobind;
using namespace nb::literals;
using namespace tessera;

namespace {

/// Arguments of every function in addition to the text.
struct Options {
  std::string name, function, compileFrom, objective, topology, passes, search, minimise, fusion;
  double memoryBudget; ///< GiB per device, 0: none
  double timeLimit;    ///< seconds of a search
  int64_t devices;     ///< of a program without a mesh, with a search
  bool remarks;
  bool fullyUseDevices; ///< of a search
  std::optional<bool> overlap;
  bool narrowReductions;
  std::string attentionSequence; ///< auto, gather or ring
};

} // namespace

static void fill(ProgramOptions &program, const std::string &text, const Options &options,
                 std::string &messages) {
  program.text = text;
  program.file = options.name;
  program.function = options.function;
  program.compileFrom = options.compileFrom;
  program.objective = options.objective;
  program.topology = options.topology;
  program.passes = options.passes;
  program.fusion = options.fusion;
  program.search.mode = options.search;
  program.search.minimise = options.minimise;
  if (options.memoryBudget > 0)
    program.search.memoryBudget = options.memoryBudget;
  program.search.timeLimit = options.timeLimit;
  program.search.devices = options.devices;
  program.remarks = options.remarks;
  program.search.fullyUseDevices = options.fullyUseDevices;
  program.overlaps = options.overlap;
  program.attentionSequence = options.attentionSequence;
  program.narrowReductions = options.narrowReductions;
  program.messages = &messages;
}

/// Runs `work` without the interpreter's lock; a missing result is an error with the messages.
template <typename Program, typename Work>
static auto compiled(const std::string &text, const Options &options, Work &&work) {
  std::string messages;
  Program program;
  fill(program, text, options, messages);
  auto result = [&] {
    nb::gil_scoped_release unlocked;
    return work(program);
  }();
  if (!result)
    throw python::Error(messages.empty() ? "the program was refused" : messages);
  return std::pair(std::move(*result), std::move(messages));
}

/// JSON and table of the report.
static std::optional<std::pair<std::string, std::string>>
reportTexts(const ExplainOptions &program) {
  std::optional<ReportTexts> texts = explainTexts(program);
  if (!texts)
    return std::nullopt;
  return std::pair(std::move(texts->json), std::move(texts->table));
}

/// Declares a function of a program's text and the common options.
template <typename Function, typename... Extra>
static void define(nb::module_ &module, const char *name, const char *doc, Function function,
                   const Extra &...extra) {
  module.def(name, function, "text"_a, extra..., "name"_a = "program", "function"_a = "",
             "compile_from"_a = "input", "objective"_a = "time", "topology"_a = "", "passes"_a = "",
             "search"_a = "", "minimise"_a = "time", "fusion"_a = "", "memory_budget"_a = 0.0,
             "time_limit"_a = SearchRequest().timeLimit, "devices"_a = 0, "remarks"_a = false,
             "fully_use_devices"_a = true, "overlap"_a = nb::none(), "narrow_reductions"_a = false,
             "attention_sequence"_a = "auto", doc);
}

/// The buffer of a tensor is the memoryview returned by its method `_buffered`.
static int getBuffer(PyObject *self, Py_buffer *view, int flags) {
  PyObject *inner = PyObject_CallMethod(self, "_buffered", nullptr);
  if (!inner) {
    view->obj = nullptr;
    return -1;
  }
  int status = PyObject_GetBuffer(inner, view, flags);
  Py_DECREF(inner);
  return status;
}

/// A base class with the buffer protocol, which Python classes support only from 3.12 on.
static void defineBuffered(nb::module_ &module) {
  static PyType_Slot slots[] = {
      {Py_bf_getbuffer, reinterpret_cast<void *>(getBuffer)},
      {Py_tp_doc, const_cast<char *>("A base class with the buffer protocol.")},
      {0, nullptr}};
  static PyType_Spec spec = {"tessera._core.Buffered", sizeof(PyObject), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};
  module.attr("Buffered") = nb::steal(PyType_FromSpec(&spec));
}

NB_MODULE(_core, m) {
  m.doc() = "Compiler and runtime of Tessera; tessera.Program and tessera.Session wrap it.";
  nb::exception<python::Error>(m, "Error");

  define(
      m, "lower",
      "The program as MLIR text in phase `to`, and the compiler's diagnostics. Phases are in "
      "docs/architecture.md; \"input\" only parses and verifies.",
      [](const std::string &text, const std::string &to, std::string name, std::string function,
         std::string from, std::string objective, std::string topology, std::string passes,
         std::string search, std::string minimise, std::string fusion, double budget,
         double seconds, int64_t devices, bool remarks, bool fully, std::optional<bool> overlap,
         bool narrow, std::string attention) {
        return compiled<ProgramOptions>(
            text,
            {name, function, from, objective, topology, passes, search, minimise, fusion, budget,
             seconds, devices, remarks, fully, overlap, narrow, attention},
            [&](const ProgramOptions &program) { return lowerProgram(program, to); });
      },
      "to"_a);
  define(
      m, "explain",
      "The report of docs/report.md as JSON text and as a table, and the compiler's diagnostics.",
      [](const std::string &text, std::string name, std::string function, std::string from,
         std::string objective, std::string topology, std::string passes, std::string search,
         std::string minimise, std::string fusion, double budget, double seconds, int64_t devices,
         bool remarks, bool fully, std::optional<bool> overlap, bool narrow,
         std::string attention) {
        return compiled<ExplainOptions>(text,
                                        {name, function, from, objective, topology, passes, search,
                                         minimise, fusion, budget, seconds, devices, remarks, fully,
                                         overlap, narrow, attention},
                                        reportTexts);
      });
  define(
      m, "compile",
      "The bytes of an artifact for Session, and the compiler's diagnostics. `target` is cpu, cuda "
      "or "
      "stub; `arch` the architectures of cuda, with commas.",
      [](const std::string &text, const std::string &target, const std::string &arch,
         std::string name, std::string function, std::string from, std::string objective,
         std::string topology, std::string passes, std::string search, std::string minimise,
         std::string fusion, double budget, double seconds, int64_t devices, bool remarks,
         bool fully, std::optional<bool> overlap, bool narrow, std::string attention) {
        auto [artifact, messages] = compiled<CompileOptions>(
            text,
            {name, function, from, objective, topology, passes, search, minimise, fusion, budget,
             seconds, devices, remarks, fully, overlap, narrow, attention},
            [&](CompileOptions &program) -> std::optional<runtime::Bytes> {
              program.target = target;
              if (!arch.empty())
                program.archs = {arch};
              auto artifact = compileOnce(program);
              if (!artifact)
                return std::nullopt;
              return runtime::serialize(*artifact);
            });
        return std::pair(nb::bytes(artifact.data(), artifact.size()), messages);
      },
      "target"_a = "cpu", "arch"_a = "");
  python::defineSession(m);
  defineBuffered(m);
}
