//===- Status.h - Success, or a message -------------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The runtime's errors: a value that is success or one line of text with the fault
// and the expectation. Nothing throws across a public header, so that callers built
// without exceptions can use it.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_ARTIFACT_STATUS_H
#define TESSERA_RUNTIME_ARTIFACT_STATUS_H

#include <cassert>
#include <optional>
#include <string>
#include <utility>

namespace tessera::runtime {

/// Success or an error message: one line, lower case, no full stop.
class [[nodiscard]] Status {
public:
  Status() = default;
  static Status error(std::string message) {
    Status status;
    status.text = std::move(message);
    return status;
  }

  bool ok() const { return !text.has_value(); }
  /// The message; empty on success.
  const std::string &message() const {
    static const std::string none;
    return text ? *text : none;
  }
  /// The same error with its location as a prefix: "where: message". Success stays success.
  Status in(const std::string &where) const {
    Status result = *this;
    if (!ok())
      result.text = where + ": " + *text;
    return result;
  }
  /// The same error, marked as printed by the job's first process, which has it, too.
  Status asReportedElsewhere() const {
    Status result = *this;
    result.elsewhere = true;
    return result;
  }
  bool isReportedElsewhere() const { return elsewhere; }

private:
  std::optional<std::string> text;
  bool elsewhere = false;
};

/// A value or an error. Check before using the value.
template <typename T> class [[nodiscard]] Expected {
public:
  Expected(T value) : held(std::move(value)) {}
  Expected(Status status) : failure(std::move(status)) { assert(!failure.ok()); }

  explicit operator bool() const { return held.has_value(); }
  T &operator*() { return *held; }
  const T &operator*() const { return *held; }
  T *operator->() { return &*held; }
  const T *operator->() const { return &*held; }
  const Status &status() const { return failure; }
  const std::string &message() const { return failure.message(); }

private:
  std::optional<T> held;
  Status failure;
};

} // namespace tessera::runtime

/// Returns the error of `expression` (a Status) from the enclosing function, if there is one.
#define TESSERA_RETURN_IF_ERROR(expression)                                                        \
  do {                                                                                             \
    ::tessera::runtime::Status statusOfExpression = (expression);                                  \
    if (!statusOfExpression.ok())                                                                  \
      return statusOfExpression;                                                                   \
  } while (false)

#endif // TESSERA_RUNTIME_ARTIFACT_STATUS_H
