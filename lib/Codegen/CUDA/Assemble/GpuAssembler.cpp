//===- GpuAssembler.cpp - Find NVIDIA's assembler -------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GpuAssembler.h"

#include "tessera/Support/LibraryFolders.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/Program.h"

using namespace llvm;

namespace tessera::codegen {

/// Newer versions first. The name without a version is the link in the toolkit.
static constexpr StringLiteral kLibraries[] = {"libnvJitLink.so.13", "libnvJitLink.so.12",
                                               "libnvJitLink.so"};

/// Path and size in bytes, which differ between versions. The modification time is not included:
/// symbols depend on this key, and ranks that compile by themselves must agree about them.
static std::string keyOf(const std::string &path) {
  uint64_t bytes = 0;
  if (sys::fs::file_size(path, bytes))
    return path;
  return path + ":" + std::to_string(bytes);
}

static bool takeLibrary(const std::string &file, Assembler &result, std::string &error) {
  if (!result.library.open(file, result.path, error))
    return false;
  result.key = keyOf(result.path) + ":" + result.library.version();
  return true;
}

static bool takeProgram(const std::string &file, Assembler &result) {
  if (!sys::fs::can_execute(file))
    return false;
  result.path = file;
  result.key = keyOf(file);
  return true;
}

/// The folders of toolkits in search order.
static SmallVector<std::string> toolkits() {
  SmallVector<std::string> result;
  for (const char *variable : {"CUDA_HOME", "CUDA_PATH"})
    if (std::optional<std::string> root = sys::Process::GetEnv(variable))
      result.push_back(*root);
  if (ErrorOr<std::string> found = sys::findProgramByName("ptxas"))
    result.push_back(sys::path::parent_path(sys::path::parent_path(*found)).str());
  result.push_back("/usr/local/cuda");
  return result;
}

/// `said` gets the reason if a library exists but cannot be used.
static bool takeToolkit(StringRef root, Assembler &result, std::string &said) {
  for (StringRef folder : {"lib64", "lib", "targets/x86_64-linux/lib"})
    for (StringRef name : kLibraries) {
      SmallString<128> path(root);
      sys::path::append(path, folder, name);
      if (sys::fs::exists(path) && takeLibrary(std::string(path), result, said))
        return true;
    }
  SmallString<128> path(root);
  sys::path::append(path, "bin", "ptxas");
  return takeProgram(std::string(path), result);
}

Assembler findAssembler(const std::string &asked, std::string &error) {
  Assembler result;
  std::string said;
  if (sys::path::filename(asked).contains(".so")) {
    if (!takeLibrary(asked, result, said))
      error = "the assembler '" + asked + "' cannot be used: " + said;
    return result;
  }
  if (!asked.empty()) {
    if (!takeProgram(asked, result))
      error = "the assembler '" + asked + "' cannot be executed";
    return result;
  }
  for (const std::string &root : toolkits())
    if (takeToolkit(root, result, said))
      return result;
  std::string unused;
  for (const std::string &folder : libraryFolders())
    for (StringRef name : kLibraries) {
      SmallString<128> path(folder);
      sys::path::append(path, name);
      if (sys::fs::exists(path) && takeLibrary(std::string(path), result, said))
        return result;
    }
  for (StringRef name : kLibraries)
    if (takeLibrary(name.str(), result, unused))
      return result;
  error = "code for sm_NN needs NVIDIA's assembler: no libnvJitLink in lib64 and no ptxas in bin "
          "of CUDA_HOME, of a toolkit on the PATH or of /usr/local/cuda, and no libnvJitLink in "
          "TESSERA_LIBRARY_PATH" +
          (said.empty() ? "" : " (" + said + ")") +
          "; install the CUDA toolkit, or compile for compute_NN or stub";
  return result;
}

} // namespace tessera::codegen
