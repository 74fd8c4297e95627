# RUN: %tessera_python %s
# REQUIRES: tessera-core
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""D3-6: all_reduce_fusion_config=[20, 35] joins 50 gradient all-reduces to three of 20, 15 and 15; [] is the default, indices beyond the
last are remarked; indices that are unsorted, twice, negative or no integers are errors."""

import re
import warnings

import numpy as np

import tessera as ts
from feature_case import refused
from tessera import Partial, ProcessMesh, Replicate, shard_tensor

mesh = ProcessMesh([0, 1], ["d"])
gradients = [np.full(4 + i, i + 1, np.float32) for i in range(50)]


def reduced(values):
    return [shard_tensor(each, mesh, [Replicate()]) for each in values]


def counts(config=None):
    ts.reset_auto_parallel_context()
    if config is not None:
        ts.set_auto_parallel_context(all_reduce_fusion_config=config)
    parts = [shard_tensor(each, mesh, [Partial()]) for each in gradients]
    made = ts.jit(reduced)
    for result, each in zip(made(parts), gradients):
        np.testing.assert_array_equal(result.numpy(), each)
    from tessera import context
    text = made.lower(parts).lower("fused", **context.options())
    members = [len(match.split(",")) for match in re.findall(r"dist\.all_reduce (%[^{o]*?) over", text)]
    report = made.explain(parts)["collectives"]
    assert len(report) == len(members), (report, members)
    return members


assert counts() == [50] and counts([]) == [50]
assert counts([20, 35]) == [20, 15, 15]
with warnings.catch_warnings(record=True):
    warnings.simplefilter("always")
    assert counts([20, 70]) == [20, 30]
for wrong, says in (([35, 20], "has 20 after 35; indices must be strictly ascending"), ([20, 20], "has 20 after 20"), ([-1], "has -1; indices are whole numbers"),
                    ([1.5], "has 1.5"), ([True], "has True"), ("20", "'20' is not a list of indices"), (20, "20 is not a list of indices")):
    refused(says, lambda: ts.set_auto_parallel_context(all_reduce_fusion_config=wrong))
refused("set_auto_parallel_context has no 'all_reduce_fusion'", lambda: ts.set_auto_parallel_context(all_reduce_fusion=[1]))
