# RUN: %tessera_python %s
# REQUIRES: jax
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Names, shardings and feeds of imported programs."""

import re
import unittest

import tessera.jax
from jax_case import I, JaxCase, array, jnp, mesh_of
from jax import lax
from jax.sharding import NamedSharding, PartitionSpec as P


def text(fn, args, *shardings, **options):
    return str(tessera.jax.to_module(fn, args, *shardings, **options)[0])


def step(params, x):
    return {k: v - 0.1 * x.sum() for k, v in params.items()}, x.mean()


PARAMS = {"b": array(4), "w": array(8, 4)}


class Annotations(unittest.TestCase):
    mesh = mesh_of(d=2, t=4)

    def test_names_follow_the_tree(self):
        result = text(step, (PARAMS, array(3)))
        for name in ("params.b", "params.w", "x", "new.params.w", "out.1"):
            self.assertIn(f'dist.name = "{name}"', result)

    def test_a_spec_replicates_what_it_does_not_cut(self):
        result = text(step, (PARAMS, array(3)), ({"b": P(), "w": P(None, "t")}, P("d")), mesh=self.mesh)
        self.assertIn('dist.process_mesh @mesh(shape = [2, 4], dim_names = ["d", "t"])', result)
        self.assertIn('"params.b", dist.sharding = #dist.sharding<@mesh, [replicate, replicate]>', result)
        self.assertIn('"params.w", dist.sharding = #dist.sharding<@mesh, [replicate, shard(1)]>', result)

    def test_a_none_among_arguments_is_no_leaf(self):
        def fn(parts, x, y):
            return parts["w"].sum() + x.sum(0) + y.sum(0), None, x
        result = text(fn, ({"n": None, "w": array(5)}, array(8, 5), array(8, 4, 5)), (None, P("d"), P(None, "t")), (None, None, P("d")), mesh=self.mesh)
        for name, sharding in (("x", "[shard(0), replicate]"), ("y", "[replicate, shard(1)]"), ("out.2", "[shard(0), replicate]")):
            self.assertRegex(result, f'"{name}"[^)]*dist.sharding = #dist.sharding<@mesh, {re.escape(sharding)}>')

    def test_none_is_open(self):
        result = text(step, (PARAMS, array(3)), (None, P("d")), mesh=self.mesh)
        self.assertIn('{dist.name = "params.w"}', result)

    def test_several_axes_on_a_dimension(self):
        result = text(lambda x: x, (array(16),), P(("t", "d")), mesh=self.mesh)
        self.assertIn("[shard(0, order = 1), shard(0, order = 0)]", result)

    def test_results(self):
        result = text(step, (PARAMS, array(3)), None, (P("t"), P()), mesh=self.mesh)
        self.assertIn('"new.params.w", dist.feeds = 1, dist.sharding = #dist.sharding<@mesh, [replicate, shard(0)]>', result)

    def test_constraints(self):
        def fn(x):
            return lax.with_sharding_constraint(x * 2, NamedSharding(self.mesh, P("d", P.UNCONSTRAINED)))
        self.assertRegex(text(fn, (array(8, 4),)), r"dist.shard_tensor %\d+, #dist.sharding<@mesh, \[shard\(0\), \?\]>")

    def test_feeds_beyond_the_leaves(self):
        for feeds, message in (({7: 0}, "feeds maps result 7 to argument 0; results are numbered from 0 to 0"), ({0: 5}, "arguments from 0 to 1")):
            with self.assertRaisesRegex(tessera.Error, message):
                text(lambda a, b: a + b, (array(3), array(3)), feeds=feeds)

    def test_feeds(self):
        result = text(step, (PARAMS, array(3)))
        self.assertIn("dist.feeds = 0", result)
        self.assertIn("dist.feeds = 1", result)
        self.assertNotIn("dist.feeds", text(step, (PARAMS, array(3)), feeds=None))
        self.assertIn("dist.feeds = 0", text(lambda x: x * 2, (array(4),), feeds={0: 0}))

    def test_ranges(self):
        self.assertIn("dist.range = [0, 7]", text(lambda i: i, (array(3, dtype=I),), ranges={"i": (0, 7)}))

    def test_locations_are_those_of_the_user(self):
        self.assertRegex(text(lambda x: jnp.sin(x), (array(4),)), r"annotations\.py\":\d+:\d+\)")


class Uneven(JaxCase):
    def test_a_sharding_that_does_not_divide(self):
        self.check(lambda x: jnp.tanh(x) @ x.T, array(7, 5), mesh=mesh_of(x=4, y=2))


if __name__ == "__main__":
    unittest.main()
