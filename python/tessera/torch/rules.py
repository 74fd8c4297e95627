# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operations of core ATen by those of Tessera. A rule takes the arguments of the operation."""

from __future__ import annotations

import math

from .. import dtypes, nn, ops
from ..errors import ArgumentError
from ..nn import functional as F
from ..nn.attention import attention
from ..ops.base import tensor_of
from ..source import refuse

RULES: dict = {}


def rule(*names):
    def register(function):
        for name in names:
            RULES[name] = function
        return function
    return register


def dtype_of(value):
    """A type of PyTorch as one of ours."""
    return dtypes.dtype(str(value).removeprefix("torch."))


for _name in ("exp", "expm1", "log", "log1p", "log2", "sqrt", "rsqrt", "sin", "cos", "tan", "tanh", "sinh", "cosh", "asin", "acos", "atan", "erf",
              "floor", "ceil", "trunc", "round", "abs", "sign", "isnan", "isinf", "logical_not", "sigmoid"):
    RULES[f"{_name}.default"] = getattr(ops, _name)
RULES["neg.default"] = ops.negative
RULES["reciprocal.default"] = lambda x: 1 / x
RULES["bitwise_not.default"] = lambda x: ~x
for _name, _function in dict(mul=ops.multiply, div=ops.divide, maximum=ops.maximum, minimum=ops.minimum, eq=ops.equal, ne=ops.not_equal,
                             lt=ops.less, le=ops.less_equal, gt=ops.greater, ge=ops.greater_equal, pow=ops.pow, atan2=ops.atan2,
                             logical_and=ops.logical_and, logical_or=ops.logical_or, bitwise_and=ops.bitwise_and,
                             bitwise_or=ops.bitwise_or, remainder=ops.remainder).items():
    for _kind in ("Tensor", "Scalar", "default", "Tensor_Tensor", "Tensor_Scalar"):
        RULES[f"{_name}.{_kind}"] = _function


@rule("add.Tensor", "add.Scalar")
def _(x, y, alpha=1):
    return x + (y if alpha == 1 else y * alpha)


@rule("sub.Tensor", "sub.Scalar")
def _(x, y, alpha=1):
    return x - (y if alpha == 1 else y * alpha)


@rule("rsub.Scalar")
def _(x, y, alpha=1):
    return y - (x if alpha == 1 else x * alpha)


@rule("relu.default")
def _(x):
    return nn.relu(x)


@rule("gelu.default")
def _(x, approximate="none"):
    return F.gelu(x, approximate == "tanh")


@rule("silu.default")
def _(x):
    return F.silu(x)


@rule("leaky_relu.default")
def _(x, slope=0.01):
    return F.leaky_relu(x, slope)


@rule("hardtanh.default", "clamp.default")
def _(x, low=None, high=None):
    return ops.clip(x, low, high)


@rule("clone.default", "alias.default", "detach.default", "contiguous.default", "lift_fresh_copy.default", "dropout.default")
def _(x, *_, **__):
    return x


@rule("_to_copy.default")
def _(x, dtype=None, **_):
    return x if dtype is None else x.astype(dtype_of(dtype))


@rule("where.self")
def _(condition, x, y):
    return ops.where(condition, x, y)


@rule("masked_fill.Scalar", "masked_fill.Tensor")
def _(x, mask, value):
    return ops.where(mask, value, x)


# Shapes.


@rule("view.default", "reshape.default", "_unsafe_view.default")
def _(x, shape):
    return ops.reshape(x, shape)


@rule("permute.default")
def _(x, order):
    return ops.permute_dims(x, order)


@rule("transpose.int")
def _(x, a, b):
    return ops.swapaxes(x, a, b)


@rule("t.default")
def _(x):
    return x.T


@rule("unsqueeze.default")
def _(x, axis):
    return ops.expand_dims(x, axis)


@rule("squeeze.dims", "squeeze.dim")
def _(x, axes):
    axes = [axes] if isinstance(axes, int) else list(axes)
    return ops.squeeze(x, [a for a in axes if x.shape[a] == 1])


