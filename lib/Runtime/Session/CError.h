//===- CError.h - Errors of the C interface ---------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_SESSION_CERROR_H
#define TESSERA_LIB_RUNTIME_SESSION_CERROR_H

#include "tessera/Runtime/tessera_rt.h"

#include <exception>
#include <string>

namespace tessera::runtime::capi {

/// Of this thread.
inline std::string &lastError() {
  static thread_local std::string message;
  return message;
}

inline tessera_status fail(tessera_status status, std::string message) {
  lastError() = std::move(message);
  return status;
}

inline tessera_status nullArgument() {
  return fail(TESSERA_INVALID_ARGUMENT, "a pointer is null");
}

/// Runs a body that returns a tessera_status, and converts exceptions (mostly out of memory) into
/// one: none may cross the C interface.
template <typename Body> tessera_status guarded(const Body &body) {
  try {
    return body();
  } catch (const std::exception &error) {
    return fail(TESSERA_FAILED, error.what());
  } catch (...) {
    return fail(TESSERA_FAILED, "unknown exception");
  }
}

} // namespace tessera::runtime::capi

#endif // TESSERA_LIB_RUNTIME_SESSION_CERROR_H
