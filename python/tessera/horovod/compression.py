# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compression of gradients for communication: none, or float16."""

from __future__ import annotations

import sys

import numpy as np

from ..tensor import Tensor
from .arrays import is_torch


class Compressor:
    """`compress` returns the tensor to send and a context, with which `decompress` restores the dtype.

    This one does nothing.
    """

    @staticmethod
    def compress(tensor):
        """(what is sent, a context for decompress). Here the tensor as it is."""
        return tensor, None

    @staticmethod
    def decompress(tensor, ctx):
        """The tensor that was compressed, from what was received and the context."""
        return tensor


class _Half(Compressor):
    """Sends float32 and float64 as float16."""

    @staticmethod
    def compress(tensor):
        if str(tensor.dtype).removeprefix("torch.") not in ("float32", "float64"):
            return tensor, None
        if is_torch(tensor):
            return tensor.to(sys.modules["torch"].float16), tensor.dtype
        return tensor.astype("float16" if isinstance(tensor, Tensor) else np.float16), tensor.dtype

    @staticmethod
    def decompress(tensor, ctx):
        if ctx is None:
            return tensor
        return tensor.to(ctx) if is_torch(tensor) else tensor.astype(ctx)


class Compression:
    """The compressors."""

    none, fp16 = Compressor, _Half
