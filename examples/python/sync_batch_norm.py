# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Batch normalization with two images of one digit per process: over all processes, per process, and over the joined batch.

    tessera launch --nproc_per_node 4 sync_batch_norm.py --picture curves.svg

Prints the distance between the curves of the loss, and draws them.
"""

import argparse

import numpy as np
from convnet import images, load

import tessera as ts
import tessera.distributed as dist
from tessera import DistributedDataParallel, nn, optim

PER_PROCESS = 2


def network(norm):
    nn.init.seed(0)
    return nn.Sequential(nn.Conv2d(1, 8, 3, padding=1, bias=False), norm(8), nn.relu, nn.Conv2d(8, 16, 3, stride=2, padding=1, bias=False), norm(16),
                         nn.relu, nn.Flatten(), nn.Linear(16 * 16, 10))


def curve(model, batches, of_all):
    """The loss of the whole batch in each step."""
    optimizer, losses = optim.SGD(0.02, momentum=0.9), []
    state = optimizer.init(model)

    @ts.jit(donate=True)
    def step(model, state, x, y):
        value, gradients = ts.value_and_grad(lambda model, x, y: nn.cross_entropy(model(x), y))(model, x, y)
        return *optimizer.update(model, gradients, state), value
    for x, y in batches:
        model, state, value = step(model, state, x, y)
        losses.append(of_all(value))
    return losses


def mean_over_ranks(value):
    array = value.numpy().astype(np.float64).reshape(1)
    dist.all_reduce(array, dist.ReduceOp.AVG)
    return float(array[0])


def smooth(losses, width):
    return [float(np.mean(losses[max(0, i - width + 1):i + 1])) for i in range(len(losses))]


def draw(curves, path):
    """Curves as a picture: an SVG with axes and a legend."""
    width, height, left, bottom = 640, 360, 50, 40
    top = max(max(values) for _, values, _ in curves)
    steps = len(curves[0][1])
    x = lambda i: left + i * (width - left - 10) / max(1, steps - 1)
    y = lambda value: height - bottom - value / top * (height - bottom - 15)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" font-size="12">',
             f'<rect width="{width}" height="{height}" fill="white"/>',
             f'<path d="M{left} 10V{height - bottom}H{width - 10}" fill="none" stroke="black"/>',
             f'<text x="{(left + width) / 2}" y="{height - 8}" text-anchor="middle">step</text>',
             f'<text x="14" y="{height / 2}" transform="rotate(-90 14 {height / 2})" text-anchor="middle">loss</text>']
    for tick in range(5):
        value, step = top * tick / 4, (steps - 1) * tick // 4
        parts.append(f'<text x="{left - 6}" y="{y(value) + 4:.1f}" text-anchor="end">{value:.1f}</text>')
        parts.append(f'<text x="{x(step):.1f}" y="{height - bottom + 16}" text-anchor="middle">{step}</text>')
    for number, (name, values, style) in enumerate(curves):
        points = " ".join(f"{x(i):.1f},{y(value):.1f}" for i, value in enumerate(values))
        row = 22 + 18 * number
        parts.append(f'<polyline points="{points}" fill="none" {style}/>')
        parts.append(f'<path d="M{width - 250} {row}h30" {style}/><text x="{width - 212}" y="{row + 4}">{name}</text>')
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join([*parts, "</svg>", ""]))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=120)
    parser.add_argument("--picture", help="the SVG to write")
    options = parser.parse_args()
    dist.init_process_group()
    rank, size = dist.get_rank(), dist.get_world_size()
    pixels, digits = images("images").reshape(-1, 1, 8, 8), load("labels").reshape(-1).astype(np.int64)
    random = np.random.default_rng(0)
    of_digit = [np.flatnonzero(digits[:1437] == digit) for digit in range(10)]
    whole = [np.concatenate([random.choice(of_digit[digit], PER_PROCESS) for digit in random.integers(0, 10, size)]) for _ in range(options.steps)]
    joined = [(pixels[i], digits[i]) for i in whole]
    part = slice(rank * PER_PROCESS, (rank + 1) * PER_PROCESS)
    mine = [(x[part], y[part]) for x, y in joined]

    shared = curve(DistributedDataParallel(network(lambda n: nn.SyncBatchNorm(n, comm_scope=1))), mine, mean_over_ranks)
    alone = curve(DistributedDataParallel(network(nn.BatchNorm)), mine, mean_over_ranks)
    if rank > 0:
        return
    large = curve(network(nn.BatchNorm), joined, lambda value: value.item())
    apart = lambda a, b: max(abs(x - y) for x, y in zip(a, b))
    last = lambda losses: np.mean(losses[-options.steps // 4:])
    print(f"{options.steps} steps of {PER_PROCESS} images on each of {size} processes")
    print(f"shared statistics      from the joined batch's curve: {apart(shared, large):.5f}  loss of the last quarter {last(shared):.3f}")
    print(f"each process's own     from the joined batch's curve: {apart(alone, large):.5f}  loss of the last quarter {last(alone):.3f}")
    if options.picture:
        draw([(f"BatchNorm, one batch of {size * PER_PROCESS}", smooth(large, 10), 'stroke="#999" stroke-width="6"'),
              (f"SyncBatchNorm, {size} x {PER_PROCESS}", smooth(shared, 10), 'stroke="#06c" stroke-width="2"'),
              (f"BatchNorm, {size} x {PER_PROCESS}", smooth(alone, 10), 'stroke="#c30" stroke-width="2"')], options.picture)


if __name__ == "__main__":
    main()
