//===- LibraryFolders.cpp - Folders of optional libraries -----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Support/LibraryFolders.h"

#include <cstdlib>
#include <sstream>

namespace tessera {

std::vector<std::string> libraryFolders() {
  std::vector<std::string> folders;
  const char *value = std::getenv("TESSERA_LIBRARY_PATH");
  std::istringstream text(value ? value : "");
  for (std::string folder; std::getline(text, folder, ':');)
    if (!folder.empty())
      folders.push_back(folder);
  return folders;
}

} // namespace tessera
