# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Parts of networks and their gradients, written once for Tessera, PyTorch and JAX.

A workload is a function of an adapter of a library, parameters and data, and the step is its value and its gradients by the
parameters (or the function itself). Each library has its own attention, norms, convolutions and losses: those that its users call.
"""

import dataclasses
import math
import re


@dataclasses.dataclass
class Workload:
    name: str
    function: object  # of (adapter, list of parameters, *data)
    parameters: list  # shapes
    data: list  # (shape, kind), or (shape, "int32", bound)
    kind: str  # of the parameters: float32, bfloat16
    work: float  # of a step
    unit: str  # of the work: flops, bytes
    gradients: bool = True


# ---------------------------------------------------------------- Libraries

class Tessera:
    def __init__(self):
        import tessera
        from tessera import nn, ops
        self.ts, self.nn, self.ops, self.einsum, self.gelu = tessera, nn, ops, ops.einsum, lambda x: nn.gelu(x, approximate=True)
        self.relu, self.silu, self.take, self.cross_entropy = nn.relu, nn.silu, lambda table, ids: table[ids], nn.cross_entropy
        self.mean, self.sqrt, self.reshape = ops.mean, ops.sqrt, ops.reshape

    def attention(self, q, k, v):
        from tessera.nn.attention import attention
        return attention(q, k, v, causal=True)

    def layer_norm(self, x, gain, shift):
        return self.nn.functional.layer_norm(x, gain, shift)

    def rms_norm(self, x, gain):
        return self.nn.functional.rms_norm(x, gain)

    def rotate(self, x):
        half, (tokens, size) = x.shape[-1] // 2, (x.shape[1], x.shape[-1])
        cos, sin = (each.astype(kinds()[str(x.dtype)]) for each in angles(tokens, size))
        a, b = x[..., :half], x[..., half:]
        return self.ops.concat([a * cos - b * sin, a * sin + b * cos], -1)

    def convolution(self, x, w, stride=1):
        return self.ops.conv(x, w, stride=stride, padding=w.shape[2] // 2)

    def concatenate(self, parts, axis):
        return self.ops.concat(parts, axis)


class Torch:
    def __init__(self):
        import torch
        self.torch, self.f = torch, torch.nn.functional
        self.einsum, self.relu, self.silu, self.mean, self.sqrt = torch.einsum, self.f.relu, self.f.silu, torch.mean, torch.sqrt
        self.take, self.reshape, self.concatenate = lambda table, ids: self.f.embedding(ids, table), torch.reshape, torch.cat

    def gelu(self, x):
        return self.f.gelu(x, approximate="tanh")

    def cross_entropy(self, logits, y):
        return self.f.cross_entropy(logits.flatten(0, -2), y.flatten().long())

    def attention(self, q, k, v):
        q, k, v = (each.transpose(1, 2) for each in (q, k, v))
        return self.f.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=q.shape[1] != k.shape[1]).transpose(1, 2)

    def layer_norm(self, x, gain, shift):
        return self.f.layer_norm(x, gain.shape, gain, shift)

    def rms_norm(self, x, gain):
        return self.f.rms_norm(x, gain.shape, gain, 1e-6)

    def rotate(self, x):
        half = x.shape[-1] // 2
        cos, sin = (self.torch.tensor(each, dtype=x.dtype, device=x.device) for each in angles(x.shape[1], x.shape[-1]))
        a, b = x[..., :half], x[..., half:]
        return self.torch.cat([a * cos - b * sin, a * sin + b * cos], -1)

    def convolution(self, x, w, stride=1):
        return self.f.conv2d(x, w, stride=stride, padding=w.shape[2] // 2)


class Jax:
    def __init__(self):
        import jax
        self.jax, self.n = jax, jax.numpy
        self.einsum, self.relu, self.silu, self.mean, self.sqrt = self.n.einsum, jax.nn.relu, jax.nn.silu, self.n.mean, self.n.sqrt
        self.take, self.reshape, self.concatenate = lambda table, ids: table[ids], self.n.reshape, self.n.concatenate
        self.gelu = jax.nn.gelu

    def cross_entropy(self, logits, y):
        logs = self.jax.nn.log_softmax(logits.astype("float32"), -1)
        return -self.n.mean(self.n.take_along_axis(logs, y[..., None], -1))

    def attention(self, q, k, v):
        return self.jax.nn.dot_product_attention(q, k, v, is_causal=True)

    def _norm(self, x, center):
        wide = x.astype("float32")
        wide = wide - self.n.mean(wide, -1, keepdims=True) if center else wide
        return wide * self.jax.lax.rsqrt(self.n.mean(wide * wide, -1, keepdims=True) + (1e-5 if center else 1e-6))

    def layer_norm(self, x, gain, shift):
        return (self._norm(x, True) * gain + shift).astype(x.dtype)

    def rms_norm(self, x, gain):
        return (self._norm(x, False) * gain).astype(x.dtype)

    def rotate(self, x):
        half = x.shape[-1] // 2
        cos, sin = (self.n.asarray(each, x.dtype) for each in angles(x.shape[1], x.shape[-1]))
        a, b = x[..., :half], x[..., half:]
        return self.n.concatenate([a * cos - b * sin, a * sin + b * cos], -1)

    def convolution(self, x, w, stride=1):
        pad = w.shape[2] // 2
        return self.jax.lax.conv_general_dilated(x, w, (stride, stride), [(pad, pad)] * 2)


def angles(tokens, size):
    """Cosines and sines of rotary positions, (tokens, 1, size / 2)."""
    import numpy as np
    angle = np.arange(tokens)[:, None, None] * np.exp(np.arange(size // 2) * (-2 * math.log(10000) / size))
    return np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32)


def kinds():
    """NumPy's types by the names that are used here, and by ours."""
    import ml_dtypes
    import numpy as np
    return {"float32": np.float32, "f32": np.float32, "bfloat16": ml_dtypes.bfloat16, "bf16": ml_dtypes.bfloat16, "int32": np.int32}


