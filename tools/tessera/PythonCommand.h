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
    {"launch", "tessera.launch", "Start a script as the ranks of one job; see launch --help"},
    {"debug", "tessera.debug", "Find where a job hung from its dumps; see debug --help"},
    {"ckpt", "tessera.checkpoints", "List, verify, convert and merge checkpoints; see ckpt --help"},
    {"topo", "tessera.topo",
     "Show devices and links, find the best ring of devices; see topo --help"},
    {"bench", "tessera.bench",
     "Measure the speed-up of a script, add up the throughput of logs; see bench --help"},
    {"preflight", "tessera.preflight",
     "Check the hosts of a job before it starts; see preflight --help"},
};

/// Executes `python3 -m MODULE` with the null-terminated `arguments` in place of this process. The
/// package is that of the build folder or installation of this program, else python3's own.
/// Returns, with an exit code, only if there is no python3.
int run(const PythonCommand &command, char **arguments);

} // namespace tessera

#endif // TESSERA_TOOLS_TESSERA_PYTHONCOMMAND_H
