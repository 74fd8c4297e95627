# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Trains a convolutional network to read handwritten digits, in as many processes as are started.

    tessera launch --nproc_per_node 2 digits.py --device cpu --batch-size 32 --epochs 3
"""

import argparse

import numpy as np
from convnet import ToyModel, images, load

import tessera as ts
from tessera import DataLoader, DistributedDataParallel, DistributedSampler, distributed, nn, ops, optim
from tessera.data import TensorDataset


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--batch-size", type=int, default=32, help="of each process (default 32)")
    parser.add_argument("--epochs", type=int, default=3)
    options = parser.parse_args()
    backend = {"cpu": "threads", "cuda": "cuda"}[options.device]

    distributed.init_process_group()
    count = 1437  # images; the rest of the file repeats them in other orders
    pixels, digits = images("images").reshape(-1, 1, 8, 8)[:count], load("labels").reshape(-1)[:count].astype(np.int64)
    dataset = TensorDataset(pixels, digits)
    nn.init.seed(0)
    model, optimizer = DistributedDataParallel(ToyModel()), optim.SGD(0.1, momentum=0.9)
    loader = DataLoader(dataset, batch_size=options.batch_size, sampler=DistributedSampler(dataset), drop_last=True)
    state = optimizer.init(model)

    @ts.jit(donate=True, backend=backend)
    def step(model, state, x, y):
        loss, gradients = ts.value_and_grad(lambda model, x, y: nn.cross_entropy(model(x), y))(model, x, y)
        return *optimizer.update(model, gradients, state), loss

    predict = ts.jit(lambda model, x: ops.argmax(model(x), -1), backend=backend)
    for epoch in range(options.epochs):
        loader.set_epoch(epoch)
        for x, y in loader:
            model, state, loss = step(model, state, x, y)
        print(f"epoch {epoch}  loss {loss.item():.4f}")
    right = int((predict(model, images("test_images")).numpy() == load("test_labels")).sum())
    print(f"test: {right} of {len(load('test_labels'))} right")


if __name__ == "__main__":
    main()
