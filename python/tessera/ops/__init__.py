# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operations on tensors, named as in NumPy and the array API standard."""

import sys as _sys

from ..source import misspelt
from . import creation, distributed, elementwise, getitem, indexing, linear, operators, reductions, shapes, sorting, windows
from .creation import arange, eye, full, full_like, iota, linspace, ones, ones_like, zeros, zeros_like
from .distributed import reshard, stop_gradient, unshard
from .elementwise import *  # noqa: F403
from .indexing import (apply_at, dynamic_slice, dynamic_update_slice, one_hot, put_along_axis, put_at, segment_max, segment_min, segment_prod,
                       segment_sum, take, take_along_axis, take_at)
from .linear import einsum, matmul, outer, tensordot, vecdot
from .reductions import (all, any, argmax, argmin, cumulative_logsumexp, cumulative_max, cumulative_min, cumulative_prod, cumulative_sum,
                         log_softmax, logsumexp, max, mean, min, prod, softmax, std, sum, var)
from .shapes import (broadcast_to, concat, diagonal, expand_dims, flatten, flip, matrix_transpose, moveaxis, pad, permute_dims, repeat,
                     reshape, roll, split, squeeze, stack, swapaxes, tile, tril, triu)
from .sorting import argsort, searchsorted, sort, top_k
from .windows import avg_pool, conv, conv_transpose, max_pool, sum_pool

__all__ = [*elementwise.__all__, "all", "any", "apply_at", "arange", "argmax", "argmin", "argsort", "avg_pool", "broadcast_to",
           "concat", "conv", "conv_transpose", "cumulative_logsumexp", "cumulative_max", "cumulative_min", "cumulative_prod",
           "cumulative_sum", "diagonal", "dynamic_slice", "dynamic_update_slice", "einsum", "expand_dims", "eye", "flatten", "flip",
           "full", "full_like", "iota", "linspace", "log_softmax", "logsumexp", "matmul", "matrix_transpose", "max", "max_pool", "mean",
           "min", "moveaxis", "one_hot", "ones", "ones_like", "outer", "pad", "permute_dims", "prod", "put_along_axis", "put_at",
           "repeat", "reshape", "reshard", "roll", "searchsorted", "segment_max", "segment_min", "segment_prod", "segment_sum",
           "softmax", "sort", "split", "squeeze", "stack", "std", "stop_gradient", "sum", "sum_pool", "swapaxes", "take",
           "take_along_axis", "take_at", "tensordot", "tile", "top_k", "tril", "triu", "unshard", "var", "vecdot", "zeros", "zeros_like"]

operators.attach(_sys.modules[__name__])


def __getattr__(name):
    if name == "shard":  # imported late: it depends on the operations
        from ..strategy import shard
        return shard
    return misspelt(__name__, __all__)(name)
