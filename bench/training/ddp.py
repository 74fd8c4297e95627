# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Steps per second of DistributedDataParallel between processes, and of the compiled program on a mesh of the same processes.

    mpirun -np 4 python ddp.py

Both train a GPT-2 from the same weights on the same batches, in turns; a figure is the median of the rounds. Ranks of a host share
its cores.
"""

import argparse
import os
import statistics
import sys
import time

import numpy as np

import tessera as ts
import tessera.distributed as dist
from tessera import DistributedDataParallel, ProcessMesh, nn, optim

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples", "python"))
from gpt import GPT


def options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, value in dict(layers=4, features=256, heads=8, length=128, symbols=1024, batch=4, steps=4, rounds=5, bucket=25).items():
        parser.add_argument(f"--{name}", type=int, default=value, help=f"{value} by default" + (", of each process" if name == "batch" else ""))
    return parser.parse_args()


class Trainer:
    def __init__(self, wrap, shape, backend, batch):
        nn.init.seed(0)
        self.optimizer = optim.AdamW(1e-3)
        self.model = wrap(GPT(shape.symbols, shape.length, shape.features, shape.heads, shape.layers))
        self.state, self.batch, self.seconds = self.optimizer.init(self.model), batch, []

        @ts.jit(donate=True, backend=backend)
        def step(model, state, x, y):
            value, gradients = ts.value_and_grad(lambda model, x, y: nn.cross_entropy(model(x), y))(model, x, y)
            return *self.optimizer.update(model, gradients, state), value
        self.step = step

    def run(self, steps):
        dist.barrier()
        begin = time.perf_counter()
        for _ in range(steps):
            self.model, self.state, self.value = self.step(self.model, self.state, *self.batch)
        dist.barrier()
        self.seconds.append((time.perf_counter() - begin) / steps)

    def rate(self):
        return 1 / statistics.median(self.seconds)


def main():
    shape = options()
    dist.init_process_group()
    rank, size = dist.get_rank(), dist.get_world_size()
    whole = np.random.default_rng(0).integers(0, shape.symbols, (2, size * shape.batch, shape.length))
    part = whole[:, rank * shape.batch:(rank + 1) * shape.batch]
    between = Trainer(lambda model: DistributedDataParallel(model, bucket_cap_mb=shape.bucket), shape, "threads", part)
    mesh = Trainer(lambda model: DistributedDataParallel(model, ProcessMesh(range(size), ["dp"])), shape, dist.get_backend(), whole)
    for trainer in (between, mesh):
        trainer.run(1)  # compiles
        trainer.seconds.clear()
    for _ in range(shape.rounds):
        for trainer in (between, mesh):
            trainer.run(shape.steps)
    losses = [None] * size
    dist.all_gather_object(losses, between.value.item())
    if rank == 0:
        parameters = sum(p.size for p in mesh.model.parameters())
        print(f"GPT-2 of {shape.layers} layers, d {shape.features}, {parameters} parameters, {size} processes over {dist.get_backend()}, "
              f"{os.cpu_count()} cores")
        print(f"between processes  {between.rate():.3f} steps/s  loss {np.mean(losses):.5f}")
        print(f"on a mesh          {mesh.rate():.3f} steps/s  loss {mesh.value.item():.5f}")
        print(f"ratio              {between.rate() / mesh.rate():.3f}")


if __name__ == "__main__":
    main()
