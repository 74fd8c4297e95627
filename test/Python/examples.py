# RUN: %tessera_python %s %examples/python
# REQUIRES: tessera-core
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The examples, small: on every mesh 50 steps give the weights of one device, with the plans that the documents name."""

import contextlib
import importlib
import io
import sys
import unittest

sys.path.insert(0, sys.argv.pop() if len(sys.argv) > 1 else "examples/python")


class Examples(unittest.TestCase):
    def run_example(self, name, *arguments, steps=50):
        out = io.StringIO()
        sys.argv = [name, "--check", "--steps", str(steps), *arguments]
        with contextlib.redirect_stdout(out):
            importlib.import_module(name).main()
        text = out.getvalue()
        self.assertIn(f"after {steps} steps", text)
        return text

    def plan(self, text):
        """(kind, axes) of the collectives."""
        lines = text[text.index("collectives\n"):text.index("total:")].splitlines()[1:]
        return [(line.split()[0], line[line.index("["):].split("  ")[0]) for line in lines if line.strip() != "none"]

    def mlp(self, form, devices):
        return self.run_example("mlp", "--form", form, "--devices", devices, "--hidden", "12", "--inner", "24", "--length", "3")

    def test_data_parallel(self):
        """One reduction of all gradients."""
        for devices in ("1", "2", "3", "2x4", "8"):
            plan = self.plan(self.mlp("data", devices))
            self.assertEqual([kind for kind, _ in plan], ["all_reduce"] if devices != "1" else [])

    def test_tensor_parallel(self):
        """One reduction, forward."""
        for devices in ("1", "2", "3", "2x4", "8"):
            plan = self.plan(self.mlp("tensor", devices))
            self.assertEqual([kind for kind, _ in plan], ["all_reduce"] if devices != "1" else [])

    def test_stages(self):
        """Sends the activation (and the optimizer's count) forward, and its gradient back."""
        for devices in ("1", "2", "3", "2x4", "8"):
            self.assertEqual([kind for kind, _ in self.plan(self.mlp("stages", devices))], ["send"] * 3 if devices != "1" else [])

    def test_hybrid(self):
        """Sends of local shards, nothing is gathered; the result is reduced over y."""
        for devices in ("1", "2", "3", "2x4", "8"):
            plan = self.plan(self.mlp("hybrid", devices))
            self.assertEqual([kind for kind, _ in plan].count("send"), 3 if devices != "1" else 0)
            self.assertNotIn("all_gather", [kind for kind, _ in plan])
            if devices in ("2x4", "8"):
                self.assertIn(("all_reduce", "[y] of 2"), plan)

    def test_convnet(self):
        for devices in ("1", "2", "3", "2x4", "8"):
            text = self.run_example("convnet", "--devices", devices, "--batch", "32")
        self.assertGreater(int(text.split("test: ")[1].split()[0]), 290)

    def test_gpt(self):
        """Two reductions per block forward and two backward over "tp", the gradients over "dp"."""
        for devices in ("1", "2", "3", "2x4", "8"):
            text = self.run_example("gpt", "--devices", devices, "--features", "16", "--length", "8", "--batch", "8", "--layers", "1")
            if devices == "2x4":
                kinds = [kind for kind, axes in self.plan(text) if axes == "[tp] of 4"]
                self.assertLessEqual(len(kinds), 4)

    def test_softmax(self):
        for devices in ("1", "2", "3", "2x4", "8"):
            self.run_example("softmax", "--devices", devices, "--classes", "50", "--batch", "10", "--inputs", "6", "--features", "9")

    def test_image(self):
        for devices in ("1", "2", "3x1", "2x4", "8x1"):
            self.run_example("image", "--devices", devices, "--size", "24", "--channels", "3")


if __name__ == "__main__":
    unittest.main()
