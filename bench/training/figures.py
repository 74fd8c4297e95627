# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The figures of docs/training.md, one function per part: figures.py PART..."""

import contextlib
import importlib
import io
import itertools
import os
import subprocess
import sys
import time

import numpy as np

import tessera as ts
from tessera import DistributedDataParallel, ProcessMesh, Replicate, Shard, nn, optim, shard_tensor, tree
from tessera.testing import difference

ROOT = os.environ["TESSERA_ROOT"]
MESHES = ("1", "2", "3", "2x4", "8")


def row(*cells):
    print("| " + " | ".join(map(str, cells)) + " |", flush=True)


def distance(a, b):
    """The greatest distance of two trees, over the root mean square of each tensor."""
    worst = 0.0
    for x, y in zip(tree.flatten(a)[0], tree.flatten(b)[0]):
        x, y = np.asarray(x.value, np.float64), np.asarray(y.value, np.float64)
        worst = max(worst, float(np.abs(x - y).max(initial=0) / max(1e-30, np.sqrt((y * y).mean()))))
    return worst


def examples():
    """Every example, 50 steps on each mesh against one device."""
    sys.path.insert(0, os.path.join(ROOT, "examples/python"))
    import common
    train = common.train

    def compared(build, options):
        model, _ = common.fit(build, True, options, False)
        alone, _ = common.fit(build, False, options, False)
        values = dict(common.flat(model))
        wrong = [name for name, value in common.flat(alone) if difference(values[name], value, options.steps)]
        compared.distance = distance([values[name] for name, _ in common.flat(alone)], [v for _, v in common.flat(alone)])
        compared.wrong = wrong
        return model
    common.train = compared
    small = {"mlp": "--hidden 64 --inner 128 --length 8", "convnet": "--batch 48", "gpt": "--features 32 --length 16 --batch 24 --layers 2",
             "softmax": "--classes 500 --batch 24 --inputs 12 --features 18", "image": "--size 24 --channels 3"}
    row("example", *(f"{m} devices" for m in MESHES))
    row(*["---"] * (1 + len(MESHES)))
    for name, arguments in small.items():
        for form in (("data", "tensor", "stages", "hybrid") if name == "mlp" else (None,)):
            cells = []
            for mesh in MESHES:
                devices = {"1": "1", "2": "2", "3": "3x1", "2x4": "2x4", "8": "8x1"}[mesh] if name == "image" else mesh
                sys.argv = [name, "--steps", "50", "--devices", devices, *arguments.split(), *(["--form", form] if form else [])]
                with contextlib.redirect_stdout(io.StringIO()):
                    importlib.import_module(name).main()
                cells.append("differs: " + compared.wrong[0] if compared.wrong else f"{compared.distance:.1e}")
            row(f"{name} {form}" if form else name, *cells)
    common.train = train


def loss(model, x, y):
    return nn.mse_loss(model(x), y)


def accumulation():
    """Gradients of DistributedDataParallel on N processes against N micro-batches on one."""
    random = np.random.default_rng(0)
    x, y = random.standard_normal((48, 32)).astype("float32"), random.standard_normal((48, 8)).astype("float32")

    def model(norm):
        nn.init.seed(0)
        return nn.Sequential(nn.Linear(32, 64), *([nn.BatchNorm(64)] if norm else []), nn.gelu, nn.Linear(64, 8))
    gradient = ts.value_and_grad(loss)
    row("N", "distance of gradients", "with batch normalization", "collectives")
    row(*["---"] * 4)
    for n in (2, 3, 4, 8):
        cells = []
        for norm in (False, True):
            whole = ts.jit(lambda net, x, y: gradient(net, x, y)[1])
            parts = ts.jit(lambda net, x, y: optim.accumulated(gradient, n)(net, x, y)[1])
            wrapped = DistributedDataParallel(model(norm), ProcessMesh(range(n), ["dp"]))
            cells.append(distance(whole(wrapped, x, y).module, parts(model(norm), x, y)))
            if not norm:
                kinds = [c["kind"] for c in whole.explain(wrapped, x, y)["collectives"]]
        row(n, f"{cells[0]:.1e}", f"{cells[1]:.1e}", ", ".join(kinds))


def gradients():
    """Every operation against central differences of fourth order in f64."""
    import op_gradients
    worst, count = {}, 0

    class Recording(op_gradients.Gradients):
        def assertLess(self, value, bound, what):
            worst[what] = 1e-6 * value / bound
    for cases, x, y, placements in ((op_gradients.ELEMENTWISE, op_gradients.X, op_gradients.Y, [Shard(0), Shard(1)]),
                                    (op_gradients.OTHERS, op_gradients.X, op_gradients.Y, [Shard(1), Shard(0)]),
                                    (op_gradients.WINDOWS, op_gradients.IMAGE, op_gradients.WEIGHT, [Shard(0), Shard(2)])):
        Recording().check(cases, x, y, placements)
        count += len(cases)
    name = max(worst, key=worst.get)
    row("operations", "worst relative distance", "where")
    row(*["---"] * 3)
    row(count, f"{worst[name]:.1e}", name)


