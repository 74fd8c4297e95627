# RUN: %tessera_python %s
# REQUIRES: jax
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Convolutions, pooling and their transposes equal JAX's."""

import unittest

import numpy as np

import tessera
from jax_case import JaxCase, array, jnp
from jax import lax
from tessera.testing import difference

NHWC = ("NHWC", "HWIO", "NHWC")


def conv(strides=(1, 1), padding="SAME", numbers=NHWC, **more):
    return lambda x, w: lax.conv_general_dilated(x, w, strides, padding, dimension_numbers=numbers, **more)


class Convolutions(JaxCase):
    def both(self, fn, x, w):
        """The convolution and its gradients, which are convolutions with dilations and other dimension numbers."""
        self.check(fn, array(*x), array(*w))
        self.check(self.gradient(fn, 0, 1), array(*x), array(*w))

    def test_same(self):
        self.both(conv(), (2, 8, 7, 4), (3, 3, 4, 6))

    def test_strides(self):
        self.both(conv((2, 3), ((1, 2), (0, 1))), (2, 8, 7, 4), (3, 3, 4, 6))

    def test_dilated_window(self):
        self.both(conv(rhs_dilation=(2, 2)), (2, 8, 7, 4), (3, 3, 4, 6))

    def test_dilated_input(self):
        self.both(conv(padding=((1, 2), (2, 1)), lhs_dilation=(2, 2)), (2, 5, 4, 3), (3, 3, 3, 4))

    def test_groups(self):
        self.both(conv(feature_group_count=2), (2, 6, 6, 4), (3, 3, 2, 6))

    def test_depthwise(self):
        self.both(conv(feature_group_count=4), (2, 6, 6, 4), (3, 3, 1, 4))

    def test_batch_groups(self):
        self.check(conv(batch_group_count=2), array(4, 6, 6, 3), array(3, 3, 3, 6))

    def test_pointwise(self):
        self.both(conv((2, 2)), (2, 8, 8, 4), (1, 1, 4, 6))

    def test_whole_image(self):
        self.both(conv(padding="VALID"), (2, 5, 5, 3), (5, 5, 3, 6))

    def test_channels_first(self):
        self.both(conv((2, 2), numbers=None), (2, 4, 8, 8), (6, 4, 3, 3))

    def test_one_and_three_dimensions(self):
        self.both(conv((1,), numbers=("NWC", "WIO", "NWC")), (2, 8, 4), (3, 4, 6))
        self.both(conv((1, 2, 1), numbers=None), (2, 3, 4, 5, 6), (2, 3, 2, 3, 2))

    def test_transposed(self):
        self.both(lambda x, w: lax.conv_transpose(x, w, (2, 2), "SAME", dimension_numbers=NHWC), (2, 4, 4, 3), (3, 3, 3, 5))
        self.both(lambda x, w: lax.conv_transpose(x, w, (2, 2), "VALID", dimension_numbers=NHWC), (2, 4, 4, 3), (2, 2, 3, 5))

    def test_negative_padding(self):
        # XLA's CPU backend reads beyond the input here, so the expected value is that of the cut input.
        x, w = self.values((array(2, 8, 7, 4), array(3, 3, 4, 6)), 2)
        cut = np.pad(x[:, 1:, :-2], ((0, 0), (0, 1), (0, 0), (0, 0)))
        expected = conv(padding="VALID")(cut, w)
        program = tessera.from_jax(conv(padding=((-1, 1), (0, -2))), (x, w))
        self.assertIsNone(difference(program(x, w), expected))


def pool(op, init, window, strides, padding):
    return lambda x: lax.reduce_window(x, init, op, window, strides, padding)


class Pooling(JaxCase):
    x = array(2, 8, 9, 3)

    def all(self, *where):
        for op, init in ((lax.max, -jnp.inf), (lax.min, jnp.inf), (lax.add, 0.0)):
            self.check(pool(op, init, *where), self.x)
            self.check(self.gradient(pool(op, init, *where), 0), self.x)

    def test_windows_that_tile(self):
        self.all((1, 2, 3, 1), (1, 2, 3, 1), "VALID")

    def test_windows_that_leave_a_rest(self):
        self.all((1, 3, 2, 1), (1, 3, 2, 1), "VALID")

    def test_windows_that_overlap(self):
        self.all((1, 3, 3, 1), (1, 2, 2, 1), "SAME")

    def test_windows_with_gaps(self):
        self.all((1, 1, 2, 1), (1, 2, 3, 1), "VALID")


if __name__ == "__main__":
    unittest.main()
