//===- SharedLibrary.cpp - Optional libraries -----------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SharedLibrary.h"

#include "tessera/Support/LibraryFolders.h"

#include <cstring>

namespace tessera::runtime {

Status SharedLibrary::open(std::initializer_list<const char *> names, const char *need,
                           const std::function<Status()> &use) {
  std::vector<std::string> folders = libraryFolders();
  std::string tried, missing, refused;
  for (const char *each : names) {
    std::vector<std::string> places = {each};
    if (!std::strchr(each, '/'))
      for (const std::string &folder : folders)
        places.push_back(folder + "/" + each);
    tried += (tried.empty() ? "" : ", ") + std::string(each);
    for (const std::string &place : places) {
      handle = ::dlopen(place.c_str(), RTLD_NOW | RTLD_GLOBAL);
      if (!handle && missing.empty())
        missing = ::dlerror();
      if (!handle)
        continue;
      name = place;
      Status accepted = use ? use() : Status();
      if (accepted.ok())
        return {};
      refused += (refused.empty() ? "" : "; ") + name + ": " + accepted.message();
    }
  }
  handle = nullptr;
  return Status::error(std::string(need) + "; looked for " + tried + " (" +
                       (refused.empty() ? missing : refused) + ")");
}

void SharedLibrary::preferLoaded(const char *mark) {
  if (::dlsym(RTLD_DEFAULT, mark))
    handle = ::dlopen(nullptr, RTLD_NOW); // all loaded libraries, in the order of loading
}

} // namespace tessera::runtime
