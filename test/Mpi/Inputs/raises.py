"""Rank 2 fails between two steps that all ranks run together."""

import os

import numpy as np
import tessera as ts
from tessera import ProcessMesh, Shard, shard_tensor

mesh = ProcessMesh(range(4), ["d"])
step = ts.jit(lambda x: (x * x).sum(), mesh=mesh, backend="mpi")
x = shard_tensor(np.ones((8, 3), np.float32), mesh, [Shard(0)])
step(x)
if os.environ["OMPI_COMM_WORLD_RANK"] == "2":
    raise ValueError("rank 2 has no data")
step(x)
