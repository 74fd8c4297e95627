#!/usr/bin/env python3
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Times training steps in stages on `threads`, one worker per device: each schedule against sequential stages.

    overlap.py [--model mlp|gpt] [--stages 2] [--micro-batches 8] [--schedules sequential,gpipe,1f1b,zb-h1] [--steps 20] [--repeat 3]

Prints for each schedule the median time of a step, the rate relative to the program without a schedule (in the order of its text: the first
mesh waits for each gradient before it sends the next micro-batch), and the bubble by formula and as modelled. Losses must be the same bits.
Runs of the schedules alternate, so that other load of the machine affects all of them.
"""

import argparse
import statistics
import time

import numpy as np

import tessera as ts
from tessera import nn, optim


class Layer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.init.fan_in((width, width), width)

    def forward(self, x):
        return ts.tanh(x @ self.weight)


class Block(nn.Module):
    """A block of a GPT: attention and two products, each after a norm."""

    def __init__(self, width, heads):
        super().__init__()
        self.norm, self.attention = nn.LayerNorm(width), nn.MultiHeadAttention(width, heads, causal=True)
        self.second, self.up, self.down = nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        x = x + self.attention(self.norm(x))
        return x + self.down(nn.gelu(self.up(self.second(x))))


def build(options, schedule, stages):
    nn.init.seed(0)
    rows = options.rows * options.micro_batches
    random = np.random.default_rng(0)
    if options.model == "mlp":
        layers = [Layer(options.width) for _ in range(options.layers * options.stages)]
        shape = (rows, options.width)
    else:
        layers = [Block(options.width, 4) for _ in range(options.layers * options.stages)]
        shape = (rows, options.tokens, options.width)
    pipe = ts.pipeline(layers, stages=stages, microbatches=options.micro_batches, schedule="1f1b" if schedule == "none" else schedule)
    optimizer = optim.SGD(0.1)
    state = optimizer.init(pipe)
    x, y = (random.standard_normal(shape).astype(np.float32) for _ in range(2))

    @ts.jit(donate=True)
    def step(pipe, state, x, y):
        of_batch = ts.value_and_grad(lambda net, x, y: nn.mse_loss(net(x), y))
        order = None if schedule == "none" else schedule
        loss, gradients = optim.accumulated(of_batch, options.micro_batches, order)(pipe, x, y)
        return *optimizer.update(pipe, gradients, state), loss
    report = step.explain(pipe, state, x, y)
    return {"step": step, "state": (pipe, state), "batch": (x, y), "report": report, "seconds": [], "loss": None}


def run(run, steps):
    pipe, state = run["state"]
    begin = time.perf_counter()
    for _ in range(steps):
        pipe, state, loss = run["step"](pipe, state, *run["batch"])
        value = np.asarray(loss).tobytes()
    run["seconds"].append((time.perf_counter() - begin) / steps)
    run["state"], run["loss"] = (pipe, state), value


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=("mlp", "gpt"), default="mlp")
    parser.add_argument("--stages", type=int, default=2)
    parser.add_argument("--micro-batches", type=int, default=8)
    parser.add_argument("--schedules", default="sequential,gpipe,1f1b,zb-h1")
    parser.add_argument("--layers", type=int, default=4, help="of a stage")
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--rows", type=int, default=128, help="of a micro-batch")
    parser.add_argument("--tokens", type=int, default=64, help="of a row of gpt")
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--repeat", type=int, default=5)
    options = parser.parse_args()
    runs = {name: build(options, name, options.stages) for name in ["none", *options.schedules.split(",")]}
    for each in runs.values():
        run(each, 1)
    for _ in range(options.repeat):
        for each in runs.values():
            run(each, options.steps)
    base = statistics.median(runs["none"]["seconds"][1:])
    print("schedule     ms a step  rate   bubble by formula  modelled  loss")
    for name, each in runs.items():
        seconds = statistics.median(each["seconds"][1:])
        pipeline = each["report"].get("pipeline")
        bubble = f"{100 * pipeline['bubble_formula']:15.1f} %  {100 * pipeline['bubble_modelled']:6.1f} %" if pipeline else 27 * " "
        same = "the same" if each["loss"] == runs["none"]["loss"] else "ANOTHER"
        print(f"{name:12} {1e3 * seconds:9.2f}  {base / seconds:4.2f}  {bubble}  {same}")


if __name__ == "__main__":
    main()
