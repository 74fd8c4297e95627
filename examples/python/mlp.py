# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The perceptron of the documents, 1024 -> 4096 -> 1024 on a batch of 4 x 128, in its four forms.

    python mlp.py --form data|tensor|stages|hybrid

data: the batch is cut, parameters are whole. tensor: the first matrix is cut by columns, the second by rows: one all-reduce
forward. stages: one matrix on each of two meshes; the activation moves. hybrid: both on two meshes of 2 x 2.
"""

import common
import numpy as np

from tessera import ProcessMesh, Replicate, Shard, nn, optim, reshard, shard_tensor


class MLP(nn.Module):
    def __init__(self, hidden, inner):
        super().__init__()
        self.w0 = nn.init.fan_in((hidden, inner), hidden)
        self.w1 = nn.init.fan_in((inner, hidden), inner)
        self.move = None  # moves the activation between the layers

    def forward(self, x):
        y = nn.relu(x @ self.w0)
        return (self.move(y) if self.move else y) @ self.w1


class Move:
    def __init__(self, mesh, placements):
        self.mesh, self.placements = mesh, placements

    def __call__(self, y):
        return reshard(y, self.mesh, self.placements)


def plan(form, extents):
    """(mesh of the first layer, of the second, placements of input, w0, w1, and of the activation that moves)."""
    n = int(np.prod(extents))
    if form == "data":
        mesh = common.mesh_of([n], "dp")
        return mesh, mesh, [Shard(0)], [Replicate()], [Replicate()], None
    if form == "tensor":
        mesh = common.mesh_of([n], "mp")
        return mesh, mesh, [Replicate()], [Shard(1)], [Shard(0)], None
    halves = range(max(1, n // 2)), range(n // 2, n)  # equal for a single process
    if form == "stages":
        first, second = [ProcessMesh(ids, ["x"], f"mesh{i}") for i, ids in enumerate(halves)]
        return first, second, [Replicate()], [Replicate()], [Replicate()], [Replicate()]
    grids = [np.array(ids).reshape(1 if len(ids) % 2 else 2, -1) for ids in halves]
    first, second = [ProcessMesh(grid, ["x", "y"], f"mesh{i}") for i, grid in enumerate(grids)]
    return first, second, [Shard(0), Replicate()], [Replicate(), Shard(1)], [Replicate(), Shard(0)], [Shard(0), Shard(2)]


def main():
    options = common.parse(__doc__.splitlines()[0], form="hybrid", hidden=1024, inner=4096, batch=4, length=128)
    forms = ("data", "tensor", "stages", "hybrid")
    if options.form not in forms:
        raise SystemExit(f"error: --form {options.form}; there are {', '.join(forms)}")
    random = np.random.default_rng(0)
    shape = options.batch, options.length, options.hidden
    data = [random.standard_normal(shape).astype(np.float32) for _ in range(2)]

    def build(distributed):
        model, (x, y) = MLP(options.hidden, options.inner), data
        if distributed:
            first, second, batch, w0, w1, moved = plan(options.form, options.extents)
            model.w0, model.w1 = shard_tensor(model.w0, first, w0), shard_tensor(model.w1, second, w1)
            model.move = Move(second, moved) if moved else None
            x, y = shard_tensor(x, first, batch), shard_tensor(y, second, batch)
        return model, optim.AdamW(1e-3), lambda model, x, y: nn.mse_loss(model(x), y), lambda i: (x, y)
    common.train(build, options)


if __name__ == "__main__":
    main()
