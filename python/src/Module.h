//===- Module.h - Parts of the Python module --------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PYTHON_MODULE_H
#define TESSERA_PYTHON_MODULE_H

#include <nanobind/nanobind.h>

#include <stdexcept>

namespace tessera::python {

/// Becomes tessera.Error in Python: a rejected program or artifact, a failed run. The text contains
/// the diagnostics, one per line.
struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Adds the class Session: an artifact opened through the C interface of the runtime.
void defineSession(nanobind::module_ &module);

} // namespace tessera::python

#endif // TESSERA_PYTHON_MODULE_H
