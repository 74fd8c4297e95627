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

/// The value of an option by its name in Python.
template <typename Value> static Value valueOf(std::string_view option, const std::string &name) {
  std::optional<Value> value = parse<Value>(name);
  if (!value)
    throw python::Error("error: " + unknownName<Value>(option, name));
  return *value;
}

/// Runs `work` without the interpreter's lock; a missing result is an error with the messages.
template <typename Program, typename Work> static auto compiled(Program &program, Work &&work) {
  std::string messages;
  program.messages = &messages;
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

/// Declares a function of a program's text and the common options, which gets the options of the
/// program and then the arguments `extra`, of types `Extra`.
template <typename Program, typename... Extra, typename Function, typename... Argument>
static void define(nb::module_ &module, const char *name, const char *doc, Function function,
                   const Argument &...extra) {
  auto call = [function](const std::string &text, Extra... given, const std::string &name,
                         const std::string &function_, const std::string &compileFrom,
                         const std::string &objective, const std::string &topology,
                         const std::string &passes, const std::string &search,
                         const std::string &minimise, const std::string &fusion,
                         double memoryBudget, double timeLimit, int64_t devices, bool remarks,
                         bool fullyUseDevices, std::optional<bool> overlap, bool narrowReductions,
                         const std::string &attentionSequence) {
    Program program;
    program.text = text;
    program.file = name;
    program.function = function_;
    program.compileFrom = compileFrom;
    program.objective = valueOf<sharding::Objective>("objective", objective);
    program.topology = topology;
    program.passes = passes;
    program.search.mode = search;
    program.search.minimise = valueOf<Minimise>("minimise", minimise);
    program.fusion = fusion;
    if (memoryBudget > 0)
      program.search.memoryBudget = memoryBudget;
    program.search.timeLimit = timeLimit;
    program.search.devices = devices;
    program.remarks = remarks;
    program.search.fullyUseDevices = fullyUseDevices;
    program.overlaps = overlap;
    program.narrowReductions = narrowReductions;
    program.attentionSequence = valueOf<AttentionSequence>("attention sequence", attentionSequence);
    return function(program, given...);
  };
  module.def(name, call, "text"_a, extra..., "name"_a = "program", "function"_a = "",
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

  define<ProgramOptions, std::string>(
      m, "lower",
      "The program as MLIR text in phase `to`, and the compiler's diagnostics. Phases are in "
      "docs/architecture.md; \"input\" only parses and verifies.",
      [](ProgramOptions &program, const std::string &to) {
        return compiled(program, [&](auto &options) { return lowerProgram(options, to); });
      },
      "to"_a);
  define<ExplainOptions>(
      m, "explain",
      "The report of docs/report.md as JSON text and as a table, and the compiler's diagnostics.",
      [](ExplainOptions &program) { return compiled(program, reportTexts); });
  define<CompileOptions, std::string, std::string>(
      m, "compile",
      "The bytes of an artifact for Session, and the compiler's diagnostics. `target` is cpu, cuda "
      "or stub; `arch` the architectures of cuda, with commas.",
      [](CompileOptions &program, const std::string &target, const std::string &arch) {
        program.target = valueOf<Target>("target", target);
        if (!arch.empty())
          program.archs = {arch};
        auto [artifact, messages] =
            compiled(program, [](auto &options) -> std::optional<runtime::Bytes> {
              auto artifact = compileOnce(options);
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
