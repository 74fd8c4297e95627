# RUN: %tessera_python %s
# REQUIRES: jax
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Convolutions, pooling and their transposes equal JAX's."""

import unittest

import numpy as np

import tessera
from jax_case import JaxCase, PartitionSpec, array, jax, jnp, mesh_of
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


class Frames(JaxCase):
    """Windows of a signal at places that are known, however they are written."""
    signal = array(3, 96)

    def frames(self, places):
        return lambda x: jnp.tanh(x[:, places]) * jnp.arange(1, places.shape[1] + 1)

    def sliced(self, x):
        return jax.vmap(lambda start: lax.dynamic_slice_in_dim(x, start, 7, 1))(jnp.arange(18) * 5)

    def test_tables(self):
        for hop, size in ((4, 8), (3, 3), (5, 2)):
            table = np.arange(0, 96 - size + 1, hop)[:, None] + np.arange(size)
            self.check(self.frames(table), self.signal)
            self.check(self.gradient(self.frames(table), 0), self.signal)
        self.check(self.frames(90 - np.arange(0, 80, 4)[:, None] + np.arange(5)), self.signal)
        self.check(self.frames(np.array([[3, 4, 5], [6, 7, 9]])), self.signal)  # not affine

    def test_slices(self):
        self.check(self.sliced, self.signal)
        self.check(self.gradient(self.sliced, 0), self.signal)
        self.check(lambda x: jnp.abs(jax.scipy.signal.stft(x, nperseg=16, noverlap=10)[2]), self.signal)

    def test_long_reflection(self):
        x = array(5000)
        self.check(lambda x: x[4999 - jnp.abs(4999 - jnp.abs(jnp.arange(5200) - 100))] * 2, x)

    def test_windows_alone_are_sent(self):
        table = np.arange(0, 93, 4)[:, None] + np.arange(8)  # 23 frames, 3 of a device
        for fn, lacking in ((self.frames(table[:22]), 4), (lambda x: jnp.tanh(self.sliced(x)), 3 * 5 * 7 + 15 + 2 - 96)):
            program = tessera.from_jax(fn, (self.signal,), (PartitionSpec(None, "s"),), mesh=mesh_of(s=8))
            self.assertLessEqual(program.explain(objective="bytes")["wire_bytes_total"], 3 * 4 * lacking)


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
