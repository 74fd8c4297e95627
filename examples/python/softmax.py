# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A classifier of very many classes: the matrix of the last layer is cut over its classes, the batch before it over its rows.

Each process has the scores of its classes; the softmax needs two small all-reduces (maximum and sum), the labels' scores a third.

    python softmax.py --devices 8
"""

import common
import numpy as np

from tessera import Replicate, Shard, nn, optim, shard_tensor


class Classifier(nn.Module):
    def __init__(self, inputs, features, classes):
        super().__init__()
        self.body, self.head = nn.Linear(inputs, features), nn.init.fan_in((features, classes), features)

    def forward(self, x):
        return nn.relu(self.body(x)) @ self.head


def main():
    options = common.parse(__doc__.splitlines()[0], steps=20, inputs=64, features=128, classes=20000, batch=64)
    random = np.random.default_rng(0)
    x = random.standard_normal((options.batch, options.inputs)).astype(np.float32)
    y = random.integers(0, options.classes, options.batch)

    def build(distributed):
        model, data = Classifier(options.inputs, options.features, options.classes), (x, y)
        if distributed:
            mesh = common.mesh_of([int(np.prod(options.extents))], "x")
            model.body = optim.shard_parameters(model.body, mesh, lambda name, p: [Replicate()])
            model.head = shard_tensor(model.head, mesh, [Shard(1)])
            data = shard_tensor(x, mesh, [Shard(0)]), shard_tensor(y, mesh, [Replicate()])
        return model, optim.SGD(0.1), lambda model, x, y: nn.cross_entropy(model(x), y), lambda i: data
    common.train(build, options)


if __name__ == "__main__":
    main()
