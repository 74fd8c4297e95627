# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operations on tensors, by their names in NumPy and the array API standard."""

from . import creation, distributed, elementwise, indexing, linear, reductions, shapes, windows
from .creation import arange, eye, full, full_like, iota, linspace, ones, ones_like, zeros, zeros_like
from .distributed import reshard, stop_gradient, unshard
from .elementwise import *  # noqa: F403
from .indexing import one_hot, take, take_along_axis
from .linear import einsum, matmul, outer, tensordot, vecdot
from .reductions import (all, any, argmax, argmin, cumulative_sum, log_softmax, logsumexp, max, mean, min, prod, softmax, std, sum,
                         var)
from .shapes import (broadcast_to, concat, expand_dims, flatten, flip, matrix_transpose, moveaxis, pad, permute_dims, reshape, split,
                     squeeze, stack, swapaxes, tile, tril, triu)
from .windows import avg_pool, conv, max_pool

__all__ = [*elementwise.__all__, "all", "any", "arange", "argmax", "argmin", "avg_pool", "broadcast_to", "concat", "conv", "cumulative_sum", "einsum",
           "expand_dims", "eye", "flatten", "flip", "full", "full_like", "iota", "linspace", "log_softmax", "logsumexp", "matmul",
           "matrix_transpose", "max", "max_pool", "mean", "min", "moveaxis", "one_hot", "ones", "ones_like", "outer", "pad", "permute_dims",
           "prod", "reshape", "reshard", "softmax", "split", "squeeze", "stack", "std", "stop_gradient", "sum", "swapaxes", "take",
           "take_along_axis", "tensordot", "tile", "tril", "triu", "unshard", "var", "vecdot", "zeros", "zeros_like"]
