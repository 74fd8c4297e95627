"""Compares every scalar op of arith and math on edge values with NumPy: compiled, emulated, folded and interpreted.

    scalar_table.py FOLDER LEG [DTYPE...]

A program has every op of one element type, on all pairs of its edge values and on short vectors. LEG selects what runs it:

    run    tessera run                 the CPU's kernels
    stub   tessera run --backend stub  GPU kernels, emulated
    fold   tessera run                 the inputs are constants, for folders to find
    interpret  tessera-opt --interpret

Prints `DTYPE: N results`, and each op whose errors exceed the bounds (in units in the last place) of scalar_ops.py."""
import os
import subprocess
import sys

import numpy as np

import scalar_ops as ops

LENGTHS = {"run": (0, 1, 3, 8, 17), "stub": (0, 3, 17), "fold": (0,), "interpret": (0, 1)}  # 0: all pairs


def inputs(dtype, length):
    """Columns x, y, z of edge values, all pairs of the first two (and random floats), or the
    most error-prone pairs; w of exponents."""
    values = ops.edge_values(dtype)
    x, y = np.repeat(values, len(values)), np.tile(values, len(values))
    if dtype in ops.FLOATS:
        x, y = (np.concatenate([edges, ops.random_values(dtype, seed)]) for edges, seed in ((x, 1), (y, 2)))
    if length:
        first = np.array(ops.risky_pairs(dtype, length), dtype=object)
        x, y = (first[:, i].astype(values.dtype) for i in (0, 1))
    return dict(x=(x, dtype), y=(y, dtype), z=(np.roll(y, 1), dtype), w=(np.resize(ops.EXPONENTS, len(x)), "i32"))


def program(dtype, sizes, constant):
    """MLIR text, its inputs by name, and the case of each result by name."""
    arguments, body, results, columns, cases = [], [], [], {}, {}
    for length in sizes:
        for letter, (column, element) in inputs(dtype, length).items():
            name = letter + str(length)
            columns[name] = ops.encode(column, element)
            kind = f"tensor<{len(column)}x{element}>"
            if constant:
                body.append(f'%{name} = arith.constant {ops.dense(columns[name], element)} : {kind}')
            else:
                arguments.append(f'%{name}: {kind} {{dist.name = "{name}"}}')
        n = len(columns[f"x{length}"])
        for case in ops.cases(dtype):
            text, kinds = case.text(n)
            first = f"r{len(cases)}"
            names = [first if len(kinds) == 1 else f"{first}_{i}" for i in range(len(kinds))]
            operands = [f"%{c}{length}" for c in case.operands]
            body.append(f"{', '.join('%' + name for name in names)} = " + text.format(*operands))
            for index, (name, kind) in enumerate(zip(names, kinds)):
                results.append((name, f"tensor<{n}x{kind}>"))
            cases[first] = (case, length, list(zip(names, kinds)))
    types = ", ".join(f'{kind} {{dist.name = "{name}"}}' for name, kind in results)
    body.append(f"return {', '.join('%' + name for name, _ in results)} : {', '.join(k for _, k in results)}")
    text = f"func.func @main({', '.join(arguments)}) -> ({types}) {{\n  " + "\n  ".join(body) + "\n}\n"
    return text, columns, cases


def execute(leg, name, text, columns, cases, options=()):
    """The results by name, as arrays of the bits in a file. `options` are those of `tessera run`."""
    with open(f"{name}.mlir", "w") as file:
        file.write(text)
    kinds = {result: kind for _, _, results in cases.values() for result, kind in results}
    if leg == "interpret":
        done = subprocess.run(["tessera-opt", f"{name}.mlir", "--interpret=elements=1000000", "-o", os.devnull],
                              capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"{name}: {done.stderr[:2000]}")
        lines = [line.split(" = ", 1)[1] for line in done.stdout.splitlines() if line.startswith("result")]
        return {result: ops.encode(ops.parse(line, kind), kind)
                for (result, kind), line in zip(kinds.items(), lines, strict=True)}
    command = ["tessera", "run", f"{name}.mlir"] + (["--backend", "stub"] if leg == "stub" else []) + list(options)
    for key, column in columns.items() if leg != "fold" else ():
        np.save(f"{name}-{key}.npy", column)
        command.append(f"--input={key}={name}-{key}.npy")
    command += [f"--output={result}={name}-{result}.npy" for result in kinds]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{name}: {done.stderr[:2000]} (exit code {done.returncode})")
    return {result: np.load(f"{name}-{result}.npy") for result in kinds}


def check(leg, dtype):
    text, columns, cases = program(dtype, LENGTHS[leg], constant=leg in ("fold", "interpret"))
    got = execute(leg, f"{leg}-{dtype}", text, columns, cases)
    for case, length, results in cases.values():
        types = ["i32" if c == "w" else dtype for c in case.operands]
        given = [ops.decode(columns[f"{c}{length}"], kind) for c, kind in zip(case.operands, types)]
        for index, (name, kind) in enumerate(results):
            expected = case.expected(given, index)
            actual = ops.decode(got[name], kind)
            where = ops.differing(actual, expected, kind, case.ulps(dtype, leg), case.loose_zero,
                                  case.flushes(dtype))
            if where is None:
                continue
            at, count, ulps = where
            operands = ", ".join(ops.shown(column[at], kind) for column, kind in zip(given, types))
            print(f"{leg} {dtype} {case.name} of {len(given[0])}: {count} differ, {case.name}({operands}) is "
                  f"{ops.shown(actual[at], kind)}, expected {ops.shown(expected[at], kind)} ({ulps} ulps)")
    print(f"{dtype}: {len(cases)} results")


def main():
    folder, leg, *dtypes = sys.argv[1:]
    os.makedirs(folder, exist_ok=True)
    os.chdir(folder)
    with np.errstate(all="ignore"):
        for dtype in dtypes or ops.DTYPES:
            check(leg, dtype)


if __name__ == "__main__":
    main()
