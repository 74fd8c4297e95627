#!/usr/bin/env python3
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Prints how much of the communication of training steps is hidden behind computing, by Tessera's model.

    exposed.py [NAME...] [--topology FILE] [--buckets]

A row has the modelled step without and with overlap, the seconds of communication, the exposed part of them, and the
peak memory of both. With --buckets a second line describes the first 25 MB of reductions of gradients, in the order in
which the gradients are computed: when they are computed, when the first reduction begins, and the time between as a
share of the backward pass (from the first to the last gradient). PYTHONPATH must have the build's python folder.
"""

import argparse
import os
import sys
from dataclasses import replace

os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=8".strip()
os.environ.setdefault("JAX_PLATFORMS", "cpu")
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "communication"))

import jax  # noqa: E402
import tessera  # noqa: E402
from workloads import LINE, SUITE, suite  # noqa: E402
from workloads.common import P  # noqa: E402
from workloads.gpt import Gpt, gpt  # noqa: E402

GPT2 = Gpt(d=768, heads=12, seq=1024, batch=64, ffn=3072, vocab=50257, layers=12, embed=True, tied=True)


def data_parallel(c):
    """GPT with whole weights on every device and the batch cut."""
    program = gpt(c, LINE, "fsdp")
    whole = jax.tree.map(lambda _: P(), program.specs[0], is_leaf=lambda x: isinstance(x, P))
    out = None if program.out is None else (whole, *program.out[1:])
    return replace(program, specs=(whole, *program.specs[1:]), out=out)


PROGRAMS = {"gpt2_dp": lambda: data_parallel(GPT2),
            "gpt2_fsdp": lambda: gpt(GPT2, LINE, "fsdp"),
            # as in SUITE, with enough layers for a loop over them to reach its steady state
            "gpt12_fsdp_scan_pinact": suite(fsdp_layers=12)["gpt_fsdp_scan_pinact"]} | {name: SUITE[name] for name in SUITE}


def first_bucket(report):
    """Bytes of the first reductions of gradients, of 25 MB; seconds until they are computed, until the first begins, and of the backward pass."""
    sums = sorted((each for each in report["collectives"] if each["reason"].startswith("partial sums") and each["bytes"] >= 1 << 16),
                  key=lambda each: each["ready_at"])
    if not sums:
        return None
    size, ready = 0, 0
    for each in sums:
        size, ready = size + each["bytes"], each["ready_at"]
        if size >= 25e6:
            break
    return size, ready, min(each["begins_at"] for each in sums), sums[-1]["ready_at"] - sums[0]["ready_at"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=list(PROGRAMS), help="programs; default all")
    parser.add_argument("--topology", default="", help="machine that times are modelled on")
    parser.add_argument("--buckets", action="store_true", help="when the first gradients leave, too")
    options = parser.parse_args()
    unknown = [name for name in options.names if name not in PROGRAMS]
    if unknown:
        parser.error(f"there is no program {', '.join(unknown)}; there are {', '.join(PROGRAMS)}")
    print(f"{'program':22} {'plain':>10} {'overlapped':>10} {'comm.':>10} {'exposed':>10} {'hidden':>7} {'memory':>7}")
    for name in options.names:
        program = PROGRAMS[name]()
        imported = tessera.from_jax(program.fn, program.args, program.specs, program.out, mesh=program.mesh,
                                    feeds="auto" if program.out is not None else None)
        more = dict(topology=options.topology) if options.topology else {}
        plain, report = imported.explain(**more), imported.explain(overlap=True, **more)
        communication, exposed = report["modelled_communication_seconds"], report["modelled_exposed_seconds"]
        print(f"{name:22} {1e3 * plain['modelled_seconds']:7.3f} ms {1e3 * report['modelled_seconds']:7.3f} ms "
              f"{1e3 * communication:7.3f} ms {1e3 * exposed:7.3f} ms {100 * (1 - exposed / communication if communication else 1):5.1f} % "
              f"{report['peak_memory_bytes'] / max(1, plain['peak_memory_bytes']):6.3f}x", flush=True)
        if options.buckets and (bucket := first_bucket(report)):
            size, ready, begins, backward = bucket
            print(f"{'':22} first {size / 1e6:.1f} MB of sums: computed at {1e3 * ready:.3f} ms, the first begins at {1e3 * begins:.3f} ms: "
                  f"{100 * max(0, begins - ready) / backward if backward else 0:.1f} % of the backward pass later", flush=True)


if __name__ == "__main__":
    main()
