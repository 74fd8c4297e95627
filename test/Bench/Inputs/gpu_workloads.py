# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares the workloads of bench/gpu in JAX and in Tessera, both on the CPU: gpu_workloads.py FOLDER."""

import sys

import jax
import numpy as np

sys.path.insert(0, sys.argv[1])
import workloads  # noqa: E402


def run(workload):
    random = np.random.default_rng(1)

    def make(shape, kind, bound):
        return random.integers(0, bound, shape, np.int32) if bound else (0.3 * random.random(shape)).astype(workloads.kinds()[kind])
    parameters, data = workloads.arrays(np, workload, make)
    ours, theirs = workloads.Tessera(), workloads.Jax()

    def step(library, differentiate, p, *rest):
        function = lambda q, *r: workload.function(library, q, *r)  # noqa: E731
        return differentiate(function)(p, *rest) if workload.gradients else function(p, *rest)
    found = ours.ts.jit(lambda p, *rest: step(ours, ours.ts.value_and_grad, p, *rest))(parameters, *data)
    expected = step(theirs, jax.value_and_grad, parameters, *data)
    leaves = lambda tree: [np.asarray(leaf).astype(np.float32) for leaf in tree]  # noqa: E731
    flat = lambda pair: leaves([pair[0], *pair[1]] if workload.gradients else pair)  # noqa: E731
    # Element by element relative to the root mean square: chains of 16-bit roundings.
    rounding = 2e-1 if workload.kind == "bfloat16" else 2e-3
    worst = 0
    for a, b in zip(flat(found), flat(expected), strict=True):
        if not (np.isfinite(a).all() and np.isfinite(b).all()):
            worst = np.inf
        scale = max(np.sqrt(np.mean(b * b)), 1e-6)
        worst = max(worst, np.max(np.abs(a - b) / np.maximum(np.abs(b), scale)))
    print(f"{workload.name}: {'equal' if worst <= rounding else f'differs by {worst}'}")


for each in workloads.workloads(small=True):
    run(each)
