# RUN: %tessera_python %s
# REQUIRES: jax
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`jax.shard_map`: results equal JAX's, and the plan has the collectives and bytes that the program calls by hand."""

import unittest

from jax_case import jax, jnp, mesh_of, np
from jax import lax
from jax.sharding import PartitionSpec as P

import tessera
from tessera.jax import ImportFailure
from tessera.testing import difference

line, grid = mesh_of(d=4), mesh_of(d=2, t=2)
around = [(i, (i + 1) % 4) for i in range(4)]


def values(*shapes):
    random = np.random.default_rng(0)
    return [random.standard_normal(shape).astype(np.float32) for shape in shapes]


x, y = values((8, 8), (8, 8))


class ShardMap(unittest.TestCase):
    def check(self, body, in_specs, out_specs, args, collectives, mesh=line, wrap=lambda f: f, **options):
        """collectives: the expected pairs of kind and bytes that each device sends; None: not compared."""
        fn = wrap(jax.shard_map(body, mesh=mesh, in_specs=in_specs, out_specs=out_specs, **options))
        program = tessera.from_jax(fn, args)
        for a, b in zip(jax.tree.leaves(program(*args)), jax.tree.leaves(jax.jit(fn)(*args)), strict=True):
            self.assertIsNone(difference(a, b))
        if collectives is not None:
            self.assertEqual([(c["kind"], c["wire_bytes"]) for c in program.explain()["collectives"]], collectives)

    def test_reductions(self):
        for collective in lax.psum, lax.pmean, lax.pmax, lax.pmin:  # of 2 rows: 64 bytes, 3/4 of them sent twice
            self.check(lambda x: collective(x * 2, "d"), P("d"), P(), (x,), [("all_reduce", 96)])
        self.check(lambda x, y: lax.psum(x @ y, "d"), (P(None, "d"), P("d")), P(), (x, y), [("all_reduce", 384)])
        self.check(lambda x: lax.psum(x, ("d", "t")), P("d", "t"), P(), (x,), [("all_reduce", 96)], grid)
        self.check(lambda x: lax.psum(x, "d") + lax.psum(1, "d"), P(), P(), (x,), [])  # equal on all devices: a multiple

    def test_gathers(self):
        self.check(lambda x: lax.all_gather(x, "d"), P("d"), P("d"), (x,), [("all_gather", 192)])
        self.check(lambda x: lax.all_gather(x, "d", axis=1, tiled=True), P("d"), P(), (x,), [("all_gather", 192)], check_vma=False)
        for axes in ("d", "t"), ("t", "d"):
            self.check(lambda x: lax.all_gather(x, axes, tiled=True), P(("d", "t")), P(), (x,), [("all_gather", 192)], grid, check_vma=False)

    def test_scattered_sums(self):
        """As many bytes as a reduce-scatter; with 4 devices in one round."""
        for tiled in True, False:
            n = 8 if tiled else 4
            self.check(lambda x: lax.psum_scatter(x, "d", tiled=tiled), P(None, "d"), P("d"), (x[:n],), [("all_to_all", 6 * n)])
        for axes in ("d", "t"), ("t", "d"):  # in one collective
            self.check(lambda x: lax.psum_scatter(x, axes, tiled=True), P(None, axes), P(axes), (x,), [("reduce_scatter", 48)], grid)
        self.check(lambda x: lax.psum_scatter(x, ("d", "t"), tiled=True), P(None, ("t", "d")), P(("t", "d")), (x,),
                   [("reduce_scatter", 48)], grid)

    def test_all_to_all(self):
        self.check(lambda x: lax.all_to_all(x, "d", 1, 0, tiled=True), P("d"), P(None, "d"), (x,), [("all_to_all", 48)])
        z, = values((4, 4, 4))
        for split, joined in (0, 1), (1, 0), (1, 1), (0, 0), (0, 2):
            self.check(lambda x: lax.all_to_all(x, "d", split, joined), P(None, None, "d"), P("d"), (z,), [("all_to_all", 48)])

    def test_all_to_all_of_two_axes(self):
        z, = values((1024, 1024))  # 1 MiB each, of which 3/4 are sent
        for over in ("d", "t"), ("t", "d"):
            self.check(lambda x: lax.all_to_all(x, over, 1, 0, tiled=True), P(("d", "t")), P(None, ("d", "t")), (z,), [("exchange", 786432)], grid)
        self.check(lambda x: lax.all_to_all(x[..., None] * jnp.arange(4.0), over, 2, 1, tiled=True)[..., 0], P(("d", "t")), P(("d", "t")), (x,), None, grid)

    def test_permutes(self):
        for pairs in around, around[:3], [(0, 2), (1, 0), (3, 3)]:
            self.check(lambda x: lax.ppermute(x, "d", pairs), P("d"), P("d"), (x,), [("exchange", 64)])

    def test_other_permutes(self):
        """One exchange of a block, however many runs of blocks there are."""
        for of in (lambda i: 7 - i), (lambda i: i ^ 1), (lambda i: i ^ 2), (lambda i: i ^ 4), [1, 0, 6, 5, 3, 7, 2, 4].__getitem__:
            pairs = [(i, of(i)) for i in range(8)]
            self.check(lambda x: lax.ppermute(x, "d", pairs), P("d"), P("d"), (x,), [("exchange", 32)], mesh_of(d=8))
        self.check(lambda x: lax.ppermute(x, "d", [(2, 0), (0, 1), (3, 2), (1, 3)]), P("d"), P("d"), (x,), [("exchange", 64)])

    def test_permutes_of_two_axes(self):
        for axes in ("d", "t"), ("t", "d"):  # JAX numbers the devices in the order of the mesh
            for pairs in around, around[:3], [(0, 3), (3, 1), (1, 0)]:
                self.check(lambda x: lax.ppermute(x, axes, pairs), P(("d", "t")), P(("d", "t")), (x,), [("exchange", 64)], grid)

    def test_numbers_of_devices(self):
        self.check(lambda x: x + lax.axis_index("d"), P("d"), P("d"), (x,), [])
        self.check(lambda x: x * lax.axis_index("t") + lax.axis_index(("d", "t")), P(("t", "d")), P(("t", "d")), (x,), [], grid)

    def test_loops(self):
        def ring(x, y):
            def step(_, carry):
                y, total = carry
                return lax.ppermute(y, "d", around), total + x @ y
            return lax.fori_loop(0, 4, step, (y, lax.pcast(jnp.zeros((2, 2)), "d", to="varying")))[1]
        self.check(ring, (P("d"), P(None, "d")), P("d"), (x, y), [("exchange", 64)])

        def grow(x):
            return lax.while_loop(lambda c: lax.psum(c.sum(), "d") < 100, lambda c: c + lax.ppermute(c, "d", around), abs(x))
        self.check(grow, P("d"), P("d"), (x,), [("all_reduce", 6), ("exchange", 64)])

        def each(x):
            return lax.scan(lambda c, row: (lax.cond(lax.axis_index("d") > 1, lambda: c + row, lambda: c - row), c.sum()), x[0], x)
        self.check(each, P("d"), (P("d"), P("d")), (x,), [])

    def test_ring_attention(self):
        """Keys and values go around the ring once; each device keeps the running maximum and sums of its queries."""
        for causal in (False, True):
            self.ring_attention(causal)

    def ring_attention(self, causal):
        q, k, v = values(*[(2, 16, 8)] * 3)

        def attend(q, k, v):
            here, places = lax.axis_index("d"), jnp.arange(4)

            def step(carry, turn):
                k, v, most, total, out = carry
                scores = jnp.einsum("hqd,hkd->hqk", q, k)
                if causal:  # the keys are those of an earlier device
                    source = (here - turn) % 4
                    scores = jnp.where((here * 4 + places)[:, None] >= (source * 4 + places)[None], scores, -1e30)
                new = jnp.maximum(most, scores.max(-1))
                weights, old = jnp.exp(scores - new[..., None]), jnp.exp(most - new)
                out = out * old[..., None] + jnp.einsum("hqk,hkd->hqd", weights, v)
                k, v = [lax.ppermute(a, "d", around) for a in (k, v)]
                return (k, v, new, total * old + weights.sum(-1), out), None
            start = [lax.pcast(a, "d", to="varying") for a in (jnp.full(q.shape[:2], -jnp.inf), jnp.zeros(q.shape[:2]), jnp.zeros(q.shape))]
            (*_, total, out), _ = lax.scan(step, (k, v, *start), jnp.arange(4))
            return out / total[..., None]
        shard = P(None, "d")
        self.check(attend, (shard,) * 3, shard, (q, k, v), [("exchange", 512)])  # 2 x 4 x 8 floats of each a step
        scores = jnp.einsum("hqd,hkd->hqk", q, k)
        whole = jax.nn.softmax(jnp.where(jnp.tri(16) > 0, scores, -jnp.inf) if causal else scores) @ v
        np.testing.assert_allclose(tessera.from_jax(jax.shard_map(attend, mesh=line, in_specs=(shard,) * 3, out_specs=shard), (q, k, v))(q, k, v),
                                   whole, atol=1e-5)

    def test_patterns(self):
        """Experts, weights gathered for their use, a pipeline, borders of neighbors."""
        def experts(x, w):
            y = lax.all_to_all(x.reshape(4, -1, 8), "d", 0, 0)
            return lax.all_to_all(jnp.einsum("gtd,de->gte", y, w[0]), "d", 0, 0).reshape(x.shape)
        stacked = np.stack([x] * 4)
        self.check(experts, (P("d"), P("d")), P("d"), (np.tile(x, (4, 1)), stacked), [("all_to_all", 192)] * 2)

        def gathered(w, x):
            return jax.grad(lambda w: (jnp.tanh(x @ lax.all_gather(w, "d", tiled=True)) ** 2).sum())(w)
        self.check(gathered, (P("d"), P("d")), P("d"), (x, y), [("all_gather", 192), ("all_to_all", 192)])

        def stages(w, batches):
            def step(carry, t):
                out = jnp.tanh(jnp.where(lax.axis_index("d") == 0, batches[jnp.minimum(t, 5)], carry) @ w[0])
                return lax.ppermute(out, "d", around[:3]), out
            return lax.scan(step, lax.pcast(jnp.zeros((2, 8)), "d", to="varying"), jnp.arange(9))[1][None, 3:]
        self.check(stages, (P("d"), P()), P("d"), (stacked, np.stack([x[:2]] * 6)), [("exchange", 64)])
        back = [(to, at) for at, to in around]
        self.check(lambda x: x + lax.ppermute(x[-1:], "d", around) + lax.ppermute(x[:1], "d", back), P("d"), P("d"), (x,), [("exchange", 64)])

    def test_pmap(self):
        fn = jax.pmap(lambda x, y: lax.psum(x, "i") * y + lax.axis_index("i"), axis_name="i", in_axes=(0, None))
        program = tessera.from_jax(fn, (x[:4], x[0]))
        self.assertIsNone(difference(program(x[:4], x[0]), fn(x[:4], x[0])))
        self.assertEqual([(c["kind"], c["wire_bytes"]) for c in program.explain()["collectives"]], [("all_reduce", 48)])

    def test_shardings_of_arguments(self):
        """An argument that is cut in another way is moved first."""
        fn = jax.shard_map(lambda x: lax.psum(x @ x.T, "d"), mesh=line, in_specs=P(None, "d"), out_specs=P())
        for spec, kinds in (P(None, "d"), ["all_reduce"]), (P("d"), ["all_to_all", "all_reduce"]):
            program = tessera.from_jax(fn, (x,), spec, mesh=line)
            self.assertIsNone(difference(program(x), fn(x)))
            self.assertEqual([c["kind"] for c in program.explain()["collectives"]], kinds)

    def test_derivatives(self):
        """Those of a tensor-parallel perceptron: sums over "t" of results and input gradients, over "d" of weight gradients."""
        def layer(x, w, v):
            return lax.psum(jax.nn.relu(x @ w) @ v, "t")
        gradient = lambda f: jax.grad(lambda *args: (f(*args) ** 2).sum(), (0, 1, 2))
        self.check(layer, (P("d"), P(None, "t"), P("t")), P("d"), (x, y, y), [("all_reduce", 128), ("all_reduce", 256), ("all_reduce", 128)],
                   grid, gradient)

    def test_some_axes(self):
        """The other axes are left to the compiler."""
        self.check(lambda x: lax.psum(x, "d") @ x.T, P("d"), P(None, "d"), (x,), [("all_reduce", 128)], grid, axis_names={"d"})

    def test_nested(self):
        """In a loop, under vmap, with complex values and random keys."""
        def outer(f):
            return lambda x: lax.fori_loop(0, 2, lambda _, c: f(c), x)
        self.check(lambda x: lax.ppermute(x, "d", around), P("d"), P("d"), (x,), [("exchange", 64)], wrap=outer)
        self.check(lambda x: lax.psum(x, "d"), P("d"), P(), (x,), [("all_reduce", 96)], wrap=lambda f: jax.vmap(f, 1))
        self.check(lambda x: jnp.abs(lax.psum(jnp.exp(1j * x), "d")), P("d"), P(), (x,), [("all_reduce", 192)])
        self.check(lambda x: x + jax.random.normal(jax.random.fold_in(jax.random.key(0), lax.axis_index("d")), x.shape), P("d"), P("d"), (x,), [])

    def test_refusals(self):
        def groups(x):
            return lax.all_gather(x, "d", axis_index_groups=[[0, 1], [2, 3]])
        with self.assertRaisesRegex(ImportFailure, r"shard_map.py:\d+:.*'all_gather' with axis_index_groups is not supported"):
            tessera.from_jax(jax.shard_map(groups, mesh=line, in_specs=P("d"), out_specs=P("d"), check_vma=False), (x,))
        with self.assertRaisesRegex(ValueError, "evenly divisible|divide"):
            tessera.from_jax(jax.shard_map(lambda x: x, mesh=line, in_specs=P("d"), out_specs=P("d")), (x[:6],))


if __name__ == "__main__":
    unittest.main()