@rule("expand.default")
def _(x, shape, implicit=False):
    shape = list(shape)
    kept = len(shape) - x.ndim
    return ops.broadcast_to(x, [x.shape[i - kept] if n == -1 else n for i, n in enumerate(shape)])


@rule("cat.default")
def _(tensors, axis=0):
    return ops.concat(tensors, axis)


@rule("stack.default")
def _(tensors, axis=0):
    return ops.stack(tensors, axis)


@rule("slice.Tensor")
def _(x, axis=0, start=None, end=None, step=1):
    return x[(slice(None),) * (axis % x.ndim) + (slice(start, end, step),)]


@rule("select.int")
def _(x, axis, index):
    return x[(slice(None),) * (axis % x.ndim) + (index,)]


@rule("split_with_sizes.default", "split.Tensor", "split.sizes")
def _(x, sizes, axis=0):
    n = x.shape[axis]
    if isinstance(sizes, int):
        sizes = [min(sizes, n - i) for i in range(0, n, sizes)]
    return ops.split(x, sizes, axis)


@rule("constant_pad_nd.default")
def _(x, pad, value=0.0):
    if min(pad) < 0:
        raise refuse(ArgumentError, f"'constant_pad_nd' by {pad}: negative numbers cut, which is not supported")
    widths = [(0, 0)] * (x.ndim - len(pad) // 2) + [(pad[i], pad[i + 1]) for i in range(len(pad) - 2, -1, -2)]
    return ops.pad(x, widths, value)


@rule("tril.default")
def _(x, k=0):
    return ops.tril(x, k)


@rule("triu.default")
def _(x, k=0):
    return ops.triu(x, k)


@rule("flip.default")
def _(x, axes):
    return ops.flip(x, axes)


@rule("repeat.default")
def _(x, times):
    return ops.tile(x, times)


# Reductions.


def _kind(x, dtype):
    return x if dtype is None else tensor_of(x, "sum").astype(dtype_of(dtype))


@rule("sum.dim_IntList", "sum.default")
def _(x, axes=None, keepdim=False, dtype=None):
    return ops.sum(_kind(x, dtype), axes or None, keepdim)


@rule("mean.dim", "mean.default")
def _(x, axes=None, keepdim=False, dtype=None):
    return ops.mean(_kind(x, dtype), axes or None, keepdim)


@rule("amax.default")
def _(x, axes=None, keepdim=False):
    return ops.max(x, axes or None, keepdim)


@rule("amin.default")
def _(x, axes=None, keepdim=False):
    return ops.min(x, axes or None, keepdim)


@rule("var.correction")
def _(x, axes=None, correction=1, keepdim=False):
    return ops.var(x, axes, correction, keepdim)


@rule("argmax.default")
def _(x, axis=None, keepdim=False):
    return ops.argmax(x, axis, keepdim)


@rule("cumsum.default")
def _(x, axis, dtype=None):
    return ops.cumulative_sum(_kind(x, dtype), axis)


@rule("any.dim", "any.default")
def _(x, axis=None, keepdim=False):
    return ops.any(x, axis, keepdim)


@rule("_softmax.default", "softmax.int")
def _(x, axis, half=False):
    return ops.softmax(x, axis)


@rule("_log_softmax.default", "log_softmax.int")
def _(x, axis, half=False):
    return ops.log_softmax(x, axis)


# Products, windows, lookups, normalisation.


@rule("mm.default", "bmm.default", "matmul.default", "mv.default")
def _(x, y):
    return x @ y


@rule("addmm.default")
def _(bias, x, y, beta=1, alpha=1):
    product = x @ y if alpha == 1 else (x @ y) * alpha
    return product + (bias if beta == 1 else bias * beta)


@rule("linear.default")
def _(x, weight, bias=None):
    return F.linear(x, tensor_of(weight, "linear").T, bias)


@rule("convolution.default")
def _(x, weight, bias, stride, padding, dilation, transposed, output_padding, groups):
    if transposed:
        raise refuse(ArgumentError, "'convolution' transposed is not supported")
    return ops.conv(x, weight, bias, stride, padding, dilation, groups)


@rule("max_pool2d_with_indices.default", "max_pool2d.default")
def _(x, window, stride=(), padding=0, dilation=1, ceil_mode=False):
    if ceil_mode or dilation not in (1, [1, 1]):
        raise refuse(ArgumentError, "'max_pool2d' with dilation or ceil_mode is not supported")
    return ops.max_pool(x, window, list(stride) or None, padding), None


@rule("avg_pool2d.default")
def _(x, window, stride=(), padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None):
    if ceil_mode or divisor_override is not None or not count_include_pad and padding not in (0, [0, 0]):
        raise refuse(ArgumentError, "'avg_pool2d' with ceil_mode, divisor_override or without count_include_pad is not supported")
    return ops.avg_pool(x, window, list(stride) or None, padding)


@rule("_adaptive_avg_pool2d.default", "adaptive_avg_pool2d.default")
def _(x, size):
    if any(n % s for n, s in zip(x.shape[2:], size)):
        raise refuse(ArgumentError, f"'adaptive_avg_pool2d' of {x.shape} to {size}: extents that do not divide are not supported")
    return ops.avg_pool(x, [n // s for n, s in zip(x.shape[2:], size)])


@rule("embedding.default")
def _(weight, indices, padding_idx=-1, *_):
    return ops.take(weight, indices, 0)


@rule("index_select.default")
def _(x, axis, indices):
    return ops.take(x, indices, axis)


@rule("gather.default")
def _(x, axis, indices, sparse_grad=False):
    return ops.take_along_axis(x, indices, axis)


@rule("native_layer_norm.default")
def _(x, shape, weight, bias, eps):
    return F.layer_norm(x, weight, bias, tuple(range(-len(shape), 0)), eps), None, None


@rule("native_group_norm.default")
def _(x, weight, bias, n, c, size, groups, eps):
    y = F.layer_norm(ops.reshape(x, (n, groups, -1)), None, None, -1, eps).reshape(x.shape)
    along = (-1,) + (1,) * (x.ndim - 2)
    y = y if weight is None else y * tensor_of(weight, "group_norm").reshape(along)
    return y if bias is None else y + tensor_of(bias, "group_norm").reshape(along), None, None


@rule("_native_batch_norm_legit_no_training.default")
def _(x, weight, bias, mean, var, momentum, eps):
    along = lambda t: tensor_of(t, "batch_norm").reshape((-1,) + (1,) * (x.ndim - 2))
    y = (x - along(mean)) * along(ops.rsqrt(tensor_of(var, "batch_norm") + eps))
    y = y if weight is None else y * along(weight)
    return y if bias is None else y + along(bias), None, None


@rule("scaled_dot_product_attention.default", "_scaled_dot_product_flash_attention_for_cpu.default")
def _(q, k, v, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
    if isinstance(attn_mask, float):  # the kernel's form has no mask here
        attn_mask, dropout_p, is_causal = None, attn_mask, dropout_p
    if dropout_p:
        raise refuse(ArgumentError, "attention with dropout is not supported; export it in evaluation mode")
    heads_last = lambda t: ops.swapaxes(t, -2, -3)
    if scale is not None:
        q = q * (scale * math.sqrt(q.shape[-1]))
    scores_mask = attn_mask if attn_mask is None or tensor_of(attn_mask, "mask").dtype is dtypes.bool_ else None
    if attn_mask is not None and scores_mask is None:
        raise refuse(ArgumentError, "attention with a mask of floats is not supported; use bool")
    return heads_last(attention(heads_last(q), heads_last(k), heads_last(v), bool(is_causal), scores_mask)), None


# Creation.


@rule("full.default")
def _(shape, value, dtype=None, **_):
    return ops.full(shape, value, dtype_of(dtype) if dtype is not None else None)


@rule("full_like.default")
def _(x, value, dtype=None, **_):
    return ops.full(x.shape, value, dtype_of(dtype) if dtype is not None else x.dtype)


@rule("arange.start_step", "arange.default", "arange.start")
def _(start, end=None, step=1, dtype=None, **_):
    return ops.arange(start, end, step, dtype_of(dtype) if dtype is not None else None)


@rule("scalar_tensor.default")
def _(value, dtype=None, **_):
    return ops.full((), value, dtype_of(dtype) if dtype is not None else None)


