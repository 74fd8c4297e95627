# RUN: %tessera_python %s
# REQUIRES: tessera-core
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""D3-1: a strategy is a tuple of cuts for each input; what has none is left to the compiler, and a product below the devices repeats; cuts
that do not divide, of the wrong number, and products above the devices name the operation, the input and the dimension."""

import numpy as np

import tessera as ts
from feature_case import refused
from tessera import ProcessMesh

x, w = np.random.default_rng(0).standard_normal((16, 8)).astype(np.float32), np.ones((8, 4), np.float32)
mesh = ProcessMesh(range(4), ["x"])
product = ts.matmul.shard(((2, 1), (1, 2)), mesh=mesh)
np.testing.assert_allclose(product(x, w).numpy(), x @ w, rtol=1e-4)
assert [a["local_shape"] for a in product.explain(x, w)["arguments"]] == [[8, 8], [8, 2]]
repeated = ts.matmul.shard(((2, 1), (1, 1)), mesh=mesh)  # 2 parts on 4 devices
np.testing.assert_allclose(repeated(x, w).numpy(), x @ w, rtol=1e-4)
assert [a["local_shape"] for a in repeated.explain(x, w)["arguments"]] == [[8, 8], [8, 4]]
one_unset = ts.matmul.shard(((4, 1), None), mesh=mesh)
np.testing.assert_allclose(one_unset(x, w).numpy(), x @ w, rtol=1e-4)
refused("strategy (3, 1) of input 0 of 'matmul': 3 parts do not divide dimension 0 of extent 16", lambda: ts.matmul.shard(((3, 1), (1, 1)))(x, w))
refused("strategy (2,) of input 1 of 'matmul' has 1 cuts for shape (8, 4)", lambda: ts.matmul.shard(((2, 1), (2,)))(x, w))
refused("in_strategy of 'matmul' has 1 tuples for 2 inputs", lambda: ts.matmul.shard(((2, 1),))(x, w))
refused("makes 8 parts, which do not divide 4 devices", lambda: ts.matmul.shard(((8, 1), (1, 1)), mesh=mesh)(x, w))
