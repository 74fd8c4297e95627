# RUN: %tessera_python %s
# REQUIRES: tessera-core
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""D3-4: recursive programming gives a legal plan for any number of devices, at most 1.05 of dynamic programming's cost here, and its values
are those of one device."""

import numpy as np

import tessera as ts

R = np.random.default_rng(0)
x, w, v = (R.standard_normal(shape).astype(np.float32) for shape in ((64, 128), (128, 256), (256, 64)))
program = ts.jit(lambda x, w, v: ts.tanh(x @ w) @ v).lower(x, w, v)
expected = np.tanh(x @ w) @ v
for devices in (2, 3, 4, 6, 7, 8):
    costs = {mode: program.explain(search=mode, devices=devices)["search"]["cost"] for mode in ("recursive_programming", "dynamic_programming")}
    assert costs["recursive_programming"] <= 1.05 * costs["dynamic_programming"], (devices, costs)
    made = ts.jit(lambda x, w, v: ts.tanh(x @ w) @ v, mesh=ts.ProcessMesh(range(devices), ["d"]), search="recursive_programming")
    np.testing.assert_allclose(made(x, w, v).numpy(), expected, rtol=1e-3, atol=1e-3)
