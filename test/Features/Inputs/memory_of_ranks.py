"""A rank's memory while a program between processes trains a layer cut over them."""

import numpy as np

import tessera as ts
from tessera import ProcessMesh, Shard, ranks

me, mesh = ranks.read(), ProcessMesh([0, 1], ["x"])


@ts.jit(backend="tcp", donate=True)
def step(w, x):
    return w - 0.1 * ts.grad(lambda w: ts.mean(ts.square(ts.matmul(x, w))))(w)


w, x = ts.shard_tensor(np.ones((512, 1024), np.float32), mesh, [Shard(0)]), np.ones((64, 512), np.float32)
peak = step.explain(w, x)["peak_memory_bytes"]
for _ in range(2):
    w = step(w, x)
found = ts.max_memory_allocated()
print(f"fits {peak <= ts.max_memory_reserved() and 0.9 * peak < found < 1.5 * peak}, of another rank {ts.max_memory_allocated(1 - me.rank)} bytes")
