# RUN: %tessera_python %s
# REQUIRES: tessera-core
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The derivative of every operation of floats against central differences in f64: relative 1e-6, on one device and cut."""

import unittest

import numpy as np

import tessera as ts
from tessera import ProcessMesh, Shard, nn, ops, shard_tensor
from tessera.nn import functional as F

R = np.random.default_rng(0)
X, Y = R.uniform(0.2, 0.9, (5, 6)), R.uniform(0.2, 0.9, (5, 6))
I, T, S = R.integers(0, 5, (4,)), R.integers(0, 6, (5,)), np.array([1, 0, 2, 1, -1])
IMAGE, WEIGHT = R.standard_normal((2, 4, 7, 6)), R.standard_normal((6, 2, 3, 2))

ELEMENTWISE = {n: (lambda x, y, f=getattr(ops, n): f(x)) for n in (
    "exp", "expm1", "log", "log1p", "log2", "log10", "sqrt", "rsqrt", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh",
    "asinh", "atanh", "erf", "abs", "negative", "square", "sigmoid")}
ELEMENTWISE |= {n: getattr(ops, n) for n in ("add", "subtract", "multiply", "divide", "maximum", "minimum", "pow", "atan2", "copysign", "hypot")}
ELEMENTWISE |= {
    "acosh": lambda x, y: ops.acosh(x + 1), "pow 3": lambda x, y: x ** 3, "pow -2": lambda x, y: x ** -2, "clip": lambda x, y: ops.clip(x, 0.3, 0.7),
    "where": lambda x, y: ops.where(x > y, x * x, y), "relu": lambda x, y: nn.relu(x - 0.5), "gelu": lambda x, y: nn.gelu(x),
    "gelu tanh": lambda x, y: nn.gelu(x, True), "silu": lambda x, y: nn.silu(x), "softplus": lambda x, y: F.softplus(x), "leaky": lambda x, y: F.leaky_relu(x - 0.5),
    "row": lambda x, y: x * y[0], "column": lambda x, y: x / y[:, :1]}
OTHERS = {n: (lambda x, y, f=getattr(ops, n): f(x * y, 1)) for n in ("sum", "mean", "max", "min", "prod", "var", "std", "softmax", "log_softmax", "logsumexp",
                                                                  "cumulative_sum", "cumulative_prod", "sort")}
OTHERS |= {
    "sum all": lambda x, y: ops.sum(x * y), "max 0": lambda x, y: ops.max(x, 0, keepdims=True), "reshape": lambda x, y: x.reshape(3, 10) * 2,
    "T": lambda x, y: x.T @ y, "matmul": lambda x, y: x @ y.T, "vector": lambda x, y: x @ y[0], "einsum": lambda x, y: ops.einsum("ij,ik,i->jk", x, y, x[:, 0]),
    "outer": lambda x, y: ops.outer(x[0], y[1]), "concat": lambda x, y: ops.concat([x, y * y], 1), "stack": lambda x, y: ops.stack([x, y], 1),
    "split": lambda x, y: ops.split(x, [2, 4], 1)[1] * 3, "tile": lambda x, y: ops.tile(x, (2, 1)), "flip": lambda x, y: ops.flip(x, 1) * y,
    "pad": lambda x, y: ops.pad(x, [(1, 0), (0, 2)], 1.5), "tril": lambda x, y: ops.tril(x), "broadcast": lambda x, y: ops.broadcast_to(x[:1], (4, 6)) * 2,
    "slice": lambda x, y: x[1:4, ::2], "reverse": lambda x, y: x[::-1] * y, "take": lambda x, y: ops.take(x, I), "along": lambda x, y: ops.take_along_axis(x, T[:, None], 1),
    "take_at": lambda x, y: x[I, T[:4]] * y[0, 0], "put": lambda x, y: ops.put_at(x, [I], y[:4]), "put add": lambda x, y: ops.put_at(x, [I], y[:4], mode="add"),
    "put along": lambda x, y: ops.put_along_axis(x, T[:, None], y[:, :1], 1), "top_k": lambda x, y: ops.top_k(x * y, 2, 1)[0],
    "roll": lambda x, y: ops.roll(x, 2, 1) * y, "repeat": lambda x, y: ops.repeat(x, 2, 0) * 3, "diagonal": lambda x, y: ops.diagonal(x * y),
    "triu": lambda x, y: ops.triu(x, 1), "moveaxis": lambda x, y: ops.moveaxis(x, 0, 1) * y.T, "expand_dims": lambda x, y: ops.expand_dims(x, 1) * y,
    "squeeze": lambda x, y: ops.squeeze(x[:, 2:3]) * y[:, 0], "flatten": lambda x, y: ops.flatten(x) * 2, "vecdot": lambda x, y: ops.vecdot(x, y),
    "tensordot": lambda x, y: ops.tensordot(x, y, 2), "swapaxes": lambda x, y: ops.swapaxes(x, 0, 1) @ y, "permute_dims": lambda x, y: ops.permute_dims(x, (1, 0)) * y.T,
    "matrix_transpose": lambda x, y: ops.matrix_transpose(x) * 2, "remainder": lambda x, y: ops.remainder(x, 0.15) + y, "floor_divide": lambda x, y: x // 0.15 + y,
    "rounded": lambda x, y: ops.floor(x) + ops.ceil(x) + ops.trunc(x) + ops.round(x * 0.4) + ops.sign(x) * y, "astype": lambda x, y: x.astype("float32").astype("float64") * 0 + y,
    "stop": lambda x, y: ops.stop_gradient(ops.floor(x)) * y, "constrained": lambda x, y: ops.reshape(x, (6, 5)) * ops.ones_like(y.T),
    "layer_norm": lambda x, y: F.layer_norm(x, y[0], y[1]), "rms_norm": lambda x, y: F.rms_norm(x, y[0]), "mse": lambda x, y: nn.mse_loss(x, y),
    "cross_entropy": lambda x, y: nn.cross_entropy(x * 5, T),
    **{f"put {mode}": lambda x, y, m=mode: ops.put_at(x, [I], y[:4], mode=m) for mode in ("mul", "max", "min")},
    **{f"put along {mode}": lambda x, y, m=mode: ops.put_along_axis(x, T[:, None], y[:, :1], 1, m) for mode in ("add", "mul", "max", "min")},
    "apply_at": lambda x, y: ops.apply_at(x, lambda v: v * v, [I]) * y, "segment_sum": lambda x, y: ops.segment_sum(x * y, S, 4),
    "segment_prod": lambda x, y: ops.segment_prod(x * y, S, 4), "segment_max": lambda x, y: ops.segment_max(x * y, S, 3), "segment_min": lambda x, y: ops.segment_min(x * y, S, 3),
    "dynamic_slice": lambda x, y: ops.dynamic_slice(x, [I[0], T[1]], [2, 3]) * y[0, 0],
    "dynamic_update_slice": lambda x, y: ops.dynamic_update_slice(x, y[:2, :3], [I[0], T[1]]), "cumulative_max": lambda x, y: ops.cumulative_max(x * y, 1)[0],
    "cumulative_min": lambda x, y: ops.cumulative_min(x * y, 0)[0], "cumulative_logsumexp": lambda x, y: ops.cumulative_logsumexp(x * y, 1)}
WINDOWS = {
    "conv": lambda x, y: ops.conv(x, y, None, 1, 1, 1, 2), "conv stride": lambda x, y: ops.conv(x, y, None, 2, [(1, 0), (0, 1)], 1, 2),
    "conv dilation": lambda x, y: ops.conv(x, y, None, 1, 2, 2, 2), "max_pool": lambda x, y: ops.max_pool(x, 2), "max_pool 3": lambda x, y: ops.max_pool(x, 3, 2, 1),
    "conv_transpose": lambda x, y: ops.conv_transpose(x, y[:4], None, (2, 1), (1, 0), (1, 0), 1, 2),
    "max_pool dilation": lambda x, y: ops.max_pool(x, 2, 1, 0, 2), "sum_pool": lambda x, y: ops.sum_pool(x, 2, 1),
    "avg_pool": lambda x, y: ops.avg_pool(x, (3, 2), (2, 1))}


class Gradients(unittest.TestCase):
    def check(self, cases, x, y, placements):
        def scalar(name):
            return lambda x, y: ops.sum(ops.sin(cases[name](x, y) * 1.5))
        dx, dy = R.standard_normal(x.shape), R.standard_normal(y.shape)

        @ts.jit
        def analytic(x, y, dx, dy):
            result = {}
            for name in cases:
                gx, gy = ts.grad(scalar(name), (0, 1))(x, y)
                result[name] = ops.sum(gx * dx) + ops.sum(gy * dy)
            return result
        values = ts.jit(lambda x, y: {name: scalar(name)(x, y) for name in cases})
        e = 1e-4
        at = {k: values(x + k * e * dx, y + k * e * dy) for k in (-2, -1, 1, 2)}
        mesh = ProcessMesh([[0, 1, 2], [3, 4, 5]], ["a", "b"])
        whole, cut = analytic(x, y, dx, dy), analytic(*[shard_tensor(v, mesh, placements) for v in (x, y)], dx, dy)
        for name in cases:
            central = (8 * (at[1][name].item() - at[-1][name].item()) - (at[2][name].item() - at[-2][name].item())) / (12 * e)
            for kind, found in (("whole", whole), ("cut", cut)):
                self.assertLess(abs(found[name].item() - central), 1e-6 * max(1, abs(central)), f"{name}, {kind}")

    def test_elementwise(self):
        self.check(ELEMENTWISE, X, Y, [Shard(0), Shard(1)])

    def test_others(self):
        self.check(OTHERS, X, Y, [Shard(1), Shard(0)])

    def test_windows(self):
        self.check(WINDOWS, IMAGE, WEIGHT, [Shard(0), Shard(2)])

    def test_all(self):
        """Every operation of floats is above; the others make tensors, integers or bool, or move between meshes."""
        others = {"all", "any", "arange", "argmax", "argmin", "argsort", "bitwise_and", "bitwise_left_shift", "bitwise_or", "bitwise_right_shift",
                  "bitwise_xor", "searchsorted", "equal", "eye", "full", "full_like",
                  "greater", "greater_equal", "iota", "isfinite", "isinf", "isnan", "less", "less_equal", "linspace", "logical_and", "logical_not",
                  "logical_or", "logical_xor", "not_equal", "one_hot", "ones", "zeros", "zeros_like", "reshard", "unshard"}
        with open(__file__) as file:
            text = file.read()
        for name in ops.__all__:
            if name not in others:
                self.assertRegex(text, rf'[."]{name}["(]', name)


if __name__ == "__main__":
    unittest.main()
