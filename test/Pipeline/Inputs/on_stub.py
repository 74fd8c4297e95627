#!/usr/bin/env python3
"""on_stub.py FOLDER [--seeds N]: runs a training step in each schedule on `threads` and on `stub`; all results must be equal bits."""

import argparse
import json
import pathlib
import subprocess
import sys

import numpy as np

import tessera as ts
from tessera import ProcessMesh, nn, optim

parser = argparse.ArgumentParser()
parser.add_argument("folder", type=pathlib.Path)
parser.add_argument("--seeds", type=int, default=20)
options = parser.parse_args()
batch = np.zeros((8, 8), np.float32)


def results(artifact, *more):
    done = subprocess.run(["tessera-exec", artifact, "--json", "-", "--steps", "2", *more], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{artifact} {more}: {done.stderr}")
    return {each["name"]: each["checksum"] for each in json.loads(done.stdout)["results"]}


def artifact_of(name, stages, schedule, shares):
    nn.init.seed(0)
    first = nn.Linear(8, 8)
    last = first if shares else nn.Linear(8, 8)
    pipe = ts.pipeline([layer for each in (first, nn.Linear(8, 8), nn.Linear(8, 8), last) for layer in (each, ts.tanh)], stages, 4, schedule)
    optimizer = optim.SGD(0.1, momentum=0.9)
    state = optimizer.init(pipe)

    def step(pipe, state, x, y):
        value, gradients = pipe.value_and_grad(lambda net, x, y: nn.mse_loss(net(x), y))(pipe, x, y)
        return *optimizer.update(pipe, gradients, state), value
    artifact = options.folder / f"{name}-{schedule}.tsra"
    artifact.write_bytes(ts.jit(step).lower(pipe, state, batch, batch).compile())
    return str(artifact)


def compare(name, stages, schedules, shares=False):
    expected, runs = None, 0
    for schedule in schedules:
        artifact = artifact_of(name.replace(" ", ""), stages, schedule, shares)
        found = results(artifact)
        expected = expected or found
        if found != expected:
            sys.exit(f"{name}, {schedule}: {found} instead of {expected}")
        for seed in range(options.seeds):
            found = results(artifact, "--backend", "stub", "--schedule-seed", str(seed))
            if found != expected:
                sys.exit(f"{name}, {schedule}, seed {seed}: {found} instead of {expected}")
            runs += 1
    print(f"{name}: {runs} runs, 0 hazards, 0 differences", flush=True)


for stages in (2, 4):
    compare(f"{stages} stages", stages, ("sequential", "gpipe", "1f1b", "zb-h1"))
compare("shared layer", 2, ("sequential", "gpipe", "1f1b", "zb-h1"), shares=True)
compare("interleaved", [ProcessMesh([i], ["x"], f"m{i}") for i in range(2)] * 2, ("sequential", "interleaved"))
