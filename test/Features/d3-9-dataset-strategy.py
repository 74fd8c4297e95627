# RUN: %tessera_python %s
# REQUIRES: tessera-core
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""D3-9: full_batch, data_parallel and cuts for each input: an image (1, C, H, W) cut by (1, 1, 2, 2) is loaded by quarters, and a
convolution, which exchanges edges, equals the one that is not cut; other strings, ranks, cuts and products are errors."""

import numpy as np

import tessera as ts
from feature_case import refused
from tessera import ProcessMesh, nn
from tessera.data import place_batch

mesh = ProcessMesh(range(4), ["d"])
image = np.random.default_rng(0).standard_normal((1, 3, 8, 8)).astype(np.float32)
batch = np.arange(32, dtype=np.float32).reshape(8, 4)
shapes = lambda *given: [each.local_shape for each in place_batch([batch], mesh, *given)]
assert shapes() == [(2, 4)] and shapes("data_parallel") == [(2, 4)] and shapes("full_batch") == [(8, 4)]
ts.set_auto_parallel_context(dataset_strategy="full_batch")
assert shapes() == [(8, 4)]
ts.set_auto_parallel_context(dataset_strategy=((1, 1, 2, 2),))
placed, = place_batch([image], mesh)
ts.reset_auto_parallel_context()
assert placed.local_shape == (1, 3, 4, 4)
for rank, (row, column) in enumerate(((0, 0), (0, 4), (4, 0), (4, 4))):
    np.testing.assert_array_equal(placed.local_value(rank), image[:, :, row:row + 4, column:column + 4])
conv = nn.Conv2d(3, 4, 3, padding=1)
forward = ts.jit(lambda conv, x: conv(x))
np.testing.assert_allclose(forward(conv, placed).numpy(), forward(conv, image).numpy(), rtol=1e-5, atol=1e-6)
assert {c["kind"] for c in forward.explain(conv, placed)["collectives"]} == {"halo_exchange"}
for wrong, says in (("half", "dataset_strategy 'half'"), (3, "dataset_strategy 3")):
    refused(says, lambda: place_batch([batch], mesh, wrong))
    refused(says, lambda: ts.set_auto_parallel_context(dataset_strategy=wrong))
refused("has 2 tuples for 1 inputs", lambda: place_batch([batch], mesh, ((1, 1), (1, 1))))
refused("has 1 cuts for shape (8, 4)", lambda: place_batch([batch], mesh, ((1,),)))
refused("3 parts do not divide dimension 0 of extent 8", lambda: place_batch([batch], mesh, ((3, 1),)))
refused("makes 8 parts, which do not divide 4 devices", lambda: place_batch([batch], mesh, ((8, 1),)))
