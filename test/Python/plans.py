# RUN: %tessera_python %s
# REQUIRES: jax
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Plans of training steps. A GPT block: differentiated here it communicates no more than differentiated by JAX, and computes the
same. A recurrence both ways, written out: one collective."""

import unittest

import numpy as np
from jax.sharding import PartitionSpec as P

import tessera as ts
from jax_case import JaxCase, array, jax, jnp
from tessera import ProcessMesh, Replicate, Shard, nn, ops, shard_tensor

D, H, S, B = 16, 4, 6, 4
SHAPES = dict(g1=(D,), b1=(D,), q=(D, H, D // H), k=(D, H, D // H), v=(D, H, D // H), o=(H, D // H, D), g2=(D,), b2=(D,), up=(D, 4 * D), ub=(4 * D,),
              down=(4 * D, D), db=(D,))
CUTS = dict(q=1, k=1, v=1, o=0, up=1, ub=0, down=0)


def block(np_, einsum, softmax, gelu, norm, p, x):
    h = norm(x, p["g1"], p["b1"])
    q, k, v = [einsum("bse,ehd->bshd", h, p[n]) for n in "qkv"]
    scores = einsum("bqhd,bkhd->bhqk", q, k) / np.sqrt(D // H).item()
    scores = np_.where(np.tril(np.ones((S, S), bool)), scores, -np.inf)
    x = x + einsum("bshd,hde->bse", einsum("bhqk,bkhd->bqhd", softmax(scores), v), p["o"])
    return x + gelu(norm(x, p["g2"], p["b2"]) @ p["up"] + p["ub"]) @ p["down"] + p["db"]


def jax_step(p, x, y):
    def norm(x, g, b):
        d = x - x.mean(-1, keepdims=True)
        return d * jax.lax.rsqrt((d * d).mean(-1, keepdims=True) + 1e-5) * g + b

    def loss(p):
        z = block(jnp, jnp.einsum, jax.nn.softmax, lambda x: jax.nn.gelu(x, approximate=False), norm, p, x)
        return jnp.mean((z - y) ** 2)
    value, gradients = jax.value_and_grad(loss)(p)
    return jax.tree.map(lambda p, g: p - 0.1 * g, p, gradients), value


def our_step(p, x, y):
    value, gradients = ts.value_and_grad(lambda p: nn.mse_loss(block(ops, ops.einsum, ops.softmax, nn.gelu, nn.functional.layer_norm, p, x), y))(p)
    return {n: p[n] - 0.1 * gradients[n] for n in p}, value


def recurrence(x, w, u, reverse):
    """States of an LSTM, time by time."""
    z, steps = x @ w.T, x.shape[1]
    h = c = jnp.zeros((x.shape[0], u.shape[1]))
    states = [None] * steps
    for t in reversed(range(steps)) if reverse else range(steps):
        i, f, g, o = jnp.split(z[:, t] + h @ u.T, 4, -1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = states[t] = jax.nn.sigmoid(o) * jnp.tanh(c)
    return jnp.stack(states, 1)


def both_ways(p, tokens, labels):
    x = p["e"][tokens]
    h = jnp.concatenate([recurrence(x, p["w"], p["u"], False), recurrence(x, p["v"], p["s"], True)], -1).mean(1)
    return -jnp.take_along_axis(jax.nn.log_softmax(h @ p["o"].T), labels[:, None], 1).mean()


class Plans(JaxCase):
    def test_recurrence(self):
        # The features of the small products can be cut, too, with messages in each of the six steps. The least bytes are not the
        # least time: these would be 21 collectives.
        shapes = dict(e=(1000, 64), w=(256, 64), u=(256, 64), v=(256, 64), s=(256, 64), o=(10, 128))
        p, tokens, labels = {n: array(*s) for n, s in shapes.items()}, array(32, 6, dtype=jnp.int32), array(32, dtype=jnp.int32)
        step = jax.grad(both_ways)
        program = ts.from_jax(step, (p, tokens, labels), (None, P("d"), P("d")), P(), mesh=jax.sharding.AbstractMesh((4,), ("d",)))
        report = program.explain()
        self.assertEqual([c["kind"] for c in report["collectives"]], ["all_reduce"])
        self.assertEqual(report["wire_bytes_total"], sum(int(np.prod(s)) for s in shapes.values()) * 4 * 2 * 3 // 4)
        values = self.values((p, tokens, labels), 10)
        for got, want in zip(jax.tree.leaves(program(*values)), jax.tree.leaves(step(*values))):
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)

    def test_recurrence_with_cut_weights(self):
        # By the bytes of each step alone, cutting the features would be as good: 47 collectives. With latencies, weights are
        # gathered once, and gradients scattered once.
        shapes = dict(w=(256, 64), u=(256, 64), x=(32, 12, 64))
        arguments = [array(*s) for s in shapes.values()]
        step = jax.grad(lambda w, u, x: (recurrence(x, w, u, False)[:, -1] ** 2).mean(), (0, 1))
        program = ts.from_jax(step, arguments, (P("d"),) * 3, (P("d"),) * 2, mesh=jax.sharding.AbstractMesh((8,), ("d",)))
        report = program.explain()
        self.assertEqual([c["kind"] for c in report["collectives"]], ["all_gather", "reduce_scatter"])
        self.assertEqual(report["wire_bytes_total"], 2 * 2 * 256 * 64 * 4 * 7 // 8)
        values = [0.3 * value for value in self.values(arguments, 10)]
        for got, want in zip(program(*values), step(*values)):
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)

    def test_micro_batches(self):
        """Parts of a cut batch that a loop takes in turn are cut over all devices, as if the batch came in parts."""
        A, rows, tokens, words, d, devices = 4, 64, 128, 50, 512, 8

        def loss(w, x):
            z = jnp.cumsum(w["words"][x], 1)  # along the tokens, which are not worth cutting
            for n in range(4):
                z = z + jnp.tanh(jnp.cumsum(z @ w["up"][n], 1) / tokens) @ w["down"][n]
            return jnp.mean(z ** 2)

        def step(in_parts):
            def fn(w, x):
                def add(total, x):
                    return jax.tree.map(jnp.add, total, jax.grad(loss)(w, x)), None
                total, _ = jax.lax.scan(add, jax.tree.map(jnp.zeros_like, w), x if in_parts else x.reshape(A, -1, tokens))
                return jax.tree.map(lambda p, g: p - 0.1 * g / A, w, total)
            return fn
        random = np.random.default_rng(0)
        w = {name: random.standard_normal(shape).astype(np.float32) / 32 for name, shape in dict(words=(words, d), up=(4, d, d), down=(4, d, d)).items()}
        x = random.integers(0, words, (rows, tokens)).astype(np.int32)
        mesh = jax.sharding.AbstractMesh((devices,), ("d",))
        program = ts.from_jax(step(False), (w, x), (None, P("d")), mesh=mesh)
        found = program(w, x)
        for name, wanted in jax.jit(step(False))(w, x).items():
            np.testing.assert_allclose(found[name], wanted, rtol=2e-4, atol=1e-5)
        parts = ts.from_jax(step(True), (w, x.reshape(A, -1, tokens)), (None, P(None, "d")), mesh=mesh)
        here, there = program.explain(), parts.explain()
        self.assertLess(here["modelled_compute_seconds"], 1.1 * there["modelled_compute_seconds"])
        moved = here["wire_bytes_total"] - there["wire_bytes_total"]
        self.assertLessEqual(moved, x.nbytes // devices * (devices - 1))

    def test_shuffled_micro_batches(self):
        """Random parts of a batch are cut over all devices: shuffled before the loop that takes them in turn, or by part of a permutation in it."""
        A, times, places, d, devices = 4, 64, 1024, 64, 8

        def step(by_index):
            def fn(w, x, order):
                x = x.reshape(-1, d)

                def add(w, rows):
                    return w - 0.1 * jax.grad(lambda w: (jnp.tanh(jnp.tanh(rows @ w) @ w.T) ** 2).mean())(w), None
                if by_index:
                    return jax.lax.scan(lambda w, at: add(w, x[at]), w, order.reshape(A, -1))[0]
                return jax.lax.scan(add, w, x[order].reshape(A, -1, d))[0]
            return fn
        random = np.random.default_rng(0)
        w, x = (random.standard_normal(s).astype(np.float32) / 8 for s in ((d, 4 * d), (times, places, d)))
        order = random.permutation(times * places).astype(np.int32)
        mesh = jax.sharding.AbstractMesh((devices,), ("d",))
        for by_index in False, True:
            program = ts.from_jax(step(by_index), (w, x, order), (None, P(None, "d"), None), mesh=mesh)
            np.testing.assert_allclose(program(w, x, order), jax.jit(step(by_index))(w, x, order), rtol=1e-4, atol=1e-5)
            found, whole = program.explain(), ts.from_jax(step(by_index), (w, x, order), (None, None, None), mesh=mesh).explain()
            self.assertLess(found["modelled_compute_seconds"], whole["modelled_compute_seconds"] / 4)
            # Rows to columns, and those of each part to the devices that compute with it; gradients.
            moved = 2 * x.nbytes // devices + 2 * A * w.nbytes
            self.assertEqual(found["wire_bytes_total"], moved // devices * (devices - 1))

    def test_gradients_reduced_once(self):
        """Gradients of micro-batches and layers, in two loops, are reduced behind both: also those in 16 bits, and where the layers are cut."""
        A, rows, d, devices = 4, 64, 128, 8
        for layers, narrow in (4, False), (4, True), (3, True):
            def loss(w, x):
                if narrow:
                    w, x = jax.tree.map(lambda a: a.astype(jnp.bfloat16), (w, x))
                x, _ = jax.lax.scan(lambda x, p: (jnp.tanh(x @ p["a"]) @ p["b"], None), x, w)
                return jnp.mean(x.astype(jnp.float32) ** 2)

            def step(w, momentum, x):
                def add(total, x):
                    return jax.tree.map(jnp.add, total, jax.grad(loss)(w, x)), None
                total, _ = jax.lax.scan(add, jax.tree.map(jnp.zeros_like, w), x)
                momentum = jax.tree.map(lambda m, g: 0.9 * m + g, momentum, total)
                return jax.tree.map(lambda p, m: p - 0.1 * m, w, momentum), momentum
            random = np.random.default_rng(0)
            w = {name: random.standard_normal((layers, d, d)).astype(np.float32) / 8 for name in "ab"}
            x = random.standard_normal((A, rows // A, 16, d)).astype(np.float32)
            program = ts.from_jax(step, (w, w, x), (None, None, P(None, "d")), mesh=jax.sharding.AbstractMesh((devices,), ("d",)))
            report = program.explain()
            self.assertEqual({c["trips"] for c in report["collectives"]}, {1}, (layers, narrow))
            self.assertLessEqual(report["wire_bytes_total"], 1.05 * 2 * 8 * layers * d * d * (devices - 1) / devices)
            for found, wanted in zip(program(w, w, x), jax.jit(step)(w, w, x)):
                for name in w:
                    np.testing.assert_allclose(found[name], wanted[name], atol=(1e-2 if narrow else 1e-4) * abs(wanted[name]).max())

    def test_block(self):
        for names, extents in ((("dp", "tp"), (2, 4)), (("tp",), (4,)), (("dp",), (4,))):
            spec = {n: P(*["tp" if d == CUTS.get(n) and "tp" in names else None for d in range(len(s))]) for n, s in SHAPES.items()}
            rows = P("dp") if "dp" in names else P()
            mesh = jax.sharding.AbstractMesh(extents, names)
            arguments = {n: array(*s) for n, s in SHAPES.items()}, array(B, S, D), array(B, S, D)
            theirs = ts.from_jax(jax_step, arguments, (spec, rows, rows), mesh=mesh)
            own = ProcessMesh(np.arange(np.prod(extents)).reshape(extents), names)
            values = self.values(arguments, 1)

            def place(value, dims):
                return shard_tensor(value, own, [Shard(dims[n]) if n in dims else Replicate() for n in names])
            placed = {n: place(v, {"tp": CUTS[n]} if n in CUTS else {}) for n, v in values[0].items()}, *[place(v, {"dp": 0}) for v in values[1:]]
            step = ts.jit(our_step)
            a, b = theirs.explain(), step.explain(*placed)
            self.assertLessEqual((b["collective_count_total"], b["wire_bytes_total"]), (a["collective_count_total"], a["wire_bytes_total"]), names)
            (expected, _), (actual, _) = theirs(*values), step(*placed)
            for n in SHAPES:
                np.testing.assert_allclose(actual[n].numpy(), expected[n], rtol=1e-3, atol=1e-4, err_msg=n)


if __name__ == "__main__":
    unittest.main()
