# RUN: %tessera_python %s
# REQUIRES: tessera-core
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""D2-14: spawn starts fn(rank, *args) as processes of a job; the exception of one is raised here, with its rank."""

import os
import tempfile

import numpy as np

import tessera.distributed as dist


def works(rank, path, offset):
    dist.init_process_group("tcp", f"file://{path}", rank=rank, world_size=3)
    x = np.full(2, rank + offset)
    dist.all_reduce(x)
    assert (x == 3 + 3 * offset).all()
    with open(f"{path}.{rank}", "w") as file:
        file.write(str(os.getpid()))
    dist.destroy_process_group()


def fails(rank):
    if rank == 1:
        raise ValueError("not today")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "meet")
        dist.spawn(works, (path, 10), nprocs=3, join=True)
        processes = {open(f"{path}.{rank}").read() for rank in range(3)}
        assert len(processes) == 3 and str(os.getpid()) not in processes
    try:
        dist.spawn(fails, nprocs=3)
    except dist.SpawnError as error:
        assert "rank 1" in str(error) and "ValueError: not today" in str(error), error
    else:
        raise AssertionError("the exception was lost")
