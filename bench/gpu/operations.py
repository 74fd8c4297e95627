# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Single operations with every scheme of GPU kernels, for the comparison with the CPU's values: the sizes lie around those of tiles."""

import workloads


def _written(function, shapes):
    """A function of arrays as a program; shapes: (shape, type), or (shape, "int32", bound)."""
    import numpy as np
    import tessera
    kinds = workloads.kinds()
    arrays = [np.zeros(shape, kinds[kind]) for shape, kind, *_ in shapes]
    made = workloads.with_bounds(tessera.jit(function).lower(*arrays), [bound[0] for _, _, *bound in shapes if bound])
    return made.lower("normalized")  # with derivatives as operations


def operations():
    """Names and texts."""
    n = workloads.Tessera()
    ops, nn = n.ops, n.nn

    def attention(causal, gradients):
        from tessera.nn.attention import attention as of

        def value(q, k, v):
            y = of(q, k, v, causal=causal)
            return n.ts.ops.mean(y * y)

        def call(q, k, v):
            if gradients:
                return n.ts.value_and_grad(lambda three: value(*three))([q, k, v])
            return of(q, k, v, causal=causal)
        return call

    for kind in ("float32", "bfloat16"):
        for causal in (False, True):
            for gradients in (False, True):
                for b, s, h, g, e in ((2, 197, 4, 2, 64), (1, 130, 3, 3, 128), (2, 64, 2, 2, 40)):
                    yield (f"attention {b}x{s}x{h}/{g}x{e} {kind}{', causal' * causal}{', gradients' * gradients}",
                           lambda f=attention(causal, gradients): f,
                           [((b, s, h, e), kind), ((b, s, g, e), kind), ((b, s, g, e), kind)])
    yield "attention of one query", lambda: attention(False, False), [((2, 1, 4, 64), "float32")] + [((2, 3001, 4, 64), "float32")] * 2
    for rows, columns in ((64, 32), (3, 1793), (2, 5000), (1, 100003)):
        yield f"sort {rows}x{columns}", lambda: lambda x: (ops.sort(x, -1), ops.argsort(x, -1)), [((rows, columns), "float32")]
    yield "sort of columns", lambda: lambda x: ops.sort(x, 0), [((2500, 5), "float32")]
    for k, columns in ((8, 50257), (449, 9000)):
        yield f"top {k} of {columns}", lambda k=k: lambda x: ops.top_k(x, k), [((4, columns), "float32")]
    for shape in ((7, 1000), (2, 70001), (300, 3)):
        yield f"cumulative sum {shape}", lambda: lambda x: ops.cumulative_sum(x, axis=-1), [(shape, "float32")]
        yield f"cumulative max {shape}", lambda: lambda x: ops.cumulative_max(x, axis=0), [(shape, "float32")]
    for kind in ("float32", "bfloat16"):
        for rows, columns in ((64, 7), (33, 1021), (8, 50257), (4000, 768), (1, 1000003), (100003, 5)):
            yield f"softmax {rows}x{columns} {kind}", lambda: lambda x: ops.softmax(x, axis=-1), [((rows, columns), kind)]
            yield (f"layer norm {rows}x{columns} {kind}, gradients",
                   lambda: lambda x, w, b: n.ts.value_and_grad(lambda p: ops.mean(n.layer_norm(*p) * x))([x, w, b]),
                   [((rows, columns), kind), ((columns,), kind), ((columns,), kind)])
            yield f"sums {rows}x{columns} {kind}", lambda: lambda x: (
                ops.sum(x, axis=0), ops.sum(x, axis=1), ops.max(x), ops.argmax(x, axis=-1)), [((rows, columns), kind)]
            yield f"moved {rows}x{columns} {kind}", lambda: lambda x: (
                ops.matrix_transpose(x), ops.flip(x, axis=-1), ops.roll(x, 3, axis=0), ops.concat([x, x + 1], -1)), [((rows, columns), kind)]
    yield "transposes", lambda: lambda x: (ops.permute_dims(x, (2, 1, 0)), ops.permute_dims(x, (0, 2, 1)), ops.permute_dims(x, (1, 0, 2))), [
        ((66, 35, 130), "float32")]
    for words, d, ids in ((50, 40, 700), (50257, 64, 300), (7, 3, 50000)):
        yield f"look-up and its gradient {words}x{d}, {ids}", lambda: lambda t, i, g: n.ts.value_and_grad(
            lambda t: ops.mean(n.take(t, i) * g))(t), [((words, d), "float32"), ((ids,), "int32", words), ((ids, d), "float32")]
        yield f"maxima of segments {words}x{d}, {ids}", lambda words=words: lambda i, g: ops.segment_max(g, i, words), [
            ((ids,), "int32", words), ((ids, d), "float32")]
    for kind in ("float32", "bfloat16"):
        for stride, channels, size, taps in ((1, 64, 28, 3), (2, 32, 29, 3), (1, 48, 14, 1), (2, 3, 56, 7)):
            yield (f"convolution of {channels} by {stride} {taps}x{taps} {kind}, gradients",
                   lambda stride=stride: lambda x, w: n.ts.value_and_grad(lambda p: ops.mean(n.convolution(*p, stride=stride)
                                                                                            * n.convolution(*p, stride=stride)))([x, w]),
                   [((4, channels, size, size), kind), ((64, channels, taps, taps), kind)])
        for a, b, c in ((33, 65, 129), (1, 4096, 512), (512, 512, 512), (200, 1000, 8)):
            yield f"products {a}x{b}x{c} {kind}", lambda: lambda x, y: (ops.matmul(x, y), nn.gelu(ops.matmul(x, y), approximate=True)), [
                ((a, b), kind), ((b, c), kind)]
        yield f"batches of products {kind}", lambda: lambda x, y: (n.einsum("bshe,bthe->bhst", x, y), n.einsum("bshe,bthe->hst", x, y)), [
            ((2, 33, 4, 16), kind)] * 2
    yield "max pool, gradients", lambda: lambda x: n.ts.value_and_grad(lambda x: ops.mean(ops.max_pool(x, 2, stride=2) ** 2))(x), [
        ((4, 8, 32, 32), "float32")]


