# RUN: %tessera_python %s
# REQUIRES: tessera-core
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""D2-15: by default each device has its back end; one for GPUs alone refuses arrays of the CPU, and is refused where there is no GPU.
(test/Mpi/group_nccl.test has calls on GPUs.)"""

import os

import numpy as np

import tessera.distributed as dist
from feature_case import refused

dist.init_process_group()
assert dist.get_backend() == "tcp"
x = np.arange(3)
dist.all_reduce(x)
dist.destroy_process_group()
refused("no backend 'gloo'; there are", lambda: dist.init_process_group("gloo"))
os.environ["CUDA_VISIBLE_DEVICES"] = ""
refused("rank 0: backend nccl: ", lambda: dist.init_process_group("nccl"))


class OnDevice:
    """An array of a GPU: its address alone counts here."""

    __cuda_array_interface__ = {"data": (0, False), "shape": (0,), "typestr": "<f4", "version": 3}


dist.init_process_group("tcp")
refused("the buffers are on 'cuda', and the job's backend works on 'cpu'; begin it with 'cpu:tcp,cuda:nccl'",
        lambda: dist.all_reduce(OnDevice()))
dist.destroy_process_group()
