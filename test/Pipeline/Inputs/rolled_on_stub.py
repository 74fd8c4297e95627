#!/usr/bin/env python3
"""rolled_on_stub.py FOLDER TOPOLOGY [--seeds N]: trains a pipeline written as a roll, with overlap and without, on `threads` and `stub`; all results
must be equal bits."""

import argparse
import json
import os
import pathlib
import subprocess
import sys

os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=8".strip()
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax.sharding import Mesh, NamedSharding  # noqa: E402
from jax.sharding import PartitionSpec as P  # noqa: E402

import tessera  # noqa: E402

parser = argparse.ArgumentParser()
parser.add_argument("folder", type=pathlib.Path)
parser.add_argument("topology")
parser.add_argument("--seeds", type=int, default=20)
options = parser.parse_args()

STAGES, MICRO_BATCHES, ROWS, WIDTH = 4, 6, 16, 64
MESH = Mesh(np.array(jax.devices()[:STAGES]), ("stage",))


def on_stages(state):
    return jax.lax.with_sharding_constraint(state, NamedSharding(MESH, P("stage", None, None)))


def pipeline(weights, batch):
    def step(state, x):
        out = on_stages(jnp.tanh(jnp.einsum("srk,skn->srn", on_stages(state.at[0].set(x)), weights)))
        return on_stages(jnp.roll(out, 1, axis=0)), out[-1]
    batch = jnp.concatenate([batch, jnp.zeros((STAGES - 1, ROWS, WIDTH), batch.dtype)])
    return jax.lax.scan(step, on_stages(jnp.zeros((STAGES, ROWS, WIDTH), batch.dtype)), batch)[1][STAGES - 1:]


def train(weights, batch, targets):
    loss, gradient = jax.value_and_grad(lambda w: ((pipeline(w, batch) - targets) ** 2).mean())(weights)
    return weights - 0.1 * gradient, loss


def results(artifact, *more):
    done = subprocess.run(["tessera-exec", artifact, "--json", "-", "--steps", "2", *more], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{artifact} {more}: {done.stderr}")
    return {each["name"]: each["checksum"] for each in json.loads(done.stdout)["results"]}


avals = [jax.ShapeDtypeStruct(shape, "float32") for shape in ((STAGES, WIDTH, WIDTH), *[(MICRO_BATCHES, ROWS, WIDTH)] * 2)]
program = tessera.from_jax(train, avals, (P("stage"), P(), P()), (P("stage"), P()), mesh=MESH)
expected, runs = None, 0
for overlap in (False, True):
    report = program.explain(overlap=overlap, topology=options.topology)
    print(f"overlap {overlap}: {sum(each['overlapped'] for each in report['collectives'])} of {len(report['collectives'])} collectives")
    artifact = options.folder / f"overlap-{overlap}.tsra"
    artifact.write_bytes(program.compile(overlap=overlap, topology=options.topology))
    found = results(str(artifact))
    expected = expected or found
    if found != expected:
        sys.exit(f"overlap {overlap}: {found} instead of {expected}")
    for seed in range(options.seeds):
        found = results(str(artifact), "--backend", "stub", "--schedule-seed", str(seed))
        if found != expected:
            sys.exit(f"overlap {overlap}, seed {seed}: {found} instead of {expected}")
        runs += 1
print(f"{runs} runs, 0 hazards, 0 differences")
