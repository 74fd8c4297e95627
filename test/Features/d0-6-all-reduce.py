# RUN: %tessera_python -m tessera.launch --nproc_per_node 4 --master_port 0 %s
# REQUIRES: tessera-core
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""D0-6: all_reduce equals NumPy for all types and reductions, in place; 16-bit floats are added in float32 and rounded once."""

import numpy as np

import tessera.distributed as dist

try:
    import ml_dtypes
except ImportError:
    ml_dtypes = None

dist.init_process_group()
rank, size = dist.get_rank(), dist.get_world_size()
kinds = {"sum": np.add, "max": np.maximum, "min": np.minimum, "prod": np.multiply}

def data(of, dtype):
    return (np.arange(11) % 4 + of * 0.5 - 1).astype(dtype) if np.dtype(dtype).kind != "i" else ((np.arange(11) + of) % 5 - 2).astype(dtype)

for dtype in (np.int32, np.float32, np.float64, np.float16, *([ml_dtypes.bfloat16] if ml_dtypes else [])):
    for op, of in kinds.items():
        x = data(rank, dtype)
        wide = np.float32 if x.dtype.itemsize == 2 else x.dtype
        expected = of.reduce([data(r, dtype).astype(wide) for r in range(size)]).astype(dtype)
        dist.all_reduce(x, op=op)
        np.testing.assert_array_equal(x, expected, f"{dtype} {op}")
x = data(rank, np.float64)
dist.all_reduce(x, op="avg")
np.testing.assert_array_equal(x, sum(data(r, np.float64) for r in range(size)) / size)
# 1024 + 0.25 four times: rounded after each addition float16 would lose the quarters.
x = np.full(1, 1024 if rank == 0 else 0.5, np.float16)
dist.all_reduce(x)
assert x[0] == np.float16(1025.5), x
dist.destroy_process_group()
