//===- tessera-read.cpp - Check whether MLIR can read a program -----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// tessera-read NAME < program: reads and verifies a program in a child process. If a
// signal ends it, prints the location, with exit code 1; otherwise prints nothing, not
// even errors. The Python package calls it before it reads text that a person wrote,
// because a crash would end the interpreter.
//
//===----------------------------------------------------------------------===//

#include "tessera/Driver/Load.h"
#include "tessera/Driver/Supervisor.h"

int main(int argc, char **argv) {
  std::string name = argc > 1 ? argv[1] : "<stdin>";
  llvm::ErrorOr<std::unique_ptr<llvm::MemoryBuffer>> text = llvm::MemoryBuffer::getSTDIN();
  if (!text || tessera::checkNesting(**text)) // a later reader reports the error
    return 0;
  std::optional<tessera::ReadCrash> crash = tessera::findReadCrash((*text)->getBuffer(), name);
  if (crash)
    llvm::outs() << crash->error << "\n";
  return crash ? 1 : 0;
}
