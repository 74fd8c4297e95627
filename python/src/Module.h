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

/// What Python sees as tessera.Error: a refused program or artifact, a failed run. The text is that
/// of the diagnostics, one a line.
struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Adds the class Session: an artifact opened over the C interface of the runtime.
void defineSession(nanobind::module_ &module);

} // namespace tessera::python

#endif // TESSERA_PYTHON_MODULE_H