# ---------------------------------------------------------------- Functions

def gpt_block(heads):
    def block(n, p, x):
        g1, b1, wq, wk, wv, wo, g2, b2, up, c1, down, c2 = p
        b, s, d = x.shape
        h = n.layer_norm(x, g1, b1)
        q, k, v = (n.reshape(n.einsum("bsd,de->bse", h, w), (b, s, heads, d // heads)) for w in (wq, wk, wv))
        x = x + n.einsum("bsd,de->bse", n.reshape(n.attention(q, k, v), (b, s, d)), wo)
        h = n.gelu(n.einsum("bsd,de->bse", n.layer_norm(x, g2, b2), up) + c1)
        y = x + n.einsum("bsd,de->bse", h, down) + c2
        return n.mean(y * y)
    return block


def llama_block(heads, groups):
    def block(n, p, x):
        g1, wq, wk, wv, wo, g2, gate, up, down = p
        b, s, d = x.shape
        h, e = n.rms_norm(x, g1), d // heads
        q = n.rotate(n.reshape(n.einsum("bsd,de->bse", h, wq), (b, s, heads, e)))
        k = n.rotate(n.reshape(n.einsum("bsd,de->bse", h, wk), (b, s, groups, e)))
        v = n.reshape(n.einsum("bsd,de->bse", h, wv), (b, s, groups, e))
        x = x + n.einsum("bsd,de->bse", n.reshape(n.attention(q, k, v), (b, s, d)), wo)
        h = n.rms_norm(x, g2)
        h = n.silu(n.einsum("bsd,de->bse", h, gate)) * n.einsum("bsd,de->bse", h, up)
        y = x + n.einsum("bsd,de->bse", h, down)
        return n.mean(y * y)
    return block


def entropy(n, p, y):
    return n.cross_entropy(p[0], y)


def embedding(n, p, ids, g):
    return n.mean(n.take(p[0], ids) * g)


def layer_norm(n, p, g):
    return n.mean(n.layer_norm(*p) * g)


def adamw(n, p, gradient):
    w, m, v = p
    m, v = 0.9 * m + 0.1 * gradient, 0.999 * v + 0.001 * gradient * gradient
    return [w - 3e-4 * (m / (n.sqrt(v) + 1e-8) + 0.01 * w), m, v]


def bottlenecks(n, p, x):
    """Three blocks of ResNet-50's first stage, without norms."""
    for block in range(3):
        a, b, c = p[3 * block:3 * block + 3]
        x = n.relu(x + n.convolution(n.relu(n.convolution(n.relu(n.convolution(x, a)), b)), c))
    return n.mean(x * x)


def dlrm(n, p, x, ids, y):
    """Tables of embeddings, a bottom and a top perceptron, dot products of all pairs between them."""
    tables, (w1, w2, w3, w4) = p[:-4], p[-4:]
    x = n.relu(n.einsum("bi,ij->bj", n.relu(n.einsum("bi,ij->bj", x, w1)), w2))
    rows = [x] + [n.take(table, ids[:, t]) for t, table in enumerate(tables)]
    vectors = n.reshape(n.concatenate(rows, 1), (x.shape[0], len(rows), x.shape[1]))
    pairs = n.reshape(n.einsum("bie,bje->bij", vectors, vectors), (x.shape[0], len(rows) ** 2))
    out = n.einsum("bi,ij->bj", n.relu(n.einsum("bi,ij->bj", n.concatenate([x, pairs], 1), w3)), w4)
    return n.mean((out - y) * (out - y))


def workloads(small=False):
    """All of them; `small`: for a rehearsal."""
    for kind in ("float32", "bfloat16"):
        short, size = {"float32": "f32", "bfloat16": "bf16"}[kind], {"float32": 4, "bfloat16": 2}[kind]
        b, s, d, heads = (2, 16, 32, 2) if small else (8, 1024, 768, 12)
        products = 6 * b * s * d * 12 * d + 7 * b * s * s * d  # forward and backward; half of the scores are visible
        yield Workload(f"GPT-2 block with gradients {short}", gpt_block(heads),
                       [(d,), (d,), *[(d, d)] * 4, (d,), (d,), (d, 4 * d), (4 * d,), (4 * d, d), (d,)], [((b, s, d), kind)], kind, products, "flops")
        b, s, d, heads, groups, f = (2, 16, 32, 4, 2, 48) if small else (4, 2048, 2048, 16, 4, 5632)
        keys = d * groups // heads
        products = 6 * b * s * (2 * d * d + 2 * d * keys + 3 * d * f) + 7 * b * s * s * d
        yield Workload(f"Llama block with gradients {short}", llama_block(heads, groups),
                       [(d,), (d, d), (d, keys), (d, keys), (d, d), (d,), (d, f), (d, f), (f, d)], [((b, s, d), kind)], kind, products, "flops")
        rows, words = (16, 67) if small else (8192, 50257)
        yield Workload(f"cross entropy of {words} columns with gradient {short}", entropy, [(rows, words)], [((rows,), "int32", words)], kind,
                       3 * rows * words * size, "bytes")
    words, d, ids = (67, 16, 32) if small else (50257, 768, 8192)
    yield Workload("embedding with gradient f32", embedding, [(words, d)], [((ids,), "int32", words), ((ids, d), "float32")], "float32",
                   4 * (words + 2 * ids) * d, "bytes")
    rows, d = (32, 64) if small else (8192, 4096)
    yield Workload("layer norm with gradients f32", layer_norm, [(rows, d), (d,), (d,)], [((rows, d), "float32")], "float32", 4 * 3 * rows * d, "bytes")
    n = 4096 if small else 2**26
    yield Workload("AdamW of 64 Mi f32", adamw, [(n,)] * 3, [((n,), "float32")], "float32", 4 * 7 * n, "bytes", gradients=False)
    b, e = (2, 8) if small else (64, 56)
    layers = [(64, 256, 1, 1), (64, 64, 3, 3), (256, 64, 1, 1)] * 3
    yield Workload("ResNet-50's first stage with gradients f32", bottlenecks, layers, [((b, 256, e, e), "float32")], "float32",
                   6 * b * e * e * sum(math.prod(each) for each in layers), "flops")
    b, tables, rows, d = (8, 3, 50, 16) if small else (8192, 8, 1000000, 64)
    top = d + (tables + 1) ** 2
    yield Workload("DLRM with gradients f32", dlrm, [(rows, d)] * tables + [(13, 256), (256, d), (top, 256), (256, 1)],
                   [((b, 13), "float32"), ((b, tables), "int32", rows), ((b, 1), "float32")], "float32", 4 * tables * (rows + 3 * b) * d, "bytes")


# ---------------------------------------------------------------- Programs and steps

def arrays(numpy, workload, make):
    """Parameters and data; make: an array of (shape, kind, bound or None)."""
    return ([make(shape, workload.kind, None) for shape in workload.parameters],
            [make(shape, kind, *(bound or [None])) for shape, kind, *bound in workload.data])


def program(workload):
    """The step as a `Program` of the Python package, with the range of indices."""
    import numpy as np
    n = Tessera()
    parameters, data = arrays(np, workload, lambda shape, kind, bound: np.zeros(shape, kinds()[kind]))

    def step(p, *rest):
        if not workload.gradients:
            return workload.function(n, p, *rest)
        return n.ts.value_and_grad(lambda q, *r: workload.function(n, q, *r))(p, *rest)

    return with_bounds(n.ts.jit(step).lower(parameters, *data), [bound[0] for _, _, *bound in workload.data if bound])


def with_bounds(made, bounds):
    """A `Program` whose arguments of i32 are indices below these bounds, for random values."""
    bounds = iter(bounds)
    head, rest = made.mlir.split("func.func @main(", 1)
    end = rest.index("->")
    signature = re.sub(r"(tensor<[\dx]+xi32>)( \{)?", lambda match: f"{match[1]} {{dist.range = [0, {next(bounds) - 1}]"
                       + (", " if match[2] else "}"), rest[:end])
    made.mlir = f"{head}func.func @main({signature}{rest[end:]}"
    return made


def torch_step(workload, compile_):
    """A call that runs a step, and the library. compile_: False, True, or a mode of torch.compile. Values are in [-1, 1), as ours:
    how many of their bits change decides how fast a product may run within the power of a GPU."""
    n = Torch()
    torch = n.torch
    torch.set_float32_matmul_precision("highest")
    torch.backends.cudnn.allow_tf32 = False  # convolutions of f32 are f32, as ours

    def make(shape, kind, bound):
        return torch.randint(0, bound, shape, device="cuda") if bound else (2 * torch.rand(shape, device="cuda") - 1).to(getattr(torch, kind))
    parameters, data = arrays(None, workload, make)
    function = lambda p, *rest: workload.function(n, p, *rest)  # noqa: E731
    if compile_:
        function = torch.compile(function, mode=None if compile_ is True else compile_)
    if not workload.gradients:
        return lambda: function(parameters, *data), torch
    for each in parameters:
        each.requires_grad_()

    def step():
        value = function(parameters, *data)
        return value, torch.autograd.grad(value, parameters)
    return step, torch


def jax_step(workload):
    n = Jax()
    jax = n.jax
    jax.config.update("jax_default_matmul_precision", "highest")  # otherwise it uses TF32
    key = jax.random.PRNGKey(0)

    def make(shape, kind, bound):
        return jax.random.randint(key, shape, 0, bound) if bound else jax.random.uniform(key, shape, minval=-1).astype(kind)
    parameters, data = arrays(None, workload, make)
    function = lambda p, *rest: workload.function(n, p, *rest)  # noqa: E731
    step = jax.jit(jax.value_and_grad(function) if workload.gradients else function)
    return lambda: step(parameters, *data), jax
