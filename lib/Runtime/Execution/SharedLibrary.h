//===- SharedLibrary.h - Optional libraries ---------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_EXECUTION_SHAREDLIBRARY_H
#define TESSERA_LIB_RUNTIME_EXECUTION_SHAREDLIBRARY_H

#include "tessera/Runtime/Artifact/Status.h"

#include <dlfcn.h>
#include <functional>
#include <initializer_list>

namespace tessera::runtime {

/// A library opened with dlopen and never closed, which drivers do not support well.
class SharedLibrary {
public:
  /// Opens the first of `names` that is available and that `use` accepts, by default each: `use`
  /// finds its functions and initializes it, and an older library may serve where a newer one is
  /// refused. Each name is searched by the loader, then in the folders of TESSERA_LIBRARY_PATH. The
  /// error has the names, the messages, and `need`, the purpose and source of the library.
  Status open(std::initializer_list<const char *> names, const char *need,
              const std::function<Status()> &use = {});
  /// If the process was started with a library that has `mark`, its functions take precedence, as
  /// in programs that are linked with it.
  void preferLoaded(const char *mark);
  /// Sets `function`; fails, naming library and symbol, if the symbol is missing.
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
