# RUN: %tessera_python %s
# REQUIRES: tessera-core
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""D0-14: collectives before init_process_group, a second init, and a missing rank are errors; the last names the ranks."""

import os
import subprocess
import sys
import tempfile

import numpy as np

import tessera.distributed as dist
from feature_case import refused

if len(sys.argv) > 1:  # rank 0 and 2 of three
    try:
        dist.init_process_group("tcp", f"file://{sys.argv[2]}", timeout=2 if sys.argv[1] == "0" else 30, world_size=3, rank=int(sys.argv[1]))
    except dist.DistributedError as error:
        print(error)
        sys.exit(3)
    sys.exit(0)

refused("init_process_group", lambda: dist.all_reduce(np.zeros(2)))
refused("init_process_group", dist.get_rank)
with tempfile.TemporaryDirectory() as folder:
    dist.init_process_group("tcp", f"file://{folder}/one", world_size=1, rank=0)
    refused("init_process_group was already called", lambda: dist.init_process_group("tcp", f"file://{folder}/two", world_size=1, rank=0))
    dist.destroy_process_group()
    refused("init_process_group", lambda: dist.barrier())
    refused("rank 4 of world_size 2", lambda: dist.init_process_group("tcp", f"file://{folder}/x", world_size=2, rank=4))
    refused("is not env://, tcp://HOST:PORT or file://PATH", lambda: dist.init_process_group("tcp", "udp://x", world_size=2, rank=0))
    children = [subprocess.Popen([sys.executable, __file__, rank, os.path.join(folder, "three")], stdout=subprocess.PIPE, text=True)
                for rank in ("0", "2")]
    for child in children:
        out = child.communicate(timeout=60)[0]
        assert child.returncode == 3, out
        # Rank 2 gets the error from rank 0, or names rank 0 if that ends first.
        assert "waited 2 s for ranks 1 of 3" in out or child is children[1] and "rank 0" in out, out
