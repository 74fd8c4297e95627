# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Shared by the examples: the command line, the loop, and the comparison with one device."""

import argparse
import sys

import numpy as np

import tessera as ts
from tessera import ProcessMesh, nn, ranks, tree
from tessera.checkpoints import CheckpointManager
from tessera.data import progress
from tessera.testing import difference


def parse(description, devices="8", steps=50, **more):
    """Arguments of the command line: --devices 2x4 --steps 50 --check, and those of the example as name=default."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--devices", default=devices, help="extents of the mesh, as 8 or 2x4; ranks: one axis of all ranks of the job")
    parser.add_argument("--backend", default="threads", help="threads: all devices in this process; mpi, tcp: one process per device")
    parser.add_argument("--checkpoint", metavar="DIR", help="go on from the newest checkpoint there, and save")
    parser.add_argument("--every", type=int, default=10, help="steps from one checkpoint to the next (default 10)")
    parser.add_argument("--steps", type=int, default=steps)
    parser.add_argument("--check", action="store_true", help="train on one device too, and compare all weights")
    for name, value in more.items():
        parser.add_argument(f"--{name}", type=type(value), default=value)
    options = parser.parse_args()
    try:
        options.extents = [ranks.read().size] if options.devices == "ranks" else [int(n) for n in options.devices.split("x")]
    except ValueError:
        parser.error(f"--devices {options.devices}: it is 8, 2x4, ..., or ranks")
    return options


def say(*words):
    """Prints on rank 0: with the backends mpi and tcp each rank runs the whole script."""
    if ranks.read().rank == 0:
        print(*words, flush=True)


def mesh_of(extents, *names):
    """A mesh of processes 0, 1, ...; fewer extents than names are filled up by 1."""
    extents = [*extents, *[1] * (len(names) - len(extents))]
    return ProcessMesh(np.arange(int(np.prod(extents))).reshape(extents), list(names))


def train(build, options):
    """build(distributed) gives (model, optimizer, loss, batches): trains, prints loss and plan, and compares with --check."""
    model, losses = fit(build, True, options, show=True)
    if not options.check:
        return model
    values, losses = dict(flat(model)), np.array(losses)
    alone, expected = fit(build, False, options, show=False)
    alone, expected = dict(flat(alone)), np.array(expected[-len(losses):])
    wrong = [f"'{name}' differs from one device: {how}" for name, value in alone.items() if (how := difference(values[name], value, options.steps))]
    if how := difference(losses, expected, options.steps):
        wrong.append(f"losses differ from one device: {how}")
    if wrong and options.checkpoint:
        sys.exit(wrong[0])
    grown = f", {compare_rounding(build, options, values, alone, wrong[0])}" if wrong else ""
    say(f"equal to one device: {len(values)} tensors after {options.steps} steps{grown}")
    return model


def compare_rounding(build, options, values, alone, wrong):
    """Ends the program with `wrong` unless each tensor as a whole is close to that of one device.

    Rounding differs, which grows from step to step, and quickly where an optimizer divides by the size of a small gradient. Close
    is 1e-4 * sqrt(steps) of the tensor's norm, or four times the distance of one device with the rows of batches in reversed order.
    """
    other = dict(flat(fit(build, False, options, show=False, reverse=True)[0]))

    def distance(one, name):
        return np.linalg.norm((one[name] - alone[name]).astype(np.float64)) / max(np.linalg.norm(alone[name]), np.finfo(np.float32).tiny)
    for name in alone:
        if not distance(values, name) <= max(1e-4 * options.steps**0.5, 4 * distance(other, name)):
            sys.exit(wrong)
    far, by_order = (max(distance(each, name) for name in alone) for each in (values, other))
    return f"up to rounding: {far:.0e} of a tensor's norm, by another order of rows {by_order:.0e}"


def flat(model):
    """Names and values; of a wrapped model those inside."""
    model = getattr(model, "module", model)
    return [(leaf.path, leaf.value.numpy()) for leaf in tree.flatten(model)[0]]


def fit(build, distributed, options, show, reverse=False):
    """Trains, from a checkpoint if there is one; returns (model, losses of the steps of this process).

    reverse: with the rows of each batch in reversed order.
    """
    nn.init.seed(0)
    model, optimizer, loss, batches = build(distributed)
    state, losses, begin = optimizer.init(model), [], 0

    @ts.jit(donate=True, backend=options.backend if distributed else "threads")
    def step(model, state, *batch):
        value, gradients = ts.value_and_grad(loss)(model, *batch)
        return *optimizer.update(model, gradients, state), value
    manager = CheckpointManager(options.checkpoint, options.every) if distributed and options.checkpoint else None
    loaded = manager.restore({"model": model, "state": state}) if manager else None
    if loaded:
        model, state, begin = loaded.state["model"], loaded.state["state"], loaded.step
        say(f"goes on behind step {begin}")
    for i in progress(range(begin, options.steps), "training" if show else "one device"):
        batch = tuple(np.asarray(each)[::-1].copy() for each in batches(i)) if reverse else batches(i)
        if show and i == begin:
            say(step.explain(model, state, *batch))
        model, state, value = step(model, state, *batch)
        losses.append(np.float32(value.item()))
        if show and (i % max(1, options.steps // 5) == 0 or i == options.steps - 1):
            say(f"step {i}  loss {losses[-1]:.5f}")
        if manager:
            manager.after(i + 1, {"model": model, "state": state})
    return model, losses
