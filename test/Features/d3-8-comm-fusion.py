# RUN: %tessera_python %s
# REQUIRES: tessera-core
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""D3-8: comm_fusion by mode auto, size and index: buckets of at most the threshold, equal bits, fewer collectives; unknown keys and modes,
index for allgather, and wrong configs are errors that name the key."""

import numpy as np

import tessera as ts
from feature_case import refused
from tessera import Partial, ProcessMesh, Replicate, Shard, context, shard_tensor

mesh = ProcessMesh([0, 1, 2, 3], ["d"])
R = np.random.default_rng(0)
KiB = 1 << 10
values = [R.standard_normal(n * KiB // 4).astype(np.float32) for n in (300, 300, 300, 900, 2048, 100)]  # the fifth is above 1 MiB


def gathered(parts):
    return [shard_tensor(each, mesh, [Replicate()]) for each in parts]


def run(placement, fusion):
    """Values, and bytes that a device brings to each collective."""
    ts.reset_auto_parallel_context()
    if fusion is not None:
        ts.set_auto_parallel_context(comm_fusion=fusion)
    n = 4 if isinstance(placement, Shard) else 1  # a device has a quarter
    parts, made = [shard_tensor(np.tile(each, n), mesh, [placement]) for each in values], ts.jit(gathered)
    report = made.explain(parts)["collectives"]
    return [each.numpy() for each in made(parts)], [each["bytes"] // n for each in report]


for kind, placement in (("allreduce", Partial()), ("allgather", Shard(0))):
    alone, bytes_alone = run(placement, {kind: {"mode": "size", "config": 1}})
    joined, bytes_joined = run(placement, {kind: {"mode": "auto", "config": None}})
    default, bytes_default = run(placement, None)
    assert bytes_joined == bytes_default and len(bytes_joined) == 1, bytes_joined
    assert 1 < len(bytes_alone) < len(values), bytes_alone
    assert all(each <= 1 << 20 or each == 2048 * KiB for each in bytes_alone), bytes_alone
    for a, b in zip(alone, joined):
        assert a.tobytes() == b.tobytes()
_, by_index = run(Partial(), {"allreduce": {"mode": "index", "config": [2, 4]}})
assert len(by_index) == 3, by_index
ts.reset_auto_parallel_context()

for wrong, says in (({"alltoall": {"mode": "auto"}}, "comm_fusion has the unknown key 'alltoall'; expected one of allreduce, allgather, reducescatter, moves"),
                    ({"allreduce": {"mode": "all"}}, "comm_fusion['allreduce'] has the unknown mode 'all'; expected one of auto, size, index"),
                    ({"allgather": {"mode": "index", "config": [1]}}, "comm_fusion['allgather'] has mode 'index', which only allreduce supports"),
                    ({"allreduce": {"mode": "size", "config": "64"}}, "comm_fusion['allreduce'] has config '64'"),
                    ({"allreduce": {"mode": "size", "config": 0}}, "comm_fusion['allreduce'] has config 0"),
                    ({"reducescatter": {"mode": "size", "config": -3}}, "comm_fusion['reducescatter'] has config -3"),
                    ({"allreduce": {"mode": "index", "config": [3, 1]}}, "config of comm_fusion['allreduce'] has 1 after 3"),
                    ({"allreduce": {"mode": "auto", "config": 3}}, "comm_fusion['allreduce'] has mode 'auto' and config 3"),
                    ({"allreduce": {"config": 3}}, "comm_fusion['allreduce'] is"), ([], "comm_fusion [] is not a dictionary")):
    refused(says, lambda: ts.set_auto_parallel_context(comm_fusion=wrong))
assert ts.get_auto_parallel_context("comm_fusion") is None and context.options() == {}
