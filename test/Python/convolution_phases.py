# RUN: %tessera_python %s
# REQUIRES: jax
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Transposed convolutions and derivatives of strided ones, one contraction per phase, equal JAX's: 1-D to 3-D, grouped, dilated."""

import unittest

import numpy as np

import tessera as ts
from jax_case import jax
from jax import lax
from tessera import ops

# extents of space, stride, dilation, window, padding, groups
CASES = [((9,), 2, 1, 3, 1, 1), ((9,), 2, 1, 1, 0, 1), ((8,), 3, 2, 4, 1, 1), ((9,), 4, 2, 3, 0, 2), ((7,), 2, 2, 3, 1, 1), ((9,), 4, 1, 4, 0, 1),
         ((9, 7), 2, 1, 3, 1, 1), ((7, 9), 2, 1, 1, 0, 1), ((8, 8), 2, 1, 4, 1, 1), ((7, 7), 2, 1, 2, 0, 2), ((8, 9), 3, 2, 3, 1, 1),
         ((5, 4, 6), 2, 1, 3, 1, 1)]


def close(got, wanted):
    wanted = np.asarray(wanted)
    np.testing.assert_allclose(got.numpy(), wanted, rtol=0, atol=1e-5 * np.abs(wanted).max())


class ConvolutionPhases(unittest.TestCase):
    def test_equal_jax(self):
        values = np.random.default_rng(0)
        for space, stride, dilation, window, padding, groups in CASES:
            channels, features, d = 16 * groups, 24 * groups, len(space)
            x = values.standard_normal((3, channels, *space)).astype(np.float32)
            w = values.standard_normal((features, channels // groups, *[window] * d)).astype(np.float32)

            def plain(x, w):
                return lax.conv_general_dilated(x, w, [stride] * d, [(padding, padding)] * d, rhs_dilation=[dilation] * d,
                                                feature_group_count=groups)

            y, pull = jax.vjp(lambda x: plain(x, w), x)
            g = values.standard_normal(y.shape).astype(np.float32)
            with self.subTest(space=space, stride=stride, dilation=dilation, window=window, padding=padding, groups=groups):
                def loss(x, w, g):
                    return (ops.conv(x, w, stride=stride, padding=padding, dilation=dilation, groups=groups) * g).sum()

                wanted, = pull(g)
                close(ts.jit(ts.grad(loss, argnums=0))(x, w, g), wanted)
                # The same as conv_transpose; elements that the stride skips are beyond the padding.
                more = [n - ((m - 1) * stride + dilation * (window - 1) + 1 - 2 * padding) for n, m in zip(space, y.shape[2:])]
                transposed = ts.jit(lambda g, w: ops.conv_transpose(g, w, stride=stride, padding=padding, output_padding=more,
                                                                    dilation=dilation, groups=groups))
                close(transposed(g, w), wanted)


if __name__ == "__main__":
    unittest.main()
