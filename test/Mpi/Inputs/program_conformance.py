# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The suite of programs that every backend must pass: collective x type x reduction x even and uneven parts x 1 to 9 ranks, with the bits
of `threads`:

    program_conformance.py BACKEND [--ranks N...] [--whole] [--target cuda|stub] [--plugin FILE] [-- LAUNCHER...]

A program is a mesh and some 50 values that change their sharding, each by one collective. Backends of processes are started by LAUNCHER,
in which {} is the number of ranks. Without --whole every fourth value."""

import argparse
import itertools
import os
import subprocess
import sys
import tempfile

TYPES = ("f64", "f32", "f16", "bf16", "i64", "i32", "i16", "i8", "i1")
REDUCTIONS = ("sum", "max", "min", "prod", "avg")
SHAPES = ((8, 12), (7, 5), (1, 3))
MOVES = (("shard(0)", "replicate"), ("shard(1)", "replicate"), ("replicate", "shard(0)"), ("shard(0)", "shard(1)"), ("shard(1)", "shard(0)"))


def cases():
    """(shape, type, from, to)"""
    for shape, dtype in itertools.product(SHAPES, TYPES):
        for source, target in MOVES:
            yield shape, dtype, source, target
        for op in REDUCTIONS:
            if op != "avg" or "f" in dtype:
                for target in ("replicate", "shard(0)", "shard(1)"):
                    yield shape, dtype, f"partial({op})", target


def program(ranks, chosen):
    arguments, results, types = [], [], []
    for index, ((rows, columns), dtype, source, target) in enumerate(chosen):
        kind = f"tensor<{rows}x{columns}x{dtype}>"
        bounds = "dist.range = [-2, 2], " if dtype[0] == "i" and dtype != "i1" else ""
        arguments.append(f'%a{index}: {kind} {{{bounds}dist.sharding = #dist.sharding<@m, [{source}]>}}')
        results.append(f'{kind} {{dist.name = "y{index}", dist.sharding = #dist.sharding<@m, [{target}]>}}')
        types.append(kind)
    values = ", ".join(f"%a{index}" for index in range(len(chosen)))
    return (f'dist.process_mesh @m(shape = [{ranks}], dim_names = ["x"])\nfunc.func @main({", ".join(arguments)})\n'
            f'    -> ({", ".join(results)}) {{\n  return {values} : {", ".join(types)}\n}}\n')


def checksums(command, environment=None):
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment)
    lines = [line.split("] ")[-1].split() for line in done.stdout.splitlines() if " checksum " in line]
    if done.returncode or not lines:
        sys.exit(f"{' '.join(command)}: {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return {line[0]: line[-1] for line in lines}


def main():
    own, launcher = sys.argv[1:], []
    if "--" in own:
        at = own.index("--")
        own, launcher = own[:at], own[at + 1:]
    parser = argparse.ArgumentParser()
    parser.add_argument("backend")
    parser.add_argument("--ranks", type=int, nargs="*", default=range(1, 10))
    parser.add_argument("--whole", action="store_true")
    parser.add_argument("--target")
    parser.add_argument("--plugin")
    options = parser.parse_args(own)
    more = ["--plugin", options.plugin] if options.plugin else []
    for ranks in options.ranks:
        chosen = list(cases())
        if not options.whole:
            chosen = chosen[ranks % 4::4]
        with tempfile.TemporaryDirectory() as folder:
            for begin in range(0, len(chosen), 50):
                some = chosen[begin:begin + 50]
                path, plain, made = (os.path.join(folder, name) for name in ("program.mlir", "plain.tsra", "made.tsra"))
                with open(path, "w", encoding="utf-8") as file:
                    file.write(program(ranks, some))
                subprocess.run(["tessera", "compile", path, "-o", plain], check=True, stdout=subprocess.DEVNULL)
                if options.target:
                    subprocess.run(["tessera", "compile", path, "-o", made, f"--target={options.target}"], check=True, stdout=subprocess.DEVNULL)
                wanted = checksums(["tessera-exec", plain])
                start = [word.replace("{}", str(ranks)) for word in launcher]
                found = checksums([*start, "tessera-exec", made if options.target else plain, "--backend", options.backend, *more])
                for index, case in enumerate(some):
                    if found.get(f"y{index}") != wanted[f"y{index}"]:
                        sys.exit(f"{case} on {ranks} ranks: {found.get(f'y{index}')} and not {wanted[f'y{index}']}")
        print(f"{ranks} ranks: {len(chosen)} values have the bits of threads", flush=True)


if __name__ == "__main__":
    main()
