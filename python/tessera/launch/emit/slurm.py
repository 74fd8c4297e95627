# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A batch script for Slurm; sbatch(1) documents its directives."""

from __future__ import annotations

import shlex

from ..arguments import Arguments
from . import count, name, passed


def script(arguments: Arguments) -> str:
    """The batch script: srun starts and ends one launcher per node, which starts the node's ranks."""
    directives = {"job-name": name(arguments), "nodes": arguments.nnodes, "ntasks-per-node": 1, "gpus-per-node": arguments.gpus_per_node,
                  "cpus-per-task": arguments.cpus_per_node, "time": arguments.time, "partition": arguments.partition}
    lines = ["#!/bin/bash"]
    lines += [f"#SBATCH --{key}={value}" for key, value in directives.items() if value is not None]
    if arguments.cpus_per_node is None:
        lines.append("#SBATCH --exclusive")  # by default, a task has one core
    words = ["exec", "python3", "-m", "tessera.launch", '--nnodes="$SLURM_NNODES"', '--node_rank="$SLURM_NODEID"',
             '--master_addr="$MASTER_ADDR"', f"--nproc_per_node={count(arguments)}", *map(shlex.quote, passed(arguments)), '"$@"']
    lines += ["set -euo pipefail", "",
              "# The job's secret; srun passes the environment on.",
              "TESSERA_JOB_TOKEN=$(od -An -N32 -tx1 /dev/urandom | tr -d ' \\n')",
              'MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)',
              "export TESSERA_JOB_TOKEN MASTER_ADDR", "",
              f"srun --kill-on-bad-exit=1 bash -c {shlex.quote(' '.join(words))} \\",
              "  tessera " + shlex.join([arguments.script, *arguments.args])]
    return "\n".join(lines) + "\n"
