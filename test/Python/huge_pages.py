# RUN: %tessera_python %s
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""An arena of 4 MiB and more is aligned to 2 MiB and advised to consist of huge pages, where the system has them."""

import os
import unittest

os.environ["NUMPY_MADVISE_HUGEPAGE"] = "0"  # the system joins neighboring mappings with the same advice

import numpy as np

import tessera as ts

HUGE = 2 << 20


def advised():
    """Begin and end of the mappings with the flag of huge pages."""
    with open("/proc/self/smaps") as file:
        for line in file:
            first, *rest = line.split()
            if "-" in first and not first.endswith(":"):
                begin, end = (int(number, 16) for number in first.split("-"))
            elif first == "VmFlags:" and "hg" in rest:
                yield begin, end


@unittest.skipUnless(os.path.exists("/sys/kernel/mm/transparent_hugepage"), "the system has no huge pages")
class HugePages(unittest.TestCase):
    def arenas_of(self, rows):
        """Of a program that adds to `rows` KiB."""
        before = set(advised())
        shape = f"tensor<{rows}x256xf32>"
        program = ts.load(ts.Program(f"""func.func @main(%x: {shape}) -> {shape} {{
  %y = arith.addf %x, %x : {shape}
  return %y : {shape}
}}
""").compile())
        x = np.arange(rows * 256, dtype=np.float32).reshape(rows, 256)
        np.testing.assert_array_equal(np.asarray(program(x)), x + x)
        return program, set(advised()) - before

    def test_large(self):
        program, found = self.arenas_of(5000)
        self.assertTrue(any(begin % HUGE == 0 and end - begin >= 5000 << 10 for begin, end in found), found)

    def test_small(self):
        program, found = self.arenas_of(4)
        self.assertEqual(found, set())


if __name__ == "__main__":
    unittest.main()
