# RUN: %tessera_python %s
# REQUIRES: jax
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ring attention, forward and with gradients: JAX's values, the bytes of gathered keys and values, less memory."""

import json
import os
import tempfile
import unittest

import jax
import numpy as np
from jax_case import JaxCase, PartitionSpec, array, jnp, mesh_of

import tessera

D = 4
RING = {"attention_sequence": "ring"}


def attention(sees=None, least=-1e30):
    """Queries see the keys for which `sees` holds. Several heads may share keys. `bias` is added to all scores."""
    def fn(q, k, v, *bias):
        k, v = (jnp.repeat(x, q.shape[2] // k.shape[2], 2) for x in (k, v))
        a = jnp.einsum("bqhe,bkhe->bhqk", q, k).astype(jnp.float32) * q.shape[3] ** -0.5
        for each in bias:
            a = a + each
        if sees is not None:
            a = jnp.where(sees(jnp.arange(q.shape[1])[:, None], jnp.arange(k.shape[1])[None]), a, least)
        return jnp.einsum("bhqk,bkhe->bqhe", jax.nn.softmax(a, -1).astype(q.dtype), v)
    return fn


def causal(m, n):
    return m >= n


def with_gradients(fn):
    def together(q, k, v, gradient, *bias):
        output, back = jax.vjp(lambda q, k, v: fn(q, k, v, *bias), q, k, v)
        return output, *back(gradient)
    return together


def in_turn(report):
    """Whether keys and values arrive in exchanges, and no device has all of them."""
    kinds = {each["kind"] for each in report["collectives"]}
    return "exchange" in kinds and "all_gather" not in kinds


class Rings(JaxCase):
    def programs(self, fn, q, k, cut, bias, mesh):
        bias_cut = PartitionSpec("s")
        for both, avals in (fn, (q, k, k)), (with_gradients(fn), (q, k, k, q)):
            cuts = (cut,) * len(avals) + (bias_cut,) * len(bias)
            avals = avals + bias
            outs = jax.tree.map(lambda _: cut, jax.eval_shape(both, *avals))
            yield both, avals, tessera.from_jax(both, avals, cuts, outs, mesh=mesh)

    def compare(self, fn, *, length, keys=None, heads=3, kv_heads=3, dtype=jnp.float32, bias=(), cut=PartitionSpec(None, "s"), options=RING, **mesh):
        q, k = array(2, length, heads, D, dtype=dtype), array(2, keys or length, kv_heads, D, dtype=dtype)
        for both, avals, program in self.programs(fn, q, k, cut, bias, mesh_of(**mesh)):
            self.assertTrue(in_turn(program.explain(**options)), (length, mesh))
            values = self.values(avals, 0)
            got = tessera.load(program.compile(**options))(*map(np.asarray, values))
            for found, wanted in zip(jax.tree.leaves(got), jax.tree.leaves(jax.jit(both)(*values))):
                found, wanted = np.asarray(found, "f"), np.asarray(wanted, "f")
                least = 2e-2 if dtype == jnp.bfloat16 else 2e-5
                self.assertLess(np.abs(found - wanted).max(), least * np.abs(wanted).max(), (length, mesh))

    def test_all_keys(self):
        for devices in 2, 3, 4, 8:
            self.compare(attention(), length=24, s=devices)

    def test_causal(self):
        for devices in 2, 3, 4, 8:
            self.compare(attention(causal), length=24, s=devices)

    def test_uneven_parts(self):
        for sees in None, causal:
            self.compare(attention(sees), length=21, s=4)
            self.compare(attention(sees), length=9, s=8)

    def test_two_axes(self):
        self.compare(attention(causal), length=24, cut=PartitionSpec(None, "s", "t"), heads=2, kv_heads=2, t=2, s=4)
        self.compare(attention(), length=22, cut=PartitionSpec(None, ("t", "s")), t=2, s=4)

    def test_fewer_queries_than_keys(self):
        for devices in 2, 3, 4, 8:
            self.compare(attention(), length=12, keys=26, s=devices)
            self.compare(attention(lambda m, n: m + 10 >= n), length=17, keys=27, s=devices)
        self.compare(attention(lambda m, n: m + 10 >= n), length=16, keys=26, cut=PartitionSpec(None, ("t", "s")), t=2, s=4)

    def test_more_queries_than_keys(self):
        for devices in 2, 3, 4, 8:
            self.compare(attention(), length=26, keys=12, s=devices)
            self.compare(attention(causal), length=26, keys=11, s=devices)
        self.compare(attention(), length=24, keys=11, heads=2, kv_heads=2, cut=PartitionSpec(None, "s", "t"), t=2, s=4)

    def test_unequal_with_mask_and_shared_keys(self):
        self.compare(attention(), length=13, keys=22, bias=(array(13, 22),), s=4)
        self.compare(attention(lambda m, n: m + 20 >= n), length=20, keys=40, heads=6, kv_heads=2, s=4)

    def test_shared_keys(self):
        self.compare(attention(causal), length=20, heads=6, kv_heads=2, s=4)

    def test_window_longer_than_half(self):
        self.compare(attention(lambda m, n: (m >= n) & (m - n < 20)), length=32, s=4)

    def test_added_mask(self):
        self.compare(attention(causal), length=21, bias=(array(21, 21),), s=4)
        self.compare(attention(), length=24, bias=(array(24, 24),), s=3)

    def test_rows_masked_by_infinity_elsewhere(self):
        self.compare(attention(causal, -np.inf), length=24, s=4)

    def test_bf16(self):
        for sees in None, causal:
            self.compare(attention(sees), length=24, dtype=jnp.bfloat16, s=4)

    def test_balanced(self):
        """On a machine that computes slowly, causal rings are balanced: more messages, the same values."""
        with tempfile.TemporaryDirectory() as folder:
            slow = {**RING, "topology": os.path.join(folder, "slow.json")}
            with open(slow["topology"], "w") as file:
                json.dump({"version": 1, "name": "slow", "links": [{"name": "all", "devices": 8, "alpha": 1e-6, "rate": 1e9}],
                           "device": {"kind": "gpu", "flops": {"f32": 1e3}, "memory_rate": 1e12, "memory": 1e9}}, file)
            q = array(2, 24, 3, D)
            for _, _, program in self.programs(attention(causal), q, q, PartitionSpec(None, "s"), (), mesh_of(s=4)):
                plain, balanced = program.explain(**RING), program.explain(**slow)
                self.assertGreater(len(balanced["collectives"]), len(plain["collectives"]))
            for devices in 2, 3, 4, 8:
                self.compare(attention(causal), length=21 if devices == 3 else 48, options=slow, s=devices)
            self.compare(attention(causal), length=21, options=slow, s=4)
            self.compare(attention(causal), length=32, cut=PartitionSpec(None, ("t", "s")), options=slow, t=2, s=4)
            self.compare(attention(causal), length=32, cut=PartitionSpec(None, "s", "t"), heads=2, kv_heads=2, options=slow, t=2, s=4)
            self.compare(attention(causal), length=40, heads=6, kv_heads=2, options=slow, s=4)
            self.compare(attention(causal), length=26, bias=(array(26, 26),), options=slow, s=4)
            self.compare(attention(causal), length=32, dtype=jnp.bfloat16, options=slow, s=4)

    def test_bytes_and_memory(self):
        """The bytes of gathered keys and values, and of their gradients. A causal mask leaves out no block of the last device."""
        q = array(1, 1024, 3, 16)
        part = 1024 * 3 * 16 * 4 // 8
        for sees in None, causal:
            programs = list(self.programs(attention(sees), q, q, PartitionSpec(None, "s"), (), mesh_of(s=8)))
            (_, _, forward), (_, _, both) = programs
            ring, gather = (forward.explain(attention_sequence=way) for way in ("ring", "gather"))
            self.assertEqual(gather["wire_bytes_total"], 2 * 7 * part)
            self.assertEqual(ring["wire_bytes_total"], gather["wire_bytes_total"])
            self.assertLess(ring["peak_memory_bytes"], gather["peak_memory_bytes"])
            ring, gather = (both.explain(attention_sequence=way) for way in ("ring", "gather"))
            self.assertEqual(ring["wire_bytes_total"], 4 * 7 * part)
            self.assertLessEqual(ring["wire_bytes_total"], gather["wire_bytes_total"])
            self.assertLess(ring["peak_memory_bytes"], gather["peak_memory_bytes"])

    def test_chosen_for_memory(self):
        """If gathered keys and values exceed the budget, the ring is chosen, and the report has the reason."""
        q = array(1, 1024, 3, 64)
        for _, _, program in self.programs(attention(), q, q, PartitionSpec(None, "s"), (), mesh_of(s=8)):
            ring, gather = (program.explain(attention_sequence=way)["peak_memory_bytes"] for way in ("ring", "gather"))
            report = program.explain(memory_budget=(ring + gather) / 2 / 2**30)
            self.assertTrue(in_turn(report))
            self.assertTrue(any(each.startswith("ring attention (") for each in report["parallelisms"]), report["parallelisms"])

    def test_unknown_choice(self):
        q = array(1, 8, 1, 4)
        (_, _, program), _ = self.programs(attention(), q, q, PartitionSpec(None, "s"), (), mesh_of(s=2))
        with self.assertRaisesRegex(tessera.Error, "attention sequence 'rings' is not one of auto, gather, ring"):
            program.explain(attention_sequence="rings")


if __name__ == "__main__":
    unittest.main()
