# RUN: %tessera_python %s
# REQUIRES: tessera-core
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""D3-5: set_algo_parameters(fully_use_devices=False) searches a superset: the plan costs at most as much, and at least as many candidates
are tried; the default is True; what is not a bool is an error."""

import numpy as np

import tessera as ts
from feature_case import refused


def net(x, w, v):
    return ts.tanh(x @ w) @ v


R = np.random.default_rng(0)
arguments = [R.standard_normal(shape).astype(np.float32) for shape in ((6, 12), (12, 24), (24, 10))]
program = ts.jit(net).lower(*arguments)


def searched():
    """(cost, candidates) of the plan found with the context's parameters."""
    from tessera import context
    found = program.explain(search="dynamic_programming", devices=4, **context.options())["search"]
    return found["cost"], found["candidates"]


assert ts.get_algo_parameters("fully_use_devices") is True
with_all = searched()
ts.set_algo_parameters(fully_use_devices=False)
with_some = searched()
assert with_some[0] <= with_all[0] and with_some[1] >= with_all[1], (with_some, with_all)
ts.reset_algo_parameters()
assert searched() == with_all
for wrong in (1, "yes", None, 0.0):
    refused(f"fully_use_devices {wrong!r} is not True or False", lambda: ts.set_algo_parameters(fully_use_devices=wrong))
refused("set_algo_parameters has no 'elementwise'; expected fully_use_devices", lambda: ts.set_algo_parameters(elementwise=True))
refused("get_algo_parameters has no 'elementwise'", lambda: ts.get_algo_parameters("elementwise"))