def plans():
    """A training step of a GPT block, differentiated here and by JAX."""
    import plans as of
    from jax.sharding import PartitionSpec as P
    from jax_case import array, jax
    row("mesh", "here: collectives, bytes", "JAX's derivative: collectives, bytes")
    row(*["---"] * 3)
    for names, extents in ((("dp", "tp"), (2, 4)), (("tp",), (4,)), (("dp",), (4,))):
        spec = {n: P(*["tp" if d == of.CUTS.get(n) and "tp" in names else None for d in range(len(s))]) for n, s in of.SHAPES.items()}
        rows = P("dp") if "dp" in names else P()
        data = array(of.B, of.S, of.D)
        theirs = ts.from_jax(of.jax_step, ({n: array(*s) for n, s in of.SHAPES.items()}, data, data), (spec, rows, rows),
                             mesh=jax.sharding.AbstractMesh(extents, names)).explain()
        own = ProcessMesh(np.arange(np.prod(extents)).reshape(extents), names)
        place = lambda shape, cut: ts.spec(shape, "float32", own, [Shard(cut[n]) if n in cut else Replicate() for n in names])
        placed = {n: place(s, {"tp": of.CUTS[n]} if n in of.CUTS else {}) for n, s in of.SHAPES.items()}
        ours = ts.explain(of.our_step, placed, *[place((of.B, of.S, of.D), {"dp": 0})] * 2)
        row("x".join(map(str, extents)) + " " + ", ".join(names), *(f"{r['collective_count_total']}, {r['wire_bytes_total']}" for r in (ours, theirs)))


def tracing():
    """Recording and differentiating a GPT: Python, and the pass."""
    sys.path.insert(0, os.path.join(ROOT, "examples/python"))
    import gpt
    row("layers", "recorded in Python, CPU s", "with dist-autodiff, CPU s", "operations")
    row(*["---"] * 4)
    for layers in (12, 48, 48):  # the first one warms up
        with nn.LazyGuard():
            model = gpt.GPT(256, 128, 256, 4, layers)
        tokens = ts.spec((8, 128), "int64")

        def step(model, x, y):
            return ts.value_and_grad(lambda model, x, y: nn.cross_entropy(model(x), y))(model, x, y)
        begin = time.process_time()
        program = ts.jit(step).lower(model, tokens, tokens)
        recorded = time.process_time() - begin
        text = program.lower("input")
        both = time.process_time() - begin
        row(layers, f"{recorded:.2f}", f"{both:.2f}", text.count(" = "))


def imports():
    """Imports tessera, numpy, torch and jax in one process, in every order, and uses each."""
    use = ("import numpy as np, tessera as ts\n"
           "x = np.ones((2, 3), np.float32)\n"
           "assert ts.jit(lambda x: (x @ x.T).sum())(x).item() == 12\n")
    names = ["tessera", "numpy"]
    for name, code in (("torch", "import torch\nassert ts.from_torch(torch.nn.Linear(3, 2), (torch.ones(2, 3),))(x).shape == (2, 2)\n"),
                       ("jax", "import jax, jax.numpy as jnp\nassert ts.from_jax(lambda x: jnp.sum(x), (x,))(x) == 6\n")):
        if importlib.util.find_spec(name):
            names.append(name)
            use += code
    good = 0
    for order in itertools.permutations(names):
        code = "".join(f"import {name}\n" for name in order) + use
        done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True)
        good += done.returncode == 0
        if done.returncode:
            print(", ".join(order), done.stderr.splitlines()[-1])
    print(f"{good} of {len(list(itertools.permutations(names)))} orders of {', '.join(names)} work")


def memory():
    """The documents' perceptron (1024, 4096, 1024; batch 4 x 128; AdamW): the estimate, and the arena."""
    row("placement", "weights", "gradients", "moments", "activations", "estimate", "arena", "distance")
    row(*["---"] * 8)

    class MLP(nn.Module):
        def __init__(self):
            super().__init__()
            self.w0, self.w1 = nn.init.fan_in((1024, 4096), 1024), nn.init.fan_in((4096, 1024), 4096)

        def forward(self, x):
            return nn.relu(x @ self.w0) @ self.w1
    for title, n, cuts, data, level in (("one device", 1, None, None, 0), ("data parallel, 4", 4, None, Shard(0), 0), ("ZeRO-1, 4", 4, None, Shard(0), 1),
                                        ("tensor parallel, 4", 4, {"w0": Shard(1), "w1": Shard(0)}, None, 0), ("ZeRO-3, 4", 4, {"w0": Shard(0), "w1": Shard(0)}, Shard(0), 0)):
        mesh = ProcessMesh(range(n), ["x"])
        with nn.LazyGuard():
            net = optim.shard_parameters(MLP(), mesh, lambda name, p: [cuts[name]] if cuts else None)
        optimizer = ts.shard_optimizer(optim.AdamW(1e-3), level=level)
        x, y = [ts.spec((4, 128, 1024), "float32", mesh, [data] if data else []) for _ in range(2)]

        def step(net, state, x, y):
            value, gradients = ts.value_and_grad(loss)(net, x, y)
            return *optimizer.update(net, gradients, state), value
        found = ts.memory_estimate(step, net, optimizer.init(net), x, y)
        mb = lambda key: f"{found[key] / 1e6:.1f}"
        row(title, *map(mb, ("parameters", "gradients", "states", "activations", "estimate", "arena")),
            f"{100 * (found['estimate'] / found['arena'] - 1):+.1f} %")


PARTS = {f.__name__: f for f in (examples, accumulation, gradients, plans, tracing, imports, memory)}

if __name__ == "__main__":
    for part in sys.argv[1:] or PARTS:
        if part not in PARTS:
            sys.exit(f"error: there is no part '{part}'; there are {', '.join(PARTS)}")
        print(f"\n{part}: {PARTS[part].__doc__.splitlines()[0]}\n", flush=True)
        PARTS[part]()
