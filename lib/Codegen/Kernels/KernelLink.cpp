//===- KernelLink.cpp - Objects to a shared object ------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelLink.h"

#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>
#include <dlfcn.h>

using namespace llvm;

namespace tessera::codegen {

static std::string findLinker(const std::string &asked) {
  if (!asked.empty())
    return sys::fs::can_execute(asked) ? asked : std::string();
  for (const char *name : {"ld.lld-22", "ld.lld"}) {
    if (ErrorOr<std::string> found = sys::findProgramByName(name))
      return *found;
    if (ErrorOr<std::string> found = sys::findProgramByName(name, {TESSERA_LLVM_BINDIR}))
      return *found;
  }
  return "";
}

/// The math library of this process, since its development package may be missing and the linker
/// has no search path.
static std::string findLibm() {
  Dl_info info;
  double (*function)(double) = ::tgamma;
  if (dladdr(reinterpret_cast<void *>(function), &info) && info.dli_fname &&
      StringRef(info.dli_fname).contains("libm"))
    return info.dli_fname;
  return "";
}

static Error writeFile(StringRef path, StringRef content) {
  std::error_code code;
  raw_fd_ostream stream(path, code);
  if (code)
    return createStringError(code, "cannot write '" + path + "': " + code.message());
  stream << content;
  stream.close();
  if (stream.has_error()) {
    code = stream.error();
    stream.clear_error();
    return createStringError(code, "cannot write '" + path + "': " + code.message());
  }
  return Error::success();
}

FailureOr<std::vector<char>> linkSharedObject(ArrayRef<std::string> objects,
                                              ArrayRef<ExportedSymbol> exports,
                                              const std::string &linker, bool foreign,
                                              std::string &error) {
  std::string program = findLinker(linker);
  if (program.empty()) {
    error = linker.empty() ? "linking kernels needs LLVM's linker: no ld.lld-22 or ld.lld on the "
                             "PATH or in " TESSERA_LLVM_BINDIR " (Debian package lld-22)"
                           : "the linker '" + linker + "' cannot be executed";
    return failure();
  }

  SmallString<128> directory;
  if (std::error_code code = sys::fs::createUniqueDirectory("tessera-kernels", directory)) {
    error = "cannot create a temporary directory: " + code.message();
    return failure();
  }
  auto cleanup = make_scope_exit([&] { sys::fs::remove_directories(directory); });
  auto path = [&](const Twine &name) {
    SmallString<128> result = directory;
    sys::path::append(result, name);
    return std::string(result);
  };

  // A response file: thousands of kernels do not fit on a command line.
  std::string arguments;
  auto add = [&](const Twine &argument) { arguments += (argument + "\n").str(); };
  add("-shared");
  add("--build-id=none");
  add("--hash-style=gnu");
  add("-z");
  add("noexecstack");
  for (auto [i, object] : enumerate(objects)) {
    std::string file = path(Twine(i) + ".o");
    if (Error problem = writeFile(file, object)) {
      error = toString(std::move(problem));
      return failure();
    }
    add("\"" + file + "\"");
  }
  // Kernels of equal content share one object under several names.
  std::string versions = "{\n global:\n";
  for (const auto &[name, symbol] : exports) {
    if (name != symbol)
      add("\"--defsym=" + name + "=" + symbol + "\"");
    versions += "  \"" + name + "\";\n";
  }
  versions += " local: *;\n};\n";
  if (Error problem = writeFile(path("versions"), versions)) {
    error = toString(std::move(problem));
    return failure();
  }
  add("\"--version-script=" + path("versions") + "\"");
  add("--no-as-needed");
  if (std::string libm = foreign ? "" : findLibm(); !libm.empty())
    add("\"" + libm + "\"");
  std::string output = path("kernels.so"), response = path("arguments"), log = path("log");
  add("-o");
  add("\"" + output + "\"");
  if (Error problem = writeFile(response, arguments)) {
    error = toString(std::move(problem));
    return failure();
  }

  std::string message;
  std::optional<StringRef> redirects[] = {StringRef(""), StringRef(log), StringRef(log)};
  int status = sys::ExecuteAndWait(program, {program, "@" + response}, std::nullopt, redirects,
                                   /*SecondsToWait=*/60, /*MemoryLimit=*/0, &message);
  auto linked = MemoryBuffer::getFile(output, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (status != 0 || !linked) {
    auto said = MemoryBuffer::getFile(log);
    error = "'" + program + "' failed (" + std::to_string(status) + ")";
    for (StringRef part : {StringRef(message), said ? (*said)->getBuffer().trim() : StringRef()})
      if (!part.empty())
        error += ": " + part.str();
    return failure();
  }
  return std::vector<char>((*linked)->getBufferStart(), (*linked)->getBufferEnd());
}

} // namespace tessera::codegen
