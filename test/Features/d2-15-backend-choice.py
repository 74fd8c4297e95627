# RUN: %tessera_python %s
# REQUIRES: tessera-core
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""D2-15: by default the back end for the CPU is taken; one for GPUs alone is refused with its name and the device."""

import numpy as np

import tessera.distributed as dist
from feature_case import refused

dist.init_process_group()
assert dist.get_backend() == "tcp"
x = np.arange(3)
dist.all_reduce(x)
dist.destroy_process_group()
refused("backend 'nccl' works on devices 'cuda', and groups of this package on 'cpu', whose backends are", lambda: dist.init_process_group("nccl"))
refused("no backend 'gloo'; there are", lambda: dist.init_process_group("gloo"))