def timed(small=False):
    """Name, work of a step in bytes, text of single operations that are timed; programs.PEERS has the same for torch and JAX."""
    from tessera import ops
    n, rows, words = (2**12, 64, 300) if small else (2**22, 8192, 50257)
    for name, size, function, shape in (
            ("sort 4 Mi f32", 2 * 4 * n, lambda x: ops.sort(x, -1), (n,)),
            ("first 8 of 64x50257 f32", 4 * 64 * words, lambda x: ops.top_k(x, 8), (64, words)),
            ("cumulative sum 8192x8192 f32", 2 * 4 * rows * rows, lambda x: ops.cumulative_sum(x, axis=-1), (rows, rows)),
            ("sums of columns 8192x8192 f32", 4 * rows * rows, lambda x: ops.sum(x, axis=0), (rows, rows)),
            ("transpose + 1 8192x8192 f32", 2 * 4 * rows * rows, lambda x: ops.matrix_transpose(x) + 1, (rows, rows))):
        yield name, size, _written(function, [(shape, "float32")])


def roundings_of(name):
    """How many roundings decide the tolerance of a program: attention of 16-bit floats rounds its weights before the second product
    on a GPU, as FlashAttention does, and the sum."""
    return 2 if name.startswith("attention") and "bfloat16" in name else 1


def texts():
    """(name, text, options of the compiler) of each; of one that the package cannot write, (name, the error, None)."""
    for name, make, shapes in operations():
        try:
            yield name, _written(make(), shapes), []
        except Exception as error:  # says which part of the command is left out
            yield name, f"{type(error).__name__}: {error}", None
