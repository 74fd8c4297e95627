//===- GpuAssemble.cpp - Assemble PTX to cubins ---------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../GpuStages.h"

#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/Regex.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace tessera::codegen {

/// Parses the output of `ptxas -v`, and the log of libnvJitLink (which continues with the link):
///   ptxas info    : Compiling entry function 'k' for 'sm_80'
///   ptxas info    : Function properties for k
///       0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
///   ptxas info    : Used 16 registers, used 0 barriers, 376 bytes cmem[0]
static void readUsage(StringRef log, StringRef arch, std::map<std::string, GpuUsage> &usage) {
  Regex entry("Compiling entry function '([^']+)'"), used("Used ([0-9]+) registers");
  Regex frame(
      "([0-9]+) bytes stack frame, ([0-9]+) bytes spill stores, ([0-9]+) bytes spill loads");
  SmallVector<StringRef> lines, match;
  log.split(lines, '\n');
  std::string current;
  auto number = [&](unsigned i) {
    int64_t value = 0;
    (void)match[i].getAsInteger(10, value);
    return value;
  };
  for (StringRef line : lines) {
    if (entry.match(line, &match)) {
      current = match[1].str();
      usage[current].arch = arch.str();
    } else if (!current.empty() && frame.match(line, &match)) {
      usage[current].stackBytes = number(1);
      usage[current].spillBytes = number(2) + number(3);
    } else if (!current.empty() && used.match(line, &match)) {
      usage[current].registers = number(1);
    }
  }
}

/// Assembles a cubin by a child process. `said` gets its output.
static mlir::FailureOr<std::string> runPtxas(const std::string &ptxas, const std::string &ptx,
                                             StringRef arch, std::string &said,
                                             double &milliseconds, std::string &error) {
  SmallString<128> directory;
  if (std::error_code code = sys::fs::createUniqueDirectory("tessera-ptx", directory)) {
    error = "cannot create a temporary directory: " + code.message();
    return mlir::failure();
  }
  auto cleanup = make_scope_exit([&] { sys::fs::remove_directories(directory); });
  auto path = [&](StringRef name) {
    SmallString<128> result = directory;
    sys::path::append(result, name);
    return std::string(result);
  };
  std::string input = path("kernel.ptx"), output = path("kernel.cubin"), log = path("log");
  {
    std::error_code code;
    raw_fd_ostream file(input, code);
    if (!code)
      file << ptx;
    file.close();
    if (code || file.has_error()) {
      error = "cannot write '" + input + "': " + (code ? code : file.error()).message();
      file.clear_error();
      return mlir::failure();
    }
  }
  std::string message;
  std::optional<StringRef> redirects[] = {StringRef(""), StringRef(log), StringRef(log)};
  std::optional<sys::ProcessStatistics> spent;
  int status =
      sys::ExecuteAndWait(ptxas, {ptxas, "-v", "-O3", ("-arch=" + arch).str(), input, "-o", output},
                          std::nullopt, redirects, /*SecondsToWait=*/120, /*MemoryLimit=*/0,
                          &message, /*ExecutionFailed=*/nullptr, &spent);
  if (spent)
    milliseconds += 1e-3 * static_cast<double>(spent->TotalTime.count());
  if (auto written = MemoryBuffer::getFile(log))
    said = (*written)->getBuffer().str();
  auto cubin = MemoryBuffer::getFile(output, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (status != 0 || !cubin) {
    error = "status " + std::to_string(status);
    for (StringRef part : {StringRef(message), StringRef(said).trim()})
      if (!part.empty())
        error += ": " + part.str();
    return mlir::failure();
  }
  return (*cubin)->getBuffer().str();
}

mlir::FailureOr<std::string> assemble(const Assembler &assembler, const std::string &ptx,
                                      StringRef arch, std::map<std::string, GpuUsage> &usage,
                                      double &milliseconds, std::string &error) {
  std::string log;
  mlir::FailureOr<std::string> cubin =
      assembler.library.create ? assembler.library.assemble(ptx, arch, log, error)
                               : runPtxas(assembler.path, ptx, arch, log, milliseconds, error);
  if (failed(cubin)) {
    error = "'" + assembler.path + "' failed: " + error;
    llvm::replace(error, '\n', ' ');
    return mlir::failure();
  }
  readUsage(log, arch, usage);
  return cubin;
}

} // namespace tessera::codegen
