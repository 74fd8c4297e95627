# RUN: %tessera_python %s
# REQUIRES: tessera-core
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""D1-6: hvd.run starts a function as the ranks of a job and returns their results by rank; a failure is raised with its rank."""

import numpy as np

import tessera.horovod as hvd
from feature_case import refused


def total(offset, factor=1):
    hvd.init()
    return hvd.rank(), hvd.local_rank(), hvd.size(), float(hvd.allreduce(np.full(1, factor * (hvd.rank() + offset)), op=hvd.Sum)[0])


def fails():
    raise KeyError("absent")


if __name__ == "__main__":
    assert hvd.run(total, (1,), {"factor": 2.0}, np=3) == [(rank, rank, 3, 12.0) for rank in range(3)]
    refused("KeyError: 'absent'", lambda: hvd.run(fails, np=2))
    refused("np 0 is not a whole number", lambda: hvd.run(total, (1,), np=0))
    refused("hosts names 'other'", lambda: hvd.run(total, (1,), np=2, hosts="other:2"))
    refused("hosts 'localhost:2' has 2 slots", lambda: hvd.run(total, (1,), np=4, hosts="localhost:2"))
    refused("tessera launch -np N SCRIPT", lambda: hvd.run(total, (1,), np=2, use_mpi=True))
    refused("func 3 is not a function", lambda: hvd.run(3))
