//===- SharedLibrary.h - Libraries that need not be there -------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_EXECUTION_SHAREDLIBRARY_H
#define TESSERA_LIB_RUNTIME_EXECUTION_SHAREDLIBRARY_H

#include "tessera/Runtime/Artifact/Status.h"

#include <dlfcn.h>
#include <initializer_list>

namespace tessera::runtime {

/// A library opened with dlopen, for ever: drivers do not like to be closed.
class SharedLibrary {
public:
  /// Opens the first of `names` that is there. The error says what was looked for, what the loader
  /// said, and `need`, what it is needed for and where it comes from.
  Status open(std::initializer_list<const char *> names, const char *need);
  /// Where the process was started with a library that has `mark`, that one's functions come before
  /// those of the library, as they do for programs that are linked with it.
  void preferLoaded(const char *mark);
  /// Sets `function`; fails, naming library and symbol, when there is none.
  template <typename Function> Status find(Function &function, const char *symbol) const {
    function = reinterpret_cast<Function>(::dlsym(handle, symbol));
    return function ? Status() : Status::error(name + " has no '" + symbol + "'; it is too old");
  }
  /// The same where the symbol may be missing.
  template <typename Function> void findOptional(Function &function, const char *symbol) const {
    function = reinterpret_cast<Function>(::dlsym(handle, symbol));
  }
  bool isOpen() const { return handle != nullptr; }

private:
  std::string name;
  void *handle = nullptr;
};

} // namespace tessera::runtime

#endif // TESSERA_LIB_RUNTIME_EXECUTION_SHAREDLIBRARY_H
