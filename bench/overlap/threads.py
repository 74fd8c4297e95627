#!/usr/bin/env python3
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Times steps on `threads` with 8 devices, alternately with and without overlap.

    threads.py [NAME...] [--size small|middle] [--topology FILE] [--steps 5] [--repeat 9] [--exposed]

A row has the median milliseconds of a step of both, the ratio of the medians, the share of the pairs in which overlap was faster, and
the ratio of the memory. Pairs alternate, so that other load of the machine affects both. The last line says whether any step was slower
by more than the spread of the synchronous ones. Devices that communicate on the cores that they compute on hide nothing: with the
default topology the compiler keeps the synchronous program ("same program"); with test/Driver/Inputs/own_cores.json it does not. With --exposed a second line has the exposed milliseconds of a step, without and with
overlap, by the model and in a trace: there, what is left of the step beside the kernels, whose time is divided by the workers, one a
core. tessera-exec must be in PATH then. PYTHONPATH must have the build's python folder.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=8".strip()
os.environ.setdefault("JAX_PLATFORMS", "cpu")
ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(ROOT, "bench", "communication"))

import tessera  # noqa: E402
from workloads import SMALL, suite  # noqa: E402
from workloads.convnet import Convnet  # noqa: E402
from workloads.gpt import Gpt  # noqa: E402
from workloads.mlp import Mlp  # noqa: E402
from workloads.moe import Moe  # noqa: E402

MIDDLE = suite(Gpt(d=128, heads=8, seq=64, batch=16, ffn=512, vocab=512), layers=4, fsdp_layers=4, mlp=Mlp(256, 256, 1024),
               conv=Convnet(16, 32, (3, 16, 32), 10), experts=Moe(32, 64, 64, 8, 4, 128))


def seconds(program, steps):
    begin = time.perf_counter()
    for _ in range(steps):
        program._session.step()
    return (time.perf_counter() - begin) / steps


def exposed(artifact, steps):
    """Seconds of a step in which a worker runs no kernel, by a trace of one run."""
    with tempfile.TemporaryDirectory() as folder:
        program, trace = os.path.join(folder, "program.tsra"), os.path.join(folder, "trace.json")
        with open(program, "wb") as file:
            file.write(artifact)
        subprocess.run(["tessera-exec", program, "--steps", str(steps), "--trace", trace], check=True, stdout=subprocess.DEVNULL)
        with open(trace) as file:
            slices = [each for each in json.load(file)["traceEvents"] if each["ph"] == "X"]
    devices = len({each["tid"] for each in slices})
    whole = max(each["ts"] + each["dur"] for each in slices) - min(each["ts"] for each in slices)
    kernels = sum(each["dur"] for each in slices if each["cat"] not in ("collective", "wait"))
    return (whole - kernels / min(devices, len(os.sched_getaffinity(0)))) / steps / 1e6


def build(name, sizes, topology):
    program = sizes[name]()
    imported = tessera.from_jax(program.fn, program.args, program.specs, program.out, mesh=program.mesh,
                                feeds="auto" if program.out is not None else None)
    artifacts, reports = [], []
    for overlap in (False, True):
        options = dict(topology=topology, overlap=overlap)
        reports.append(imported.explain(**options))
        artifacts.append(imported.compile(**options))
    return artifacts, reports


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=list(SMALL), help="workloads; default all")
    parser.add_argument("--size", choices=("small", "middle"), default="middle")
    parser.add_argument("--topology", default=os.path.join(ROOT, "share", "topologies", "2core.json"), help="machine that times are modelled on")
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--repeat", type=int, default=9)
    parser.add_argument("--exposed", action="store_true", help="exposed time by the model and in a trace")
    options = parser.parse_args()
    sizes = SMALL if options.size == "small" else MIDDLE
    unknown = [name for name in options.names if name not in sizes]
    if unknown:
        parser.error(f"there is no workload {', '.join(unknown)}; there are {', '.join(sizes)}")
    print(f"{'workload':22} {'plain':>10} {'overlapped':>10} {'ratio':>6} {'faster':>6} {'memory':>7}")
    slower = []
    for name in options.names:
        artifacts, reports = build(name, sizes, options.topology)
        if artifacts[0] == artifacts[1]:
            print(f"{name:22} same program", flush=True)
            if not options.exposed:
                continue
        memory = reports[1]["peak_memory_bytes"] / max(1, reports[0]["peak_memory_bytes"])
        times = ([], [])
        for _ in range(options.repeat):
            # Programs are loaded for each pair: where their memory lies changes the time of short steps by up to two times.
            for artifact, into in zip(artifacts, times):
                program = tessera.load(artifact)
                seconds(program, 2)
                into.append(seconds(program, options.steps))
        plain, overlapped = (statistics.median(each) for each in times)
        faster = sum(b < a for a, b in zip(*times)) / options.repeat
        quartiles = statistics.quantiles(times[0], n=4)
        if overlapped > plain + (quartiles[2] - quartiles[0]):
            slower.append(name)
        print(f"{name:22} {1e3 * plain:7.2f} ms {1e3 * overlapped:7.2f} ms {overlapped / plain:6.3f} {100 * faster:4.0f} % {memory:6.3f}x", flush=True)
        if options.exposed:
            modelled, measured = [each["modelled_exposed_seconds"] for each in reports], [exposed(each, options.steps) for each in artifacts]
            print(f"{'':22} exposed by the model {1e3 * modelled[0]:.2f} and {1e3 * modelled[1]:.2f} ms, "
                  f"measured {1e3 * measured[0]:.2f} and {1e3 * measured[1]:.2f} ms", flush=True)
    print("slower: " + (", ".join(slower) or "none"))


if __name__ == "__main__":
    main()
