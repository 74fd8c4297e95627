# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Processes with arrays in memory of an emulated GPU: nccl.py CASE. Rank r prints its results or its error."""

import os
import signal
import sys

import numpy as np

import tessera.distributed as dist
from tessera.errors import ArgumentError


class OnDevice:
    def __init__(self, array):
        self.array = array

    @property
    def __cuda_array_interface__(self):
        return dict(self.array.__array_interface__, version=3, stream=None)


def default():
    """Each device has its backend."""
    host, device = np.full(4, 1.0), np.full(4, 10.0)
    dist.all_reduce(host)
    dist.all_reduce(OnDevice(device))
    print(host[0], device[0], dist.get_backend())


def groups():
    """Each group has its communicator, and messages go through the host."""
    rank, size = dist.get_rank(), dist.get_world_size()
    pairs = [dist.new_group([first, first + 1]) for first in range(0, size, 2)]
    mine, whole = np.full(3, float(rank)), np.full(3, 1.0)
    works = [dist.all_reduce(OnDevice(mine), group=pairs[rank // 2], async_op=True), dist.all_reduce(OnDevice(whole), async_op=True)]
    for work in works:
        work.wait()
    got = np.zeros(2)
    works = dist.batch_isend_irecv([dist.P2POp(dist.isend, OnDevice(np.full(2, float(rank))), (rank + 1) % size),
                                    dist.P2POp(dist.irecv, OnDevice(got), (rank - 1) % size)])
    for work in works:
        work.wait()
    names = [None] * size
    dist.all_gather_object(names, rank)
    print(mine[0], whole[0], got[0], names)


def refused():
    """A call that one rank cannot execute fails on all, and the group stays usable."""
    rank, data = dist.get_rank(), np.ones(2, np.float32)
    for call in (lambda: dist.all_reduce(OnDevice(np.ones(2 + rank, np.float32))),
                 lambda: dist.all_reduce(data if rank else OnDevice(data)),
                 lambda: dist.all_reduce(data),
                 lambda: dist.all_reduce(OnDevice(np.ones(2, np.int16))),
                 lambda: dist.all_reduce(OnDevice(np.ones(2, np.int32)), "bxor"),
                 lambda: dist.all_reduce(OnDevice(data), algorithm="ring"),
                 lambda: dist.all_gather([OnDevice(data)] * dist.get_world_size(), data),
                 lambda: dist.send(data, (rank + 1) % 2)):
        try:
            call()
            print("done")
        except dist.DistributedError as error:
            print(error)
    dist.all_reduce(OnDevice(data))
    print("sum", data[0])


def killed(number=signal.SIGKILL):
    """A rank ends while others are in a call of the device."""
    data = np.ones(1 << 16, np.float32)
    dist.all_reduce(OnDevice(data))
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the launcher ends the others
    if dist.get_rank() == 1:
        os.environ["LOOPBACK_NCCL_SIGNAL"] = str(int(number))
    try:
        dist.all_reduce(OnDevice(data))
    except dist.DistributedError as error:
        print(error, flush=True)
        sys.exit(3)


def stopped():
    killed(signal.SIGSTOP)


def main():
    case, backend = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None
    try:
        dist.init_process_group(backend, timeout=8 if case == "stopped" else 30)
    except (dist.DistributedError, ArgumentError) as error:
        sys.exit(f"cannot begin: {error}")
    {"default": default, "groups": groups, "refused": refused, "killed": killed, "stopped": stopped}[case]()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
