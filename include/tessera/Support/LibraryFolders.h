//===- LibraryFolders.h - Folders of optional libraries ---------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_SUPPORT_LIBRARYFOLDERS_H
#define TESSERA_SUPPORT_LIBRARYFOLDERS_H

#include <string>
#include <vector>

namespace tessera {

/// The folders of the environment variable TESSERA_LIBRARY_PATH, in order: where the loader does
/// not look, but pip installs libraries, for example. The Python package sets it. Read at each
/// call.
std::vector<std::string> libraryFolders();

} // namespace tessera

#endif // TESSERA_SUPPORT_LIBRARYFOLDERS_H
