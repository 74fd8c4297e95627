"""Compares chains of operations on 16-bit floats, fused into one kernel, with the same operations rounded one by one.

    narrow_chains.py FOLDER LEG [tessera run's options...]

LEG is `run` or `interpret`. Prints `DTYPE: N chains`, and each chain with an element that differs."""
import os
import sys

import numpy as np

import scalar_ops as ops
import scalar_table

LENGTH = 259  # vectors and a remainder
BINARY = {"addf": np.add, "subf": np.subtract, "mulf": np.multiply, "divf": np.divide,
          "maximumf": np.maximum, "minimumf": np.minimum}
UNARY = {"math.sqrt": np.sqrt, "arith.negf": np.negative, "math.absf": np.abs, "math.floor": np.floor}
CHAINS = [
    "mulf addf", "mulf subf", "addf mulf", "divf addf", "mulf divf", "mulf mulf mulf", "addf addf addf subf",
    "mulf addf mulf subf mulf addf mulf subf", "mulf maximumf addf", "maximumf minimumf mulf addf",
    "mulf arith.negf addf", "mulf math.absf math.sqrt mulf", "divf math.floor mulf addf",
]


def columns(dtype):
    """Operands: random ones of few binades, so that roundings matter, and edge values."""
    random = np.random.default_rng(1)
    edges = ops.edge_values(dtype)
    x, y = (ops.round_to(dtype, random.standard_normal(LENGTH) * 4) for _ in range(2))
    x[:len(edges)], y[:len(edges)] = edges, np.roll(edges, 7)
    return {"x": x, "y": y}


def chain(dtype, words, x, y):
    """The ops of a chain in turn: v = op(v, y), op(v, x), op(v, y)... And its result."""
    lines, name, value = [], "%x", x
    kind = f"tensor<{LENGTH}x{dtype}>"
    for i, word in enumerate(words):
        operand, number = ("%y", y) if i % 2 == 0 else ("%x", x)
        if word in UNARY:
            text, value = f"{word} {name}", UNARY[word](value)
        else:
            text, value = f"arith.{word} {name}, {operand}", BINARY[word](value, number)
        value = ops.through_f32(dtype, value)
        name = f"%{'_'.join(words).replace('.', '_')}_{i}"
        lines.append(f"{name} = {text} : {kind}")
    return lines, name, value


def check(leg, dtype, options):
    given = columns(dtype)
    bits = {name: ops.encode(column, dtype) for name, column in given.items()}
    kind = f"tensor<{LENGTH}x{dtype}>"
    body, arguments, names, expected, cases = [], [], [], {}, {}
    for name, column in bits.items():
        if leg == "interpret":
            body.append(f"%{name} = arith.constant {ops.dense(column, dtype)} : {kind}")
        else:
            arguments.append(f'%{name}: {kind} {{dist.name = "{name}"}}')
    for index, words in enumerate(CHAINS):
        lines, last, value = chain(dtype, words.split(), given["x"], given["y"])
        body += lines
        names.append(last)
        expected[f"r{index}"] = value
        cases[f"r{index}"] = (words, 0, [(f"r{index}", dtype)])
    results = ", ".join(f'{kind} {{dist.name = "{name}"}}' for name in expected)
    body.append(f"return {', '.join(names)} : {', '.join([kind] * len(names))}")
    text = f"func.func @main({', '.join(arguments)}) -> ({results}) {{\n  " + "\n  ".join(body) + "\n}\n"
    got = scalar_table.execute(leg, f"{leg}-{dtype}", text, bits, cases, options)
    for name, (words, _, _) in cases.items():
        actual, wanted = ops.decode(got[name], dtype), expected[name]
        differ = actual != wanted
        if "imumf" not in words:  # the maximum of two zeros may be either
            differ |= np.signbit(actual) != np.signbit(wanted)
        wrong = np.flatnonzero(differ & ~(np.isnan(actual) & np.isnan(wanted)))
        if len(wrong):
            at = wrong[0]
            print(f"{dtype} {words}: {len(wrong)} differ, of {given['x'][at]} and {given['y'][at]}: {actual[at]}, "
                  f"expected {wanted[at]}")
    print(f"{dtype}: {len(cases)} chains")


def main():
    folder, leg, *options = sys.argv[1:]
    os.makedirs(folder, exist_ok=True)
    os.chdir(folder)
    with np.errstate(all="ignore"):
        for dtype in ("f16", "bf16"):
            check(leg, dtype, options)


if __name__ == "__main__":
    main()
