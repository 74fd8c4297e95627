# RUN: %tessera_python %s
# REQUIRES: jax
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""tessera.import_jax: a description by attributes, keys, tuple or function; errors in one line."""

import contextlib
import io
import os
import unittest

from tessera import import_jax

STEP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "Inputs", "step.py")


class Command(unittest.TestCase):
    def run_command(self, *arguments, code=0):
        """Its standard output and standard error."""
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            self.assertEqual(import_jax.main(list(arguments)), code)
        return out.getvalue(), err.getvalue()

    def test_descriptions(self):
        for target in ("described", "listed.one"):
            text, _ = self.run_command(f"{STEP}:{target}")
            self.assertIn('dist.process_mesh @mesh(shape = [4], dim_names = ["d"])', text)
            self.assertIn('dist.name = "params.w", dist.sharding = #dist.sharding<@mesh, [replicate]>', text)
            self.assertIn('dist.name = "x", dist.sharding = #dist.sharding<@mesh, [shard(0)]>', text)
            self.assertIn('dist.name = "new.params.w", dist.feeds = 0', text)

    def test_options(self):
        text, _ = self.run_command(f"{STEP}:listed.one", "--no-feeds")
        self.assertNotIn("dist.feeds", text)
        text, _ = self.run_command(f"{STEP}:lookup", "--range", "i=0:7")
        self.assertIn('dist.name = "i", dist.range = [0, 7]', text)

    def test_refused(self):
        lines = open(STEP).read().splitlines()
        add = next(i for i, line in enumerate(lines, 1) if "x + w" in line)
        _, error = self.run_command(f"{STEP}:wrong_shapes", code=1)
        self.assertRegex(error, rf"^{STEP}:{add}: error: .*incompatible shapes")
        step = next(i for i, line in enumerate(lines, 1) if line.startswith("def step"))
        _, error = self.run_command(f"{STEP}:wrong_axis", code=1)
        self.assertTrue(error.startswith(f"{STEP}:{step}:1: error: argument 'x' has P('q',): the mesh has no axis 'q'"), error)
        with self.assertRaisesRegex(SystemExit, "error: '.*step.py' has no 'descrbed'; did you mean 'described'?"):
            import_jax.main([f"{STEP}:descrbed"])
        with self.assertRaisesRegex(SystemExit, "error: 'step' is not FILE.py:OBJECT or MODULE:OBJECT"):
            import_jax.main(["step"])


if __name__ == "__main__":
    unittest.main()
