# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Starts a script as two nodes of two ranks on this host, and prints the output of node 0."""

import socket
import subprocess
import sys

ports = []
for _ in range(2):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        ports.append(free.getsockname()[1])
nodes = [subprocess.Popen([sys.executable, "-m", "tessera.launch", "--nnodes=2", f"--node_rank={node}", "--nproc_per_node=2",
                           f"--master_port={ports[0]}", f"--control_port={ports[1]}", *sys.argv[1:]],
                          stdout=None if node == 0 else subprocess.DEVNULL) for node in range(2)]
sys.exit(max(node.wait() for node in nodes))
