#!/usr/bin/env python3
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes programs that only reshard, runs them on the threads backend, and compares values and bytes.

    reshards.py pairs SHAPE...     all pairs of {R, S0, S1, P}^2 on a mesh of 2 x 4, one program per shape such as 8x16
    reshards.py random A:B [N]     seeds A to B-1: N reshards each between random placements on a random mesh

Every value is an integer, so nothing is rounded. Prints one line per program; exit code 1 if a value or the
runtime's count of bytes differs from the report.
"""

import itertools
import json
import random
import subprocess
import sys


def program(mesh, names, reshards):
    """`reshards`: (shape, source, target) with placements by mesh axis."""
    text = [f'dist.process_mesh @m(shape = {list(mesh)}, dim_names = [{", ".join(chr(34) + n + chr(34) for n in names)}])']
    arguments, results, types, values = [], [], [], []
    for i, (shape, source, target) in enumerate(reshards):
        type_ = "tensor<" + "".join(f"{d}x" for d in shape) + "i32>"
        attribute = lambda p: f"{{dist.sharding = #dist.sharding<@m, [{', '.join(p)}]>}}"
        arguments.append(f"%a{i}: {type_} " + attribute(source)[:-1] + ", dist.range = [-99, 99]}")
        results.append(f"{type_} {attribute(target)}")
        types.append(type_)
        values.append(f"%a{i}")
    text.append(f"func.func @main({', '.join(arguments)}) -> ({', '.join(results)}) {{")
    text.append(f"  return {', '.join(values)} : {', '.join(types)}\n}}")
    return "\n".join(text) + "\n"


def check(what, text, even=False):
    done = subprocess.run(["tessera", "run", "-", "--check=interpreter", "--comm-fusion",
                           "all-reduce=off all-gather=off reduce-scatter=off", "--json", "-"],
                          input=text, capture_output=True, text=True, timeout=300)
    try:
        report = json.loads(done.stdout)
    except json.JSONDecodeError:
        print(f"{what}: FAILED: {done.stderr.strip().splitlines()[:1]}")
        return False
    wrong = [r["name"] for r in report["check"] if r["max_error"] != 0]
    broken = [c for c in report["collectives"] if not keeps_promise(c, even)]
    promised, counted = report["wire_bytes_total"], report["counted_wire_bytes_total"]
    good = done.returncode == 0 and not wrong and not broken
    print(f"{what}: {'ok' if good else 'FAILED'}: {len(report['results'])} reshards, {promised} bytes promised, {counted} counted"
          + (f", wrong: {wrong[:5]}" if wrong else "") + (f", not as promised: {broken[:1]}" if broken else ""))
    return good


def keeps_promise(collective, even):
    """Whether the report bounds the bytes of the busiest device. For reductions and all-to-alls, the report assumes equal
    parts of the largest group: with uneven parts one device may send more, but not all together."""
    promised = collective["wire_bytes"] * collective["executions"]
    if even or collective["kind"] not in ("all_reduce", "reduce_scatter", "all_to_all"):
        return promised == collective["counted_wire_bytes"]
    return collective["counted_total"] <= (promised + collective["executions"]) * len(collective["counted_sent"])


def pairs(shapes):
    states = list(itertools.product(["replicate", "shard(0)", "shard(1)", "partial(sum)"], repeat=2))
    good = True
    for shape in shapes:
        extents = [int(d) for d in shape.split("x")]
        good &= check(shape, program((2, 4), ("x", "y"), [(extents, s, t) for s in states for t in states]),
                      even=all(d % 8 == 0 for d in extents))
    return good


def randoms(first, last, count):
    good = True
    for seed in range(first, last):
        rng = random.Random(seed)
        axes = rng.randint(1, 3)
        mesh = [rng.randint(1, 4) for _ in range(axes)]
        while len(mesh) and eval("*".join(map(str, mesh))) > 12:
            mesh = [rng.randint(1, 4) for _ in range(axes)]
        reshards = []
        for _ in range(count):
            shape = [rng.choice([0, 1, 2, 3, 5, 7, 8, 12]) for _ in range(rng.randint(1, 3))]
            kind = rng.choice(["sum", "min", "max"])

            def placements():
                return [rng.choice(["replicate", f"partial({kind})"] + [f"shard({d})" for d in range(len(shape))])
                        for _ in mesh]
            reshards.append((shape, placements(), placements()))
        good &= check(f"seed {seed} on {'x'.join(map(str, mesh))}",
                      program(mesh, [f"a{i}" for i in range(axes)], reshards))
    return good


if __name__ == "__main__":
    if sys.argv[1] == "pairs":
        sys.exit(not pairs(sys.argv[2:]))
    first, last = map(int, sys.argv[2].split(":"))
    sys.exit(not randoms(first, last, int(sys.argv[3]) if len(sys.argv) > 3 else 12))
