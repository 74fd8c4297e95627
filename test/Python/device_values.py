# RUN: %tessera_python %s
# REQUIRES: tessera-core
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Values of programs for GPUs stay on the devices, on `stub`: a step copies only fresh inputs in and read values out."""

import gc
import os
import subprocess
import tempfile
import unittest

import numpy as np

import tessera as ts

STATE = 4 * (6 * 5 + 5)  # bytes of w and b


def train(state, x):
    w, b = state
    y = x @ w + b
    return (w - 0.5 * w, b + y.sum(0)), (y * y).sum()


def expected(state, x):
    w, b = state
    y = x @ w + b
    return (w - 0.5 * w, b + y.sum(0)), (y * y).sum()


class DeviceValues(unittest.TestCase):
    def setUp(self):
        random = np.random.default_rng(3)
        self.state = random.standard_normal((6, 5), np.float32), random.standard_normal(5, np.float32)
        self.inputs = [random.standard_normal((4, 6), np.float32) for _ in range(4)]

    def counted(self, session, work):
        before = dict(session.counters)
        result = work()
        return result, {name: count - before[name] for name, count in session.counters.items()}

    def steps(self, donate):
        """Four steps, with losses read at the end; returns the counts of all but the first."""
        step = ts.jit(train, backend="stub", donate=donate)
        state, wanted, losses, counts = tuple(map(ts.asarray, self.state)), self.state, [], []
        for x in self.inputs:
            session = next((r.session for r in step._recorded.values()), None)
            if session is None:
                state, loss = step(state, ts.asarray(x))
            else:
                (state, loss), count = self.counted(session, lambda: step(state, ts.asarray(x)))
                counts.append(count)
            losses.append(loss)
            wanted, _ = expected(wanted, x)
        for got, each in zip(state, wanted):
            np.testing.assert_allclose(np.asarray(got), each, rtol=1e-4)
        wanted = self.state
        for loss, x in zip(losses, self.inputs):
            wanted, last = expected(wanted, x)
            np.testing.assert_allclose(float(loss), last, rtol=1e-4)
        return counts

    def test_donated_state_is_not_copied(self):
        for count in self.steps(donate=True)[1:]:
            self.assertEqual(count["host_to_device_bytes"], 4 * 6 * 4)  # x
            self.assertEqual(count["device_to_host_bytes"], 0)
            self.assertEqual(count["kept_bytes"], 4)  # the loss of the step before

    def test_state_that_is_not_donated_is_kept_on_the_device(self):
        for count in self.steps(donate=False)[1:]:
            self.assertEqual(count["host_to_device_bytes"], 4 * 6 * 4)
            self.assertEqual(count["device_to_host_bytes"], 0)
            self.assertEqual(count["kept_bytes"], STATE + 4)

    def test_only_what_is_read_is_copied(self):
        step = ts.jit(train, backend="stub", donate=True)
        state, loss = step(tuple(map(ts.asarray, self.state)), ts.asarray(self.inputs[0]))
        session = next(iter(step._recorded.values())).session
        for tensor, size in ((loss, 4), (state[1], 20), (loss, 0), (state[0], 120)):
            _, count = self.counted(session, tensor.numpy)
            self.assertEqual(count["device_to_host_bytes"], size)
            self.assertEqual(count["host_to_device_bytes"], 0)

    def test_what_nobody_has_is_not_kept_and_blocks_serve_again(self):
        step = ts.jit(train, backend="stub", donate=False)
        state = tuple(map(ts.asarray, self.state))
        allocations = []
        for x in self.inputs * 2:
            state, loss = step(state, ts.asarray(x))
            del loss
            allocations.append(next(iter(step._recorded.values())).session.counters["allocations"])
        self.assertEqual(allocations[2], allocations[-1])

    def test_a_value_that_was_not_donated_stays_what_it_was(self):
        step = ts.jit(train, backend="stub")
        first, _ = step(tuple(map(ts.asarray, self.state)), ts.asarray(self.inputs[0]))
        second, _ = step(first, ts.asarray(self.inputs[1]))
        step(second, ts.asarray(self.inputs[2]))
        wanted, _ = expected(self.state, self.inputs[0])
        np.testing.assert_allclose(first[1].numpy(), wanted[1], rtol=1e-4)
        again, _ = step(first, ts.asarray(self.inputs[1]))
        np.testing.assert_allclose(again[0].numpy(), second[0].numpy(), rtol=1e-6)

    def test_a_donated_value_that_was_passed_is_gone(self):
        step = ts.jit(train, backend="stub", donate=True)
        first, _ = step(tuple(map(ts.asarray, self.state)), ts.asarray(self.inputs[0]))
        step(first, ts.asarray(self.inputs[1]))
        with self.assertRaisesRegex(ts.TraceError, "was donated to 'train', which has overwritten it"):
            first[0].numpy()

    def test_another_program_takes_values_on_the_device(self):
        step = ts.jit(train, backend="stub", donate=True)
        other = ts.jit(lambda w: w.sum(), backend="stub")
        state, _ = step(tuple(map(ts.asarray, self.state)), ts.asarray(self.inputs[0]))
        other(state[0])
        state, _ = step(state, ts.asarray(self.inputs[1]))
        session = next(iter(other._recorded.values())).session
        total, count = self.counted(session, lambda: other(state[0]))
        self.assertEqual((count["host_to_device_bytes"], count["device_to_host_bytes"]), (0, 0))
        np.testing.assert_allclose(float(total), np.asarray(state[0]).sum(), rtol=1e-4)

    def test_a_value_outlives_its_program(self):
        step = ts.jit(train, backend="stub")
        state, loss = step(tuple(map(ts.asarray, self.state)), ts.asarray(self.inputs[0]))
        step(state, ts.asarray(self.inputs[1]))
        del step
        gc.collect()
        np.testing.assert_allclose(float(loss), expected(self.state, self.inputs[0])[1], rtol=1e-4)

    def test_modules_that_are_changed_in_place(self):
        model = ts.nn.Linear(6, 5)

        def shrink(model):
            model.weight = model.weight * 0.5
        step = ts.jit(shrink, backend="stub", donate=True)
        before = model.weight.numpy().copy()
        step(model)
        session = next(iter(step._recorded.values())).session
        for _ in range(2):
            _, count = self.counted(session, lambda: step(model))
            self.assertEqual((count["host_to_device_bytes"], count["device_to_host_bytes"], count["kept_bytes"]), (0, 0, 0))
        np.testing.assert_allclose(model.weight.numpy(), before / 8, rtol=1e-6)

    def test_distributed_values_stay_apart(self):
        mesh = ts.ProcessMesh([2], dim_names=["d"])
        step = ts.jit(lambda x: x * 2.0, backend="stub", donate=True)
        x = ts.shard_tensor(self.inputs[0], mesh, [ts.Shard(0)])
        y = step(x)
        session = next(iter(step._recorded.values())).session
        _, count = self.counted(session, lambda: step(step(y)))
        self.assertEqual((count["host_to_device_bytes"], count["device_to_host_bytes"]), (0, 0))
        np.testing.assert_allclose(step(y).numpy(), self.inputs[0] * 4, rtol=1e-6)


class Loaded(unittest.TestCase):
    TEXT = """
    func.func @main(%w: tensor<4x4xf32> {dist.name = "w"}, %x: tensor<4x4xf32> {dist.name = "x"})
        -> (tensor<4x4xf32> {dist.name = "new", dist.feeds = 0 : i64}, tensor<4x4xf32> {dist.name = "y"}) {
      %s = arith.addf %w, %x : tensor<4x4xf32>
      %e = arith.mulf %w, %x : tensor<4x4xf32>
      return %s, %e : tensor<4x4xf32>, tensor<4x4xf32>
    }
    """

    def test_results_of_an_artifact_are_passed_on(self):
        with tempfile.TemporaryDirectory() as folder:
            source, path = os.path.join(folder, "p.mlir"), os.path.join(folder, "p.tsra")
            with open(source, "w") as file:
                file.write(self.TEXT)
            subprocess.run(["tessera", "compile", source, "--target=stub", "-o", path], check=True, stdout=subprocess.DEVNULL)
            program = ts.load(path, backend="stub")
        w, x = (np.random.default_rng(1).standard_normal((4, 4), np.float32) for _ in range(2))
        new, y = program(w, x)
        before = program.counters
        again, z = program(new, y)
        self.assertEqual(program.counters["host_to_device_bytes"], before["host_to_device_bytes"])
        self.assertEqual(program.counters["device_to_host_bytes"], before["device_to_host_bytes"])
        np.testing.assert_allclose(new.numpy(), w + x, rtol=1e-6)
        np.testing.assert_allclose(again.numpy(), (w + x) + w * x, rtol=1e-5)
        np.testing.assert_allclose(np.from_dlpack(z), (w + x) * (w * x), rtol=1e-5)
        with self.assertRaisesRegex(ts.Error, r"argument 'w' is float32\[4, 2\], the program takes float32\[4, 4\]"):
            program(ts.jit(lambda a: a + 1.0, backend="stub")(ts.asarray(w[:, :2].copy())), x)


if __name__ == "__main__":
    unittest.main()
