# RUN: %tessera_python %s
# REQUIRES: tessera-core
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""D1-1, D1-3, D1-4: stores in one process and over collectives, and error messages."""

import os
import tempfile
import unittest

import numpy as np

import tessera as ts
import tessera.distributed as dist
from tessera import kvstore
from tessera.kvstore import compression, updates

LONG = 120  # seconds until a test gives up


def device(rank, size, path):
    """Combining, softmax over class shards, param_only and compression; an assertion that fails ends the process."""
    dist.init_process_group("tcp", f"file://{path}", LONG, size, rank)
    kv = kvstore.create("dist_sync_device")
    assert (kv.rank, kv.num_workers, kv.local_rank) == (rank, size, rank)
    parts = [np.random.default_rng(other).standard_normal(7) for other in range(size)]
    kv.init("w", np.full(7, 1.0 + rank))
    np.testing.assert_array_equal(kv.pull("w"), np.ones(7))
    kv.push("w", parts[rank])
    np.testing.assert_array_equal(kv.pull("w"), parts[0] + parts[1] + parts[2])
    kv.init(["max", "sum"], [np.zeros(()), np.zeros(())], param_only=True)
    kv.set_optimizer(ts.optim.SGD(0.5))
    top = kv.pushpull("max", parts[rank].max(), op=kvstore.Max)
    total = kv.pushpull("sum", np.exp(parts[rank] - top).sum())
    whole = np.concatenate(parts)
    expected = np.exp(whole - whole.max()) / np.exp(whole - whole.max()).sum()
    np.testing.assert_allclose(np.exp(parts[rank] - top) / total, expected[7 * rank:7 * rank + 7], rtol=1e-14)
    kv.init("v", np.zeros(7))
    kv.set_gradient_compression({"type": "2bit", "threshold": 0.5})
    kv.push("v", np.full(7, 0.75 if rank else 0.25))
    np.testing.assert_array_equal(kv.pull("v"), np.full(7, -0.5 * (size - 1) * 0.5))
    try:
        kv.init("x", np.zeros(3 + rank))
    except ts.ArgumentError as error:
        assert "worker 0 key 'x' as float64 of shape [3], worker 1 key 'x' as float64 of shape [4]" in str(error), error
    else:
        raise AssertionError
    kv.barrier()
    dist.destroy_process_group()


class Local(unittest.TestCase):
    def refuses(self, text, function, *args, **kwargs):
        with self.assertRaises(ts.Error) as caught:
            function(*args, **kwargs)
        self.assertIn(text, str(caught.exception))

    def test_push_and_pull(self):
        kv = kvstore.create("local")
        kv.init([3, "w"], [np.ones((2, 2), np.float32), np.arange(4)])
        kv.push("w", [np.arange(4), np.arange(4)])
        np.testing.assert_array_equal(kv.pull("w"), 2 * np.arange(4))
        out = [np.zeros((2, 2), np.float32), np.zeros(4, int)]
        kv.pull([3, "w"], out)
        np.testing.assert_array_equal(out[0], np.ones((2, 2)))
        kv.pushpull(3, ts.asarray(np.full((2, 2), 5, np.float32)), out=out[0], op=kvstore.Max)
        np.testing.assert_array_equal(out[0], np.full((2, 2), 5))
        kv.broadcast("b", np.array([2.0]), out=(both := [np.zeros(1), np.zeros(1)]))
        self.assertEqual([b[0] for b in both], [2, 2])
        self.assertEqual((kv.rank, kv.num_workers, kv.local_rank), (0, 1, 0))

    def test_updater_and_param_only(self):
        kv, keys = kvstore.create(), []

        def updater(key, pushed, stored):
            keys.append(key)
            stored -= 0.5 * pushed
        kv._set_updater(updater)  # as in MXNet's tutorial
        kv.init("w", np.ones(2))
        kv.init("accuracy", np.zeros(()), param_only=True)
        kv.push("w", np.ones(2))
        kv.push("accuracy", 0.75)
        self.assertEqual((keys, kv.pull("w").tolist(), float(kv.pull("accuracy"))), (["w"], [0.5, 0.5], 0.75))

    def test_states_of_an_optimizer(self):
        with tempfile.TemporaryDirectory() as folder:
            path, stores = os.path.join(folder, "states.npz"), []
            for _ in range(2):
                kv = kvstore.create()
                kv.init(["w", 3], [np.ones(2), np.ones((2, 2), np.float32)])
                kv.set_optimizer(ts.optim.Adam(0.1))
                stores.append(kv)
            steps = lambda kv, count: [kv.push(["w", 3], [np.full(2, 1.0 + i), np.full((2, 2), 1.0, np.float32)]) for i in range(count)]
            steps(stores[0], 3)
            stores[0].save_optimizer_states(path)
            stores[1].load_optimizer_states(path)
            for key in ("w", 3):
                stores[1]._values[key] = stores[0].pull(key)
            for kv in stores:
                steps(kv, 2)
            for key in ("w", 3):
                np.testing.assert_array_equal(stores[0].pull(key), stores[1].pull(key))
            stores[1].set_optimizer(ts.optim.SGD(0.1, momentum=0.9))
            other = kvstore.create()
            other.set_optimizer(ts.optim.Adam(0.1))
            other.init("w", np.ones(5))
            for says, call in (("the states are of Adam, and the optimizer is SGD", lambda: stores[1].load_optimizer_states(path)),
                               ("and the key is float64 of shape [5]", lambda: other.load_optimizer_states(path)),
                               ("not a file of optimizer states", lambda: other.load_optimizer_states(__file__)),
                               ("there is no optimizer", lambda: kvstore.create().save_optimizer_states(path))):
                with self.assertRaises(kvstore.StoreError) as caught:
                    call()
                self.assertIn(says, str(caught.exception))

    def test_optimizers_are_those_of_the_package(self):
        for optimizer in (ts.optim.SGD(0.1), ts.optim.SGD(0.1, 0.9, True, 0.01), ts.optim.Adam(0.1, weight_decay=0.1), ts.optim.AdamW(0.1)):
            kv, p = kvstore.create(), {"w": ts.asarray(np.linspace(-1, 1, 5, dtype=np.float32))}
            kv.init("w", p["w"])
            kv.set_optimizer(optimizer)
            state = optimizer.init(p)
            for step in range(3):
                g = np.cos(np.arange(5, dtype=np.float32) + step)
                p, state = optimizer.update(p, {"w": ts.asarray(g)}, state)
                kv.push("w", g)
            np.testing.assert_allclose(kv.pull("w"), p["w"].numpy(), rtol=2e-5)
            self.assertTrue(updates.is_known(updates.describe(optimizer)))

    def test_compression_keeps_the_rest(self):
        rest, total = np.zeros(9), np.zeros(9)
        gradient = np.linspace(-0.9, 0.9, 9)
        for _ in range(20):
            codes = compression.encode(gradient, rest, 1.0)
            self.assertEqual(codes.size, 3)
            total += compression.decode(codes, 9, rest.dtype, 1.0)
        np.testing.assert_allclose(total + rest, 20 * gradient, atol=1e-12)
        self.assertLessEqual(abs(rest).max(), 1)

    def test_refusals(self):
        kv = kvstore.create("local")
        self.refuses("unknown store 'dist_sink'; expected one of local, dist_sync, dist_async, dist_sync_device", kvstore.create, "dist_sink")
        self.refuses("push of key 'w' before init", kv.push, "w", np.ones(2))
        self.refuses("pull of key 'w' before init", kv.pull, "w")
        kv.init("w", np.ones(2))
        self.refuses("key 'w' is already initialized", kv.init, "w", np.ones(2))
        self.refuses("unknown op 'mean' of push; expected one of sum, max, min", kv.push, "w", np.ones(2), "mean")
        self.refuses("key 'w' has dtype float64 and float32 is pushed", kv.push, "w", np.ones(2, np.float32))
        self.refuses("key 'w' has shape [2] and [3] is pushed", kv.push, "w", np.ones(3))
        self.refuses("key 'w' has shape [2] and out has [3]", kv.pull, "w", np.ones(3))
        self.refuses("out of key 'w' is not a writable array", kv.pull, "w", (1.0, 2.0))
        self.refuses("key True is neither a string", kv.init, True, 1.0)
        self.refuses("the value of key 'c' has dtype complex128", kv.init, "c", np.ones(1, complex))
        self.refuses("unknown gradient compression '1bit'; expected one of none, 2bit", kv.set_gradient_compression, {"type": "1bit"})
        self.refuses("threshold 0 of gradient compression", kv.set_gradient_compression, {"type": "2bit", "threshold": 0})
        self.refuses("is not an optimizer of a store", kv.set_optimizer, "sgd")
        self.refuses("staleness 1 of store 'local'", kvstore.create, "local", staleness=1)
        kv.set_optimizer(ts.optim.SGD(0.1))
        self.refuses("push to key 'w' with max: the optimizer takes sums only", kv.push, "w", np.ones(2), kvstore.Max)


class Device(unittest.TestCase):
    def test_three_processes(self):
        with tempfile.TemporaryDirectory() as folder:
            dist.spawn(device, (3, os.path.join(folder, "meeting")), 3)


if __name__ == "__main__":
    unittest.main()
