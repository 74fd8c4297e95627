# RUN: %tessera_python %s --kills 48
# REQUIRES: tessera-core
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Processes that train and save are killed at random moments: no acknowledged step is lost, and resumed training is bitwise equal.

    checkpoint_kills.py --kills N [--seed N]

A third of the kills each: one process that saves, one that saves asynchronously, and one rank or all of a job of two ranks.
"""

import argparse
import hashlib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import numpy as np

from tessera.checkpoints import LocalTensor, load_checkpoint, save_checkpoint
from tessera import ProcessMesh, Shard, Sharding, ranks

SHAPE = 256, 1024
LONG = 120


def begin():
    return {"w": np.zeros(SHAPE, np.float32), "steps": 0}, np.random.default_rng(5)


def train(state, generator):
    """One step, which depends on every bit of the state."""
    w = state["w"] * np.float32(0.99) + generator.standard_normal(SHAPE, np.float32)
    return {"w": w, "steps": state["steps"] + 1}


def digest(state, generator):
    return hashlib.blake2b(state["w"].tobytes() + repr((state["steps"], generator.bit_generator.state)).encode()).hexdigest()


def work(folder, asynchronous):
    """Trains and saves each step, and prints acknowledged steps; with two ranks each saves half of the rows."""
    me, (state, generator) = ranks.read(), begin()
    rows = Sharding(ProcessMesh(range(me.size), ["x"]), (Shard(0),))
    if os.path.isdir(folder) and os.listdir(folder):
        try:
            loaded = load_checkpoint(folder, state, random=generator)
            state = loaded.state
        except ValueError as error:
            if "no complete checkpoint" not in str(error):
                raise
    while True:
        state = train(state, generator)
        half = SHAPE[0] // me.size
        part = LocalTensor(state["w"][me.rank * half:(me.rank + 1) * half], SHAPE, rows, me.rank) if me.size > 1 else state["w"]
        save_checkpoint(folder, {**state, "w": part}, state["steps"], random=generator, asynchronous=asynchronous, timeout=LONG).wait()
        if me.rank == 0:
            print(state["steps"], flush=True)


class Reference:
    """The digests of the same training without interruption."""

    def __init__(self):
        self.state, self.generator = begin()
        self.digests = [digest(self.state, self.generator)]

    def at(self, step):
        while len(self.digests) <= step:
            self.state = train(self.state, self.generator)
            self.digests.append(digest(self.state, self.generator))
        return self.digests[step]


def start(folder, mode):
    words = [sys.executable, os.path.abspath(__file__), "--work", folder, "--mode", mode]
    size = 2 if mode == "ranks" else 1
    return [subprocess.Popen(words, text=True, stdout=subprocess.PIPE if rank == 0 else subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                             env={**os.environ, "RANK": str(rank), "WORLD_SIZE": str(size)}) for rank in range(size)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--work", help=argparse.SUPPRESS)
    parser.add_argument("--mode", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        return work(options.work, options.mode == "asynchronous")
    chance, reference, folder = random.Random(options.seed), Reference(), tempfile.mkdtemp()
    acknowledged, incomplete = 0, 0
    try:
        for kill in range(options.kills):
            mode = ("plain", "asynchronous", "ranks")[kill % 3]
            processes = start(folder, mode)
            lines = [processes[0].stdout.readline()]
            if not lines[0]:
                raise SystemExit(f"kill {kill}: a process could not go on behind step {acknowledged}")
            time.sleep(chance.random() * 0.1)
            for process in chance.sample(processes, chance.randint(1, len(processes))):
                process.send_signal(signal.SIGKILL)
            time.sleep(0.02)
            for process in processes:  # the remaining ranks wait for the killed one
                process.kill()
            lines += processes[0].stdout.read().splitlines(keepends=True)
            for process in processes:
                process.wait()
            processes[0].stdout.close()
            acknowledged = max([acknowledged, *(int(line) for line in lines if line.endswith("\n"))])
            incomplete += any(name.startswith(".writing") for name in os.listdir(folder))
            state, generator = begin()
            loaded = load_checkpoint(folder, state, random=generator)
            if loaded.step < acknowledged:
                raise SystemExit(f"kill {kill} ({mode}): step {acknowledged} was acknowledged, and the newest checkpoint is of step {loaded.step}")
            if loaded.state["steps"] != loaded.step or digest(loaded.state, generator) != reference.at(loaded.step):
                raise SystemExit(f"kill {kill} ({mode}): step {loaded.step} differs from the uninterrupted training")
            acknowledged = loaded.step
    finally:
        shutil.rmtree(folder)
    print(f"{options.kills} kills, {incomplete} of them while a checkpoint was written; {acknowledged} steps, none lost, all equal bit for bit")
    return 0


if __name__ == "__main__":
    sys.exit(main())
