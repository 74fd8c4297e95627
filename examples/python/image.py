# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Large images, cut over height and width: each process loads its part, convolutions exchange the edges.

    python image.py --devices 2x2
"""

import common
import numpy as np

from tessera import nn, ops, optim
from tessera.data import place_batch


class Net(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.first, self.second = nn.Conv2d(3, channels, 3, padding=1), nn.Conv2d(channels, channels, 3, padding=1)
        self.last = nn.Conv2d(channels, 1, 1)

    def forward(self, x):
        return self.last(nn.relu(self.second(nn.relu(self.first(x)))))


def main():
    options = common.parse(__doc__.splitlines()[0], devices="2x2", steps=20, size=64, channels=8)
    x = np.random.default_rng(0).standard_normal((1, 3, options.size, options.size)).astype(np.float32)
    y = x.mean(1, keepdims=True) * 2  # the function to learn
    h, w = [*options.extents, 1][:2]

    def build(distributed):
        model, data = Net(options.channels), (x, y)
        if distributed:
            mesh = common.mesh_of([h, w], "h", "w")
            data = place_batch(data, mesh, ((1, 1, h, w), (1, 1, h, w)))
            model = optim.shard_parameters(model, mesh, lambda name, p: None)
        return model, optim.Adam(1e-2), lambda model, x, y: ops.mean(ops.square(model(x) - y)), lambda i: data
    common.train(build, options)


if __name__ == "__main__":
    main()
