# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A small convolutional network on handwritten digits: convolution, pool, linear, cross entropy, SGD; data parallel.

    python convnet.py --devices 8
"""

import os

import common
import numpy as np

import tessera as ts
from tessera import DistributedDataParallel, nn, ops, optim
from tessera.data import TensorDataset

DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "digits", "data")


class ToyModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 8, 3, padding=1)
        self.pool = nn.MaxPool2d(2)
        self.linear = nn.Linear(8 * 4 * 4, 10)

    def forward(self, x):
        return self.linear(ops.flatten(self.pool(nn.relu(self.conv(x))), 1))


def load(name):
    return np.load(os.path.join(DATA, f"{name}.npy"))


def images(name):
    array = load(name)
    return (array.astype(np.float32) / 16).reshape(*array.shape[:-1], 1, 8, 8)


def main():
    options = common.parse(__doc__.splitlines()[0], batch=128, rate=0.2)
    batches = TensorDataset(images("images"), load("labels").astype(np.int64))

    def build(distributed):
        model = ToyModel()
        if distributed:
            model = DistributedDataParallel(model, common.mesh_of([int(np.prod(options.extents))], "dp"))

        def batch(i):
            x, y = batches[i % len(batches)]
            return x[:options.batch], y[:options.batch]
        return model, optim.SGD(options.rate, momentum=0.9), lambda model, x, y: nn.cross_entropy(model(x), y), batch
    model = common.train(build, options)
    predicted = ts.jit(lambda model, x: ops.argmax(model(x), -1))(model, images("test_images")).numpy()
    right = int((predicted == load("test_labels")).sum())
    common.say(f"test: {right} of {len(predicted)} right")


if __name__ == "__main__":
    main()
