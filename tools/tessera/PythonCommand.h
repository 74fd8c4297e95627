//===- PythonCommand.h - Commands that are Python modules -------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TOOLS_TESSERA_PYTHONCOMMAND_H
#define TESSERA_TOOLS_TESSERA_PYTHONCOMMAND_H

namespace tessera {

/// A command that a module of the Python package implements.
struct PythonCommand {
  const char *name, *module, *help;
};
inline constexpr PythonCommand kPythonCommands[] = {
    {"launch", "tessera.launch",
     "Start a script as the ranks of one job; launch --help says more"},
    {"debug", "tessera.debug", "Say from the dumps of a job where it hung; debug --help says more"},
    {"ckpt", "tessera.checkpoints",
     "List, verify, convert and merge checkpoints; ckpt --help says more"},
    {"topo", "tessera.topo",
     "Show devices and links, find the best ring of devices; topo --help says more"},
    {"bench", "tessera.bench",
     "Measure the speed-up of a script, add up the throughput of logs; bench --help says more"},
    {"preflight", "tessera.preflight",
     "Say what is wrong with the hosts of a job before it starts; preflight --help says more"},
};

/// Executes `python3 -m MODULE` with the null-terminated `arguments` in place of this process. The
/// package is that of the build folder or installation of this program, else python3's own.
/// Returns, with an exit code, only if there is no python3.
int run(const PythonCommand &command, char **arguments);

} // namespace tessera

#endif // TESSERA_TOOLS_TESSERA_PYTHONCOMMAND_H
