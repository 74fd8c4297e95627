# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs an artifact of a training step as two ranks, and reads rank 0's trace: collectives between products of the backward pass."""

import json
import os
import socket
import subprocess
import sys

artifact, trace = sys.argv[1:]
with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    port = free.getsockname()[1]
job = {**os.environ, "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
ranks = [subprocess.Popen(["tessera-exec", artifact, "--backend", "tcp", "--trace", trace], stdout=subprocess.DEVNULL, env={**job, "RANK": str(rank)})
         for rank in range(2)]
assert [rank.wait(300) for rank in ranks] == [0, 0]
with open(trace) as file:
    text = json.load(file)
events = sorted((e["ts"], e["name"]) for e in (text["traceEvents"] if isinstance(text, dict) else text) if e["ph"] == "X" and e["tid"] == 0)
# The forward pass has four products, the backward pass seven: no derivative by the batch is needed. The first bucket has two gradients.
print("rank 0:", *[name for _, name in events if name in ("gemm", "all_reduce")])
