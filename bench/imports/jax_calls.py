# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares calls of JAX functions with the same calls through the importer, in processes of their own."""

import argparse
import collections
import concurrent.futures
import os
import subprocess
import sys
import warnings

UP_TO_SIGN = ("eigh", "svd")  # of whole vectors: absolute values are compared


def compare(name, call, arrays, devices):
    """"equal", or how results differ."""
    import jax
    import numpy as np
    import tessera
    from jax.sharding import PartitionSpec
    expected = jax.tree.leaves(jax.jit(call)(*arrays))
    specs = mesh = None
    if devices > 1:
        mesh = jax.sharding.AbstractMesh((devices,), ("d",))
        specs = jax.tree.map(lambda a: PartitionSpec("d") if getattr(a, "ndim", 0) else PartitionSpec(), tuple(arrays))
    given = jax.tree.leaves(tessera.from_jax(call, tuple(arrays), specs, mesh=mesh)(*arrays))
    if len(expected) != len(given):
        return f"DIFFERENT: {len(given)} results, not {len(expected)}"
    columns = min(e.shape[-1] for e in expected) if name.endswith("svd") else None  # the others are any basis of the rest
    numbers = [np.asarray(e) for e in expected if getattr(e.dtype, "kind", "") == "f"]
    largest = max((np.abs(e[np.isfinite(e)]).max(initial=0) for e in numbers), default=0)  # gradients of 0 are noise of its size
    for e, g in zip(expected, given):
        if jax.dtypes.issubdtype(e.dtype, jax.dtypes.prng_key):
            e, g = jax.random.key_data(e), jax.random.key_data(g)
        e, g = np.asarray(e), np.asarray(g)
        if e.shape != g.shape or e.dtype != g.dtype:
            return f"DIFFERENT: {g.dtype}{list(g.shape)}, not {e.dtype}{list(e.shape)}"
        if name.endswith(UP_TO_SIGN):
            e, g = [abs(part[..., :columns]) for part in (e, g)]
        if e.dtype.kind in "fcV":  # V: bfloat16
            e, g = [part if part.dtype.kind != "V" else part.astype(np.float32) for part in (e, g)]
            scale = np.abs(e[np.isfinite(e)]).max(initial=1e-3)
            if not np.allclose(g, e, rtol=2e-3, atol=max(2e-4 * scale, 2e-6 * largest), equal_nan=True):
                return f"DIFFERENT: {g.ravel()[:4]}, not {e.ravel()[:4]}"
        elif not np.array_equal(e, g):
            return f"DIFFERENT: {g.ravel()[:4]}, not {e.ravel()[:4]}"
    return "equal"


def work(names, calls, devices):
    """Compares the calls of functions; a line starts before its call, so that a crash has a name."""
    warnings.simplefilter("ignore")
    for name in names:
        for number, call, arrays in calls(name):
            print(f"CALL {name} {number} ", end="", flush=True)
            try:
                line = compare(name, call, arrays, devices)
            except Exception as error:
                line = f"REFUSED: {type(error).__name__}: {' '.join(str(error).split())[:160]}"
            print(line, flush=True)


def batch(names, options):
    """The lines of a process that compares `names`; what follows a crash is compared by another one."""
    lines = []
    while names:
        done = subprocess.run([sys.executable, os.path.abspath(sys.argv[0]), "--work", ",".join(names), "--devices", str(options.devices)],
                              capture_output=True, text=True, timeout=options.timeout * len(names))
        found = [line[5:] for line in done.stdout.splitlines() if line.startswith("CALL ")]
        if done.returncode == 0:
            return lines + found
        last = found[-1].split()[0] if found else names[0]
        lines += found[:-1] + [f"{last} - CRASHED ({done.returncode}): {done.stderr.splitlines()[-1:]}"]
        names = names[names.index(last) + 1:]
    return lines


def main(description, names, calls):
    """The command. names(prefixes): of functions, among them those with these prefixes; calls(name): triples of a number, a function of arrays, and these."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--devices", type=int, default=1)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--timeout", type=int, default=60)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--work", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        work(options.work.split(","), calls, options.devices)
        return 0
    names = [name for name in names(options.names) if not options.names or name.startswith(tuple(options.names))]
    size = 20
    counts = collections.Counter()
    with concurrent.futures.ThreadPoolExecutor(options.processes) as pool:
        for lines in pool.map(lambda at: batch(names[at:at + size], options), range(0, len(names), size)):
            for line in lines:
                kind = line.split()[2].rstrip(":")
                counts[kind] += 1
                if options.all or kind != "equal":
                    print(line, flush=True)
    print(f"{counts['equal']} of {sum(counts.values())} calls equal, {counts['REFUSED']} refused, {counts['DIFFERENT']} different, "
          f"{counts['CRASHED']} crashed")
    return 0 if counts["equal"] == sum(counts.values()) else 1
