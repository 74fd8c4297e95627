# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Layers: objects that hold parameters and are trees of them."""

from ..source import misspelt
from . import functional, init
from .attention import MultiHeadAttention
from .convolution import AvgPool2d, Conv2d, MaxPool2d
from .functional import cross_entropy, gelu, mse_loss, nll_loss, relu, sigmoid, silu, softmax
from .grouped import grouped_matmul
from .layers import Dropout, Embedding, Flatten, Lambda, LayerNorm, Linear, RMSNorm, Sequential
from .module import LazyGuard, Module, Parameter, eval_mode
from .normalization import BatchNorm, SyncBatchNorm

__all__ = ["AvgPool2d", "BatchNorm", "Conv2d", "Dropout", "Embedding", "Flatten", "Lambda", "LayerNorm", "LazyGuard", "Linear",
           "MaxPool2d", "Module", "MultiHeadAttention", "Parameter", "RMSNorm", "Sequential", "SyncBatchNorm", "cross_entropy", "eval_mode", "functional",
           "gelu", "grouped_matmul", "init", "mse_loss", "nll_loss", "relu", "sigmoid", "silu", "softmax"]
__getattr__ = misspelt(__name__, __all__)
