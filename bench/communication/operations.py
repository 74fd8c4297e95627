#!/usr/bin/env python3
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Prints wire bytes of single operations along a cut dimension: derived by hand, JAX, Tessera.

    operations.py [--no-jax] [--json FILE] [NAME...]

Tensors are f32 with N = 1024 rows of D = 64 elements, a row is 256 bytes; rows are cut over n = 8 devices, 128 each, unless
the name says otherwise. Cases of attention are in attention_cases.py, programs in program_cases.py, blocks of models in
model_cases.py, batches of parts in batch_cases.py, bags of embeddings and networks on graphs in graph_cases.py, pipelines and
other programs that state their communication in parallel_cases.py. Bounds by hand are the bytes that the busiest device must send or receive; the last column derives them.
With --values, values are compared with one device. PYTHONPATH must have the build's python folder.
"""

import argparse
import json
import os
import sys

os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=8".strip()
os.environ.setdefault("JAX_PLATFORMS", "cpu")
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

N, D, DEVICES = 1024, 64, 8
ROW = 4 * D
SHARD = N * ROW // DEVICES


class Case:
    """An operation: its function, operands, cuts of operands and results ("?": unspecified), bound, its mesh if it is another, and options."""

    def __init__(self, fn, args, hand, why, cut=None, out="s", mesh=None, **options):
        self.fn, self.args, self.hand, self.why, self.out, self.mesh, self.options = fn, args, hand, why, out, mesh, options
        self.cut = cut if cut is not None else ["s"] * len(args)

    def outs(self, place):
        """place(cut) of each result: one cut for all, or one per result."""
        import jax
        results = jax.eval_shape(self.fn, *self.args)
        if isinstance(results, tuple) and isinstance(self.out, tuple) and len(self.out) == len(results):
            return tuple(map(place, self.out))
        return jax.tree.map(lambda _: place(self.out), results)


def cases():
    import jax
    import jax.numpy as jnp
    from jax import lax
    f32, i32, bf16 = jnp.float32, jnp.int32, jnp.bfloat16

    def shape(*extents, dtype=f32):
        return jax.ShapeDtypeStruct(extents, dtype)

    x, up = shape(N, D), lambda a, k, v=0: jnp.pad(a, ((k, 0), (0, 0)), constant_values=v)
    cache, index = shape(4, 512, 8, 16), shape(dtype=i32)
    combined = 2 * ROW * 7 // 8
    table = {
        "roll 1": Case(lambda a: jnp.roll(a, 1, 0), [x], ROW, "a row from the neighbor"),
        "roll 300": Case(lambda a: jnp.roll(a, 300, 0), [x], SHARD, "a part, of two devices"),
        "roll a shard": Case(lambda a: jnp.roll(a, N // 8, 0), [x], SHARD, "a part"),
        "roll of 1000 rows": Case(lambda a: jnp.roll(a, 5, 0), [shape(1000, D)], 5 * ROW, "five rows"),
        "flip": Case(lambda a: jnp.flip(a, 0), [x], SHARD, "a part, of the device opposite"),
        "a[::2]": Case(lambda a: a[::2], [x], 0, "every second row of a part is a part of the result"),
        "a[512::2]": Case(lambda a: a[512::2], [x], SHARD // 2, "device 4 has 64 of the rows and sends them all"),
        "diff": Case(lambda a: a[1:] - a[:-1], [x], ROW, "a row from the neighbor"),
        "shift by a pad": Case(lambda a: up(a, 1)[:-1], [x], ROW, "a row from the neighbor"),
        "shift by a concat": Case(lambda a: jnp.concatenate([jnp.zeros((1, D), f32), a[:-1]]), [x], ROW, "a row"),
        "concat": Case(lambda a, b: jnp.concatenate([a, b]), [x, x], 2 * SHARD,
                       "device 1 has rows 128-255 of both and needs 256-511 of the first"),
        "concat of 100 and 924": Case(lambda a, b: jnp.concatenate([a, b]), [shape(100, D), shape(924, D)], 89 * ROW,
                                      "device 1 sends 13 rows of the first and 76 of the second"),
        "pad 3, 5": Case(lambda a: jnp.pad(a, ((3, 5), (0, 0))), [x], 4 * ROW, "parts of 129 from row -3 on: four rows at most"),
        "interleave by a stack": Case(lambda a, b: jnp.stack([a, b], 1).reshape(2 * N, D), [x, x], 0, "parts are parts"),
        "interleave by pads": Case(lambda a, b: lax.pad(a, 0., ((0, 1, 1), (0, 0, 0))) + lax.pad(b, 0., ((1, 0, 1), (0, 0, 0))),
                                   [x, x], 0, "parts are parts"),
        "causal convolution": Case(lambda a, w: sum(up(a, k)[:N] * w[k] for k in range(4)), [x, shape(4, D)], 3 * ROW,
                                   "three rows from the neighbor", cut=["s", None]),
        "windows by index": Case(lambda a: a[jnp.arange(N - 3)[:, None] + jnp.arange(4)[None]].sum(1), [x], 3 * ROW,
                                 "three rows from the neighbor"),
        "a[-1]": Case(lambda a: a[-1], [x], ROW, "the last row to all", out=None),
        "a[:128]": Case(lambda a: a[:128] * 2, [x], SHARD, "a part to all", out=None),
        "dynamic slice": Case(lambda a, i: lax.dynamic_slice_in_dim(a, i, 1, 0), [x, index], combined,
                              "its owner's row, added to nothing: 2 B (n-1)/n", cut=["s", None], out=None),
        "dynamic update": Case(lambda a, u, i: lax.dynamic_update_slice_in_dim(a, u, i, 0), [x, shape(1, D), index], 0,
                               "its owner writes", cut=["s", None, None]),
        "repeat": Case(lambda a: jnp.repeat(a, 2, 0), [x], 0, "parts are parts"),
        "segment sum, unplaced": Case(lambda a, i: jax.ops.segment_sum(a, i, num_segments=N), [x, shape(N, dtype=i32)],
                                      (SHARD + 4 * N) * 7 // 8, "a part to columns, indices to all: each device adds up columns", out="?"),
        "gradient, unplaced": Case(lambda a, b: jnp.tanh(a.T @ b), [x, x], D * ROW * 7 // 8,
                                   "contributions of all, each device keeps a part: B (n-1)/n, and tanh of it", out="?"),
        "sum of tanh of a sum": Case(lambda a, b: jnp.tanh(a.T @ b).sum(), [x, x], D * ROW * 7 // 8 + 2 * 4 * 7 // 8,
                                     "contributions of all, each device sums up a part; the sum", out=None),
        "product of bf16": Case(lambda a, b: a.T @ b, [shape(N, D, dtype=bf16)] * 2, D * D * (4 + 2) * 7 // 8,
                                "scattered in f32, gathered rounded", out=None),
        "product of bf16, narrow": Case(lambda a, b: a.T @ b, [shape(N, D, dtype=bf16)] * 2, 2 * D * D * 2 * 7 // 8,
                                        "reduced in bf16: 2 B (n-1)/n", out=None, narrow_reductions=True),
    }
    for name, dim in (("batch", 0), ("sequence", 1), ("heads", 2)):
        batch, heads = ("s" if dim == d else None for d in (0, 2))
        wide = shape(8, 512, 8, 16) if dim == 0 else cache
        table[f"cache update, {name} cut"] = Case(
            lambda c, r, i: lax.dynamic_update_slice(c, r, (0, i, 0, 0)),
            [wide, shape(wide.shape[0], 1, 8, 16), index], 0, "its owner writes",
            cut=[tuple("s" if d == dim else None for d in range(4)), (batch, None, heads), None],
            out=tuple("s" if d == dim else None for d in range(4)))
    from attention_cases import attention_cases
    from batch_cases import batch_cases
    from graph_cases import graph_cases
    from model_cases import model_cases
    from parallel_cases import parallel_cases
    from program_cases import program_cases
    for of_kind in (program_cases, model_cases, batch_cases, parallel_cases, graph_cases):
        table |= of_kind(Case)
    return table | {f"attention: {name}": case for name, case in attention_cases(Case).items()}


def spec(cut):
    from jax.sharding import PartitionSpec
    return PartitionSpec() if cut is None else PartitionSpec(*cut) if isinstance(cut, tuple) else PartitionSpec(cut)


def tessera_bytes(case, mesh, values):
    import jax
    import tessera
    ins = tuple(spec(cut) for cut in case.cut)
    outs = None if case.out == "?" else case.outs(spec)
    program = tessera.from_jax(case.fn, case.args, ins, outs, mesh=case.mesh or mesh)
    if values:
        check(case, program)
    return program.explain(objective="bytes", **case.options)["wire_bytes_total"]


def check(case, program):
    """Raises if a value differs from that of one device."""
    import jax
    import numpy as np
    random = np.random.default_rng(0)
    data = jax.tree.map(lambda arg: random.integers(0, 500, arg.shape).astype("i") if arg.dtype == np.int32 else
                        random.standard_normal(arg.shape).astype(arg.dtype), case.args)
    got, want = program(*data), jax.jit(case.fn)(*data)
    for one, other in zip(jax.tree.leaves(got), jax.tree.leaves(want)):
        loose = {"rtol": 1e-5, "atol": 5e-5} if other.dtype == np.float32 else {"rtol": 2e-2, "atol": 0.5}
        np.testing.assert_allclose(np.asarray(one, "f"), np.asarray(other, "f"), **loose)


def jax_bytes(case, mesh):
    """Wire bytes of the program that JAX compiles; None if JAX does not support the sharding."""
    import jax
    from hlo_stats import collectives
    from jax.sharding import NamedSharding

    def place(cut):
        return NamedSharding(case.mesh or mesh, spec(cut))
    more = {}
    if case.out != "?":
        more["out_shardings"] = case.outs(place)
    try:
        compiled = jax.jit(case.fn, in_shardings=tuple(map(place, case.cut)), **more).lower(*case.args).compile()
    except ValueError:
        return None
    return int(collectives(compiled.as_text(), DEVICES)["wire_bytes"])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="operations; default all")
    parser.add_argument("--no-jax", action="store_true", help="do not compile with JAX")
    parser.add_argument("--values", action="store_true", help="run each and compare with one device")
    parser.add_argument("--json", help="write the figures here")
    options = parser.parse_args()
    try:
        import jax
        import numpy as np
    except ModuleNotFoundError as error:
        print(f"operations.py: {error}; the operations are JAX functions, install jax", file=sys.stderr)
        return 1
    table = cases()
    unknown = [name for name in options.names if name not in table]
    if unknown:
        parser.error(f"there is no operation {', '.join(unknown)}; there are {', '.join(table)}")
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:DEVICES]), ("s",))
    figures = {}
    print(f"{'operation':40}{'by hand':>12}{'JAX':>12}{'Tessera':>12}{'ratio':>7}  bound")
    for name in options.names or table:
        case = table[name]
        ours = tessera_bytes(case, mesh, options.values)
        theirs = None if options.no_jax else jax_bytes(case, mesh)
        least = min(case.hand, case.hand if theirs is None else theirs)
        ratio = "1.00" if ours == least else f"{ours / least:.2f}" if least else "-"
        print(f"{name:40}{case.hand:12,}{'-' if theirs is None else format(theirs, ','):>12}{ours:12,}{ratio:>7}  {case.why}",
              flush=True)
        figures[name] = dict(hand=case.hand, jax=theirs, tessera=ours)
    if options.json:
        with open(options.json, "w") as file:
            json.dump(figures, file, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
