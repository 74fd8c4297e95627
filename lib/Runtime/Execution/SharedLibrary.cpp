//===- SharedLibrary.cpp - Optional libraries -----------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SharedLibrary.h"

namespace tessera::runtime {

Status SharedLibrary::open(std::initializer_list<const char *> names, const char *need) {
  std::string tried, said;
  for (const char *each : names) {
    handle = ::dlopen(each, RTLD_NOW | RTLD_GLOBAL);
    if (handle) {
      name = each;
      return {};
    }
    if (tried.empty())
      said = ::dlerror();
    tried += (tried.empty() ? "" : ", ") + std::string(each);
  }
  return Status::error(std::string(need) + "; looked for " + tried + " (" + said + ")");
}

void SharedLibrary::preferLoaded(const char *mark) {
  if (::dlsym(RTLD_DEFAULT, mark))
    handle = ::dlopen(nullptr, RTLD_NOW); // all loaded libraries, in the order of loading
}

} // namespace tessera::runtime
