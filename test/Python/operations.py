# RUN: %tessera_python %s
# REQUIRES: tessera-core
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operations equal NumPy's, on one device and on six with the operands cut unevenly."""

import sys
import unittest
import unittest.mock

import numpy as np

import tessera as ts
from tessera import ProcessMesh, Shard, core, shard_tensor
from tessera.testing import difference

MESH = ProcessMesh([[0, 1, 2], [3, 4, 5]], ["x", "y"])
R = np.random.default_rng(0)


def floats(*shape, low=-2, high=2):
    return R.uniform(low, high, shape).astype(np.float32)


def cut(array, turn):
    """Placed by two of its dimensions."""
    rank = np.ndim(array)
    return shard_tensor(array, MESH, [Shard(turn % rank), Shard((turn + 1) % rank)][:rank] if rank else [])


class Operations(unittest.TestCase):
    def check(self, cases, *arrays):
        """cases: name -> (function of tensors, function of arrays or its value). All are one program."""
        expected = {}
        with np.errstate(all="ignore"):
            for name, (_, function) in cases.items():
                value = function(*arrays) if callable(function) else function
                expected[name] = np.asarray(value, np.float32) if np.asarray(value).dtype == np.float64 else np.asarray(value)

        @ts.jit
        def program(*tensors):
            return {name: function(*tensors) for name, (function, _) in cases.items()}
        for turn in (None, 0, 1):
            tensors = [ts.asarray(a) if turn is None else cut(a, turn + i) for i, a in enumerate(arrays)]
            actual = program(*tensors)
            for name in cases:
                wrong = difference(actual[name].numpy(), expected[name])
                self.assertIsNone(wrong, f"{name}, cut in way {turn}: {wrong}")

    def test_elementwise(self):
        one = {n: (getattr(ts, n), getattr(np, n)) for n in (
            "exp", "expm1", "sin", "cos", "tanh", "floor", "ceil", "trunc", "abs", "negative", "square", "sign", "isnan", "isfinite", "isinf",
            "logical_not", "sinh", "cosh")}
        one |= {n: (lambda x, y, f=getattr(ts, n): f(ts.abs(x) + 0.5), lambda x, y, f=getattr(np, n): f(np.abs(x) + np.float32(.5)))
                for n in ("log", "log1p", "log2", "log10", "sqrt")}
        one = {n: (f if n in ("log", "log1p", "log2", "log10", "sqrt") else lambda x, y, f=f: f(x),
                   g if n in ("log", "log1p", "log2", "log10", "sqrt") else lambda x, y, g=g: g(x)) for n, (f, g) in one.items()}
        two = {n: (getattr(ts, n), getattr(np, n)) for n in ("add", "subtract", "multiply", "divide", "maximum", "minimum", "less", "less_equal",
                                                           "greater", "greater_equal", "equal", "not_equal", "floor_divide", "remainder", "copysign", "hypot")}
        more = {
            "sigmoid": (lambda x, y: ts.sigmoid(x), lambda x, y: 1 / (1 + np.exp(-x))),
            "round": (lambda x, y: ts.round(x * 2), lambda x, y: np.round(x * 2)),
            "pow3": (lambda x, y: x ** 3, lambda x, y: x ** 3), "pow-2": (lambda x, y: x ** -2, lambda x, y: 1 / (x * x)),
            "pow": (lambda x, y: ts.abs(x) ** y, lambda x, y: np.abs(x) ** y), "atan2": (ts.atan2, np.arctan2),
            "clip": (lambda x, y: ts.clip(x, -1, 0.5), lambda x, y: np.clip(x, -1, 0.5)),
            "where": (lambda x, y: ts.where(x > y, x, 0), lambda x, y: np.where(x > y, x, np.float32(0))),
            "and": (lambda x, y: (x > 0) & (y > 0), lambda x, y: (x > 0) & (y > 0)),
            "or": (lambda x, y: ts.logical_or(x > 0, y > 0), lambda x, y: (x > 0) | (y > 0)),
            "int": (lambda x, y: (x * 3).astype("int32"), lambda x, y: (x * 3).astype(np.int32)),
            "rsub": (lambda x, y: 1 - x, lambda x, y: 1 - x), "rdiv": (lambda x, y: 1 / x, lambda x, y: np.float32(1) / x),
        }
        self.check(one | two | more, floats(5, 7), floats(5, 7))

    def test_broadcast(self):
        self.check({"add": (lambda x, y, z: x + y * z, lambda x, y, z: x + y * z), "row": (lambda x, y, z: x - z, lambda x, y, z: x - z)},
                   floats(4, 5, 3), floats(5, 1), floats(3))

    def test_integers(self):
        x, y = R.integers(-9, 9, (5, 7)), R.integers(1, 5, (5, 7))
        self.check({n: (getattr(ts, n), getattr(np, n)) for n in ("add", "subtract", "multiply", "floor_divide", "remainder", "maximum",
                                                                 "less", "bitwise_and", "bitwise_or", "bitwise_xor")}
                   | {"divide": (ts.divide, lambda x, y: (x / y).astype(np.float32)),
                      "atan2": (ts.atan2, lambda x, y: np.arctan2(x, y).astype(np.float32)), "sum": (lambda x, y: x.sum(0), lambda x, y: x.sum(0)),
                      "by zero": (lambda x, y: x // (y * 0), lambda x, y: x * 0),
                      "left": (ts.bitwise_left_shift, np.left_shift), "right": (ts.bitwise_right_shift, np.right_shift)}, x, y)

    def test_unsigned(self):
        """Unsigned in comparisons, divisions, extensions and sorts; other operations keep the bits."""
        x, y = R.integers(0, 256, (5, 7)).astype(np.uint8), R.integers(1, 256, (5, 7)).astype(np.uint8)
        names = ("add", "subtract", "multiply", "floor_divide", "remainder", "maximum", "minimum", "less", "greater_equal", "bitwise_and", "bitwise_xor")
        cases = {n: (getattr(ts, n), getattr(np, n)) for n in names}
        cases |= {n: (lambda x, y, n=n: getattr(ts, n)(x, 0), lambda x, y, n=n: getattr(np, n)(x, axis=0)) for n in ("max", "min", "argmax", "sum", "sort")}
        cases |= {f"as {n}": (lambda x, y, n=n: x.astype(n), lambda x, y, n=n: x.astype(n)) for n in ("float32", "int8", "int64", "uint16", "bool")}
        cases |= {"mean": (lambda x, y: x.mean(1), lambda x, y: x.mean(1, dtype=np.float32)), "not": (lambda x, y: ~x, lambda x, y: ~x),
                  "signs": (lambda x, y: x + y.astype("int8"), lambda x, y: x + y.astype(np.int8)), "number": (lambda x, y: x - 3, lambda x, y: x - np.uint8(3)),
                  "saturated": (lambda x, y: (x.astype("float32") * 2 - 100).astype("uint8"), lambda x, y: np.clip(x.astype(np.float32) * 2 - 100, 0, 255).astype(np.uint8)),
                  "take": (lambda x, y: ts.take(x, y % 5), lambda x, y: x[y % 5]), "-x": (lambda x, y: -x, lambda x, y: -x), "sign": (lambda x, y: ts.sign(x), lambda x, y: np.sign(x))}
        self.check(cases, x, y)
        made = ts.jit(lambda x: (x, x.sum(), x.astype("uint32") + x.astype("int16"), ts.full((2,), 200, "uint8") + 100))(x)
        self.assertEqual([t.dtype for t in made], [ts.uint8, ts.uint64, ts.int64, ts.uint8])
        self.assertEqual(made[3].tolist(), [44, 44])
        self.assertEqual(int(ts.asarray(np.array([2 ** 63 + 5], np.uint64)).max()), 2 ** 63 + 5)

    def test_sorting(self):
        x = floats(5, 7)
        x[1, 2] = x[1, 5]
        order = np.argsort(-x, 1, kind="stable")
        self.check({"sort": (ts.sort, lambda x: np.sort(x)), "sort 0": (lambda x: ts.sort(x, 0), lambda x: np.sort(x, 0)),
                    "argsort": (ts.argsort, lambda x: np.argsort(x, kind="stable")), "down": (lambda x: ts.argsort(x, 1, True), lambda x: order),
                    "top_k": (lambda x: ts.top_k(x, 3)[0], lambda x: np.sort(x)[:, ::-1][:, :3]), "places": (lambda x: ts.top_k(x, 3)[1], lambda x: order[:, :3]),
                    "least": (lambda x: ts.top_k(x, 2, 0, False)[0], lambda x: np.sort(x, 0)[:2])}, x)

    def test_reductions(self):
        cases = {}
        for n in ("sum", "mean", "max", "min", "prod", "var", "std"):
            for axis in (None, 0, -1, (0, 2)):
                cases[f"{n} {axis}"] = (lambda x, n=n, a=axis: getattr(ts, n)(x, a), lambda x, n=n, a=axis: getattr(np, n)(x, axis=a))
        for n in ("argmax", "argmin"):
            for axis in (0, 1, 2):
                cases[f"{n} {axis}"] = (lambda x, n=n, a=axis: getattr(ts, n)(x, a), lambda x, n=n, a=axis: getattr(np, n)(x, axis=a))
        softmax = lambda x, a: np.exp(x - x.max(a, keepdims=True)) / np.exp(x - x.max(a, keepdims=True)).sum(a, keepdims=True)
        cases |= {"keepdims": (lambda x: ts.sum(x, 1, keepdims=True), lambda x: x.sum(1, keepdims=True)),
                  "any": (lambda x: ts.any(x > 1.9, 1), lambda x: (x > 1.9).any(1)), "all": (lambda x: ts.all(x > -1.9, 1), lambda x: (x > -1.9).all(1)),
                  "cumulative_sum": (lambda x: ts.cumulative_sum(x, 1), lambda x: np.cumsum(x, 1)),
                  "cumulative_prod": (lambda x: ts.cumulative_prod(x, 1), lambda x: np.cumprod(x, 1)),
                  "softmax": (lambda x: ts.softmax(x), lambda x: softmax(x, -1)), "softmax 0": (lambda x: ts.softmax(x, 0), lambda x: softmax(x, 0)),
                  "log_softmax": (lambda x: ts.log_softmax(x, 1), lambda x: np.log(softmax(x, 1))),
                  "logsumexp": (lambda x: ts.logsumexp(x, 1), lambda x: np.log(np.exp(x).sum(1)))}
        self.check(cases, floats(5, 7, 3))

    def test_shapes(self):
        self.check({
            "reshape": (lambda x: x.reshape(7, 15), lambda x: x.reshape(7, 15)), "reshape -1": (lambda x: x.reshape(-1, 3), lambda x: x.reshape(-1, 3)),
            "T": (lambda x: x.T, lambda x: x.T), "permute": (lambda x: x.permute(1, 2, 0), lambda x: x.transpose(1, 2, 0)),
            "mT": (lambda x: x.mT, lambda x: x.swapaxes(1, 2)), "moveaxis": (lambda x: ts.moveaxis(x, 0, 2), lambda x: np.moveaxis(x, 0, 2)),
            "expand": (lambda x: ts.expand_dims(x, 1), lambda x: np.expand_dims(x, 1)), "squeeze": (lambda x: ts.squeeze(x[:, 2:3]), lambda x: x[:, 2]),
            "broadcast": (lambda x: ts.broadcast_to(x[:1], (4, 7, 3)), lambda x: np.broadcast_to(x[:1], (4, 7, 3))),
            "concat": (lambda x: ts.concat([x, x * 2], 1), lambda x: np.concatenate([x, x * 2], 1)),
            "stack": (lambda x: ts.stack([x, x * 2], 1), lambda x: np.stack([x, x * 2], 1)),
            "split": (lambda x: ts.split(x, [2, 5], 1)[1], lambda x: x[:, 2:]), "tile": (lambda x: ts.tile(x, (2, 1, 3)), lambda x: np.tile(x, (2, 1, 3))),
            "flip": (lambda x: ts.flip(x, 1), lambda x: np.flip(x, 1)), "pad": (lambda x: ts.pad(x, [(1, 0), (0, 2), (0, 0)], 3), lambda x: np.pad(x, [(1, 0), (0, 2), (0, 0)], constant_values=3)),
            "flatten": (lambda x: x.flatten(), lambda x: x.reshape(-1)), "tril": (lambda x: ts.tril(x), lambda x: np.tril(x)), "triu": (lambda x: ts.triu(x, 1), lambda x: np.triu(x, 1)),
            "roll": (lambda x: ts.roll(x, (1, -2), (0, 1)), lambda x: np.roll(x, (1, -2), (0, 1))), "roll all": (lambda x: ts.roll(x, 4), lambda x: np.roll(x, 4)),
            "repeat": (lambda x: ts.repeat(x, 2, 1), lambda x: np.repeat(x, 2, 1)), "diagonal": (lambda x: ts.diagonal(x, 1), lambda x: np.diagonal(x, 1)),
            "[1]": (lambda x: x[1], lambda x: x[1]), "[-1, ..., 0]": (lambda x: x[-1, ..., 0], lambda x: x[-1, ..., 0]),
            "[:, 1:6:2]": (lambda x: x[:, 1:6:2], lambda x: x[:, 1:6:2]), "[::-1]": (lambda x: x[::-1], lambda x: x[::-1]),
            "[None, :, 5:2:-1]": (lambda x: x[None, :, 5:2:-1], lambda x: x[None, :, 5:2:-1]), "[[2, 0]]": (lambda x: x[[2, 0]], lambda x: x[[2, 0]]),
        }, floats(5, 7, 3))

    def test_products(self):
        self.check({
            "matmul": (lambda x, y, z: x @ y, lambda x, y, z: x @ y), "vector": (lambda x, y, z: x @ y[0, :, 1], lambda x, y, z: x @ y[0, :, 1]),
            "broadcast": (lambda x, y, z: x[0] @ y, lambda x, y, z: x[0] @ y), "rows": (lambda x, y, z: z @ y, lambda x, y, z: z @ y),
            "einsum": (lambda x, y, z: ts.einsum("bij,bjk,j->ki", x, y, z), lambda x, y, z: np.einsum("bij,bjk,j->ki", x, y, z)),
            "outer": (lambda x, y, z: ts.outer(z, z), lambda x, y, z: np.outer(z, z)),
            "tensordot": (lambda x, y, z: ts.tensordot(x, y, ([0, 2], [0, 1])), lambda x, y, z: np.tensordot(x, y, ([0, 2], [0, 1]))),
        }, floats(3, 5, 7), floats(3, 7, 4), floats(7))

    def test_lookups(self):
        i, x = R.integers(-7, 7, (4, 3)), floats(7, 5)
        self.check({
            "take": (lambda x, i: ts.take(x, i), lambda x, i: x[i]), "take 1": (lambda x, i: ts.take(x, i[0] % 5, 1), lambda x, i: x[:, i[0] % 5]),
            "one_hot": (lambda x, i: ts.one_hot(i % 7, 7), lambda x, i: np.eye(7, dtype=np.float32)[i % 7]),
            "along": (lambda x, i: ts.take_along_axis(x[:4], i % 5, 1), lambda x, i: np.take_along_axis(x[:4], i % 5, 1)),
            "[i, j]": (lambda x, i: x[i, i % 5], lambda x, i: x[i, i % 5]), "[i, :, j]": (lambda x, i: x[:, None][i, :, i % 5], lambda x, i: x[:, None][i, :, i % 5]),
        }, x, i)

    def test_writes(self):
        """Of several values for one index the last is written; `add` adds all."""
        x, i, y = floats(7, 5), np.array([2, 0, 2, -1]), floats(4, 5)

        def put(x, at, y, add=False):
            x = x.copy()
            np.add.at(x, at, y) if add else x.__setitem__(at, y)
            return x

        def along(x, i, y):
            x = x.copy()
            np.put_along_axis(x, i, y, 1)
            return x
        self.check({
            "set": (lambda x, i, y: ts.put_at(x, [i], y), lambda x, i, y: put(x, (i,), y)), "add": (lambda x, i, y: ts.put_at(x, [i], y, mode="add"), lambda x, i, y: put(x, (i,), y, True)),
            "two": (lambda x, i, y: ts.put_at(x, [i, i % 5], y[:, 0]), lambda x, i, y: put(x, (i, i % 5), y[:, 0])),
            "column": (lambda x, i, y: ts.put_at(x, [i], y[:, :4].T[:4, :4].reshape(4, 4)[0], 1), lambda x, i, y: put(x, (slice(None), i), y[:, 0])),
            "along": (lambda x, i, y: ts.put_along_axis(x[:4], ts.expand_dims(i, 1), y[:, :1], 1), lambda x, i, y: along(x[:4], i[:, None], y[:, :1])),
        }, x, i, y)

    def test_combined_writes(self):
        """All updates of an element are combined with it; indices out of range are dropped, clamped, or an error."""
        x, i, y = floats(70, 5), np.array([2, 40, 2, -1, 69, 2, 40]), floats(7, 5)

        def put(function, x, at, y):
            x = x.copy()
            function.at(x, at, y)
            return x
        modes = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}
        self.check({mode: (lambda x, i, y, m=mode: ts.put_at(x, [i], y, mode=m), lambda x, i, y, f=f: put(f, x, i, y)) for mode, f in modes.items()} | {
            f"along {mode}": (lambda x, i, y, m=mode: ts.put_along_axis(x, ts.broadcast_to(ts.expand_dims(i, 1), (7, 5)), y, 0, m), lambda x, i, y, f=f: put(f, x, i, y))
            for mode, f in modes.items()} | {
            "ints": (lambda x, i, y: ts.put_at((x * 9).astype("int32"), [i], (y * 9).astype("int32"), mode="max"),
                     lambda x, i, y: put(np.maximum, (x * 9).astype(np.int32), i, (y * 9).astype(np.int32))),
            "apply": (lambda x, i, y: ts.apply_at(x, lambda v: v * v + 1, [i]), lambda x, i, y: np.where(np.isin(np.arange(70), i % 70)[:, None], x * x + 1, x)),
            "drop": (lambda x, i, y: ts.put_at(x, [i * 2], y, mode="add", outside="drop"), lambda x, i, y: put(np.add, x, i[[0, 2, 5]] * 2, y[[0, 2, 5]])
                      ),
            "clip": (lambda x, i, y: ts.take(x, i * 2, 0, "clip"), lambda x, i, y: x[np.clip(i * 2, 0, 69)]),
        }, x, i, y * (i != 40)[:, None] + 1)
        with self.assertRaisesRegex(ts.ArgumentError, "mode 'sub' of 'put_at' is not one of set, add, mul, max, min"):
            ts.put_at(x, [i], y, mode="sub")
        narrow = ts.put_at(ts.zeros((3,), "float16"), [np.zeros(4096, np.int32)], ts.ones((4096,), "float16"), mode="add")
        self.assertEqual(narrow.tolist(), [4096, 0, 0])  # added in float32: 2048 + 1 is not a float16

    def test_segments(self):
        x, i = floats(9, 4), np.array([3, 0, 3, 5, -1, 0, 3, 2, 6])

        def segments(function, start):
            def apply(x, i):
                out = np.full((6, 4), start, np.float32)
                function.at(out, i[(i >= 0) & (i < 6)], x[(i >= 0) & (i < 6)])
                return out
            return apply
        self.check({name: (lambda x, i, f=getattr(ts, f"segment_{name}"): f(x, i, 6), segments(function, start)) for name, function, start in (
            ("sum", np.add, 0), ("prod", np.multiply, 1), ("max", np.maximum, -np.inf), ("min", np.minimum, np.inf))} | {
            "two axes": (lambda x, i: ts.segment_sum(x, ts.broadcast_to(ts.expand_dims(i, 1), (9, 4)), 6), lambda x, i: segments(np.add, 0)(x, i).sum(1))}, x, i)
        with self.assertRaisesRegex(ts.ShapeError, r"segments \(8,\) of 'segment_sum' are not the first axes of shape \(9, 4\)"):
            ts.segment_sum(x, i[:8], 6)

    def test_dynamic_slices(self):
        """Starts are clamped such that the part is inside."""
        x, y, i = floats(7, 5), floats(3, 2), np.array([9, -2, 1])

        def updated(x, y, at):
            x = x.copy()
            x[at[0]:at[0] + 3, at[1]:at[1] + 2] = y
            return x
        self.check({"slice": (lambda x, y, i: ts.dynamic_slice(x, [i[0], 1], [3, 2]), lambda x, y, i: x[4:7, 1:3]),
                    "tensor": (lambda x, y, i: ts.dynamic_slice(x, i[1:], [3, 2]), lambda x, y, i: x[0:3, 1:3]),
                    "update": (lambda x, y, i: ts.dynamic_update_slice(x, y, [i[2], i[0]]), lambda x, y, i: updated(x, y, (1, 3)))}, x, y, i)
        with self.assertRaisesRegex(ts.ShapeError, r"a part of shape \(8, 2\) of 'dynamic_slice' is not inside of shape \(7, 5\)"):
            ts.dynamic_slice(x, [0, 0], [8, 2])
        with self.assertRaisesRegex(ts.DTypeError, "indices of 'dynamic_slice' are float32, not integers"):
            ts.dynamic_slice(x, [x[0, 0], 0], [3, 2])

    def test_searches(self):
        """By comparisons with all, or by halving; NaN is last."""
        for count in (9, 70):
            edges = np.sort(floats(count))
            edges[3] = edges[4]
            values = np.concatenate([edges[::3], floats(9), np.array([np.nan, np.inf, -np.inf], np.float32)])
            self.check({side: (lambda e, v, s=side: ts.searchsorted(e, v, s), lambda e, v, s=side: np.searchsorted(e, v, s)) for side in ("left", "right")} | {
                "lines": (lambda e, v: ts.searchsorted(ts.stack([e, e + 1]), ts.stack([v, v])), lambda e, v: np.stack([np.searchsorted(e, v), np.searchsorted(e + 1, v)]))},
                edges, values)

    def test_running_extremes(self):
        x = np.round(floats(5, 40))
        x[2, 7] = np.nan
        self.check({"max": (lambda x: ts.cumulative_max(x, 1)[0], lambda x: np.maximum.accumulate(x, 1)),
                    "min": (lambda x: ts.cumulative_min(x, 0)[0], lambda x: np.minimum.accumulate(x, 0)),
                    "places": (lambda x: ts.cumulative_max(x[:2], 1)[1],
                               lambda x: np.maximum.accumulate(np.where(np.maximum.accumulate(x[:2], 1) == x[:2], np.arange(40), 0), 1)),
                    "logsumexp": (lambda x: ts.cumulative_logsumexp(x * 90, 1), lambda x: np.logaddexp.accumulate(x.astype(np.float64) * 90, 1))}, x)

    def test_creation(self):
        @ts.jit
        def program(x):
            return x[0, 0].astype("int64") * 0 + ts.arange(5), ts.eye(3, 4, 1), ts.ones((2, 3)) + ts.full((3,), 2.5), ts.zeros_like(x), ts.arange(2, 9, 3)
        for made, expected in zip(program(floats(4, 2)), (np.arange(5), np.eye(3, 4, 1), np.full((2, 3), 3.5), np.zeros((4, 2)), np.arange(2, 9, 3))):
            np.testing.assert_array_equal(made.numpy(), expected)
        np.testing.assert_array_equal(ts.linspace(0, 1, 5).numpy(), np.linspace(0, 1, 5, dtype=np.float32))

    def test_bits_of_floats(self):
        """Bitwise operations reject floats, as tensors and as numbers."""
        x = R.integers(0, 9, 4)
        for other in (2.5, np.float32(2.5), floats(4)):
            with self.assertRaisesRegex(ts.DTypeError, "'bitwise_and' takes integer or bool, not float"):
                ts.jit(lambda x, other=other: ts.bitwise_and(x, other)).lower(x)

    def test_eager(self):
        """Outside jit the same operations have values immediately."""
        x = floats(3, 4)
        np.testing.assert_allclose((ts.asarray(x) @ ts.asarray(x).T + 1).numpy(), x @ x.T + 1, rtol=1e-5)
        self.assertEqual((ts.asarray([1, 2, 3]) * 2).tolist(), [2, 4, 6])

    def test_half_precision(self):
        x = floats(9, 33).astype(np.float16)
        y = ts.jit(lambda x: (x.sum(1), x @ x.T, ts.softmax(x)))(ts.asarray(x))
        self.assertEqual({t.dtype for t in y}, {ts.float16})
        np.testing.assert_allclose(y[0].numpy(), x.astype(np.float32).sum(1), rtol=2e-3, atol=2e-3)
        np.testing.assert_allclose(y[1].numpy(), x.astype(np.float32) @ x.T.astype(np.float32), rtol=2e-3, atol=2e-2)

    def test_bfloat16(self):
        """With the package ml_dtypes, and without it, where arrays hold the bits."""
        core.module()  # modules imported inside a patch are removed after it
        x = floats(5, 7)
        upper = lambda a: (np.asarray(a, np.float32).view(np.uint32) >> 16 << 16).view(np.float32)
        for blocked in (False, True):
            with unittest.mock.patch.dict(sys.modules, {"ml_dtypes": None} if blocked else {}):
                t = ts.asarray(x, "bfloat16")
                self.assertIs(t.dtype, ts.bfloat16)
                np.testing.assert_allclose(t.numpy().astype(np.float32), x, rtol=2 ** -8)
                doubled = ts.jit(lambda t: (t + t, t.sum(), t.astype("float32"), ts.where(t > 0, t, 1.5)))(t)
                np.testing.assert_array_equal(doubled[0].numpy().astype(np.float32), 2 * t.numpy().astype(np.float32))
                np.testing.assert_allclose(float(doubled[1].astype("float32")), t.numpy().astype(np.float32).sum(), rtol=2 ** -7)
                np.testing.assert_array_equal(doubled[2].numpy(), upper(doubled[2].numpy()))
                self.assertEqual(doubled[3].numpy().astype(np.float32)[x <= 0].tolist(), [1.5] * int((x <= 0).sum()))


if __name__ == "__main__":
    unittest.main()
