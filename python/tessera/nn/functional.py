# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Activations, normalisations and losses as functions of tensors."""

from __future__ import annotations

import math

from .. import ops, random
from ..errors import ArgumentError, ShapeError
from ..ops.base import tensor_of, whole
from ..ops.elementwise import sigmoid
from ..ops.labels import label_factors
from ..ops.reductions import softmax
from ..source import refuse
from ..tensor import Tensor

__all__ = ["cross_entropy", "dropout", "gelu", "layer_norm", "leaky_relu", "linear", "mse_loss", "nll_loss", "relu", "rms_norm", "sigmoid",
           "silu", "softmax", "softplus"]


def relu(x) -> Tensor:
    """max(x, 0)."""
    return ops.maximum(x, 0)


def leaky_relu(x, slope: float = 0.01) -> Tensor:
    """x where it is positive, slope * x elsewhere."""
    return ops.where(ops.greater(x, 0), x, x * slope)


def gelu(x, approximate: bool = False) -> Tensor:
    """x times the normal distribution's probability of less than x; approximate: by tanh."""
    x = tensor_of(x, "gelu")
    if approximate:
        return x * 0.5 * (1 + ops.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3)))
    return x * 0.5 * (1 + ops.erf(x * math.sqrt(0.5)))


def silu(x) -> Tensor:
    """x * sigmoid(x)."""
    return tensor_of(x, "silu") * sigmoid(x)


def softplus(x) -> Tensor:
    """log(1 + exp(x)), without overflow."""
    return ops.maximum(x, 0) + ops.log1p(ops.exp(-ops.abs(x)))


def linear(x, weight, bias=None) -> Tensor:
    """x (..., in) @ weight (in, out) + bias (out)."""
    y = ops.matmul(x, weight)
    return y if bias is None else y + bias


def _wide(x):
    """16-bit floats are normalised in float32."""
    return x.astype("float32") if x.dtype.kind == "float" and x.dtype.itemsize == 2 else x


def layer_norm(x, weight=None, bias=None, axes=-1, eps: float = 1e-5) -> Tensor:
    """Mean 0 and variance 1 along the last axes (`axes`), then times weight, plus bias."""
    x = tensor_of(x, "layer_norm")
    wide = _wide(x)
    apart = wide - ops.mean(wide, axes, keepdims=True)
    y = (apart * ops.rsqrt(ops.mean(ops.square(apart), axes, keepdims=True) + eps)).astype(x.dtype)
    y = y if weight is None else y * weight
    return y if bias is None else y + bias


def rms_norm(x, weight=None, eps: float = 1e-6) -> Tensor:
    """Mean square 1 along the last axis, then times weight."""
    x = tensor_of(x, "rms_norm")
    wide = _wide(x)
    y = (wide * ops.rsqrt(ops.mean(ops.square(wide), -1, keepdims=True) + eps)).astype(x.dtype)
    return y if weight is None else y * weight


def dropout(x, rate: float, key, training: bool = True) -> Tensor:
    """Elements are 0 with probability `rate`, others divided by 1 - rate. The bits come from `key` and the element's index alone
    (tessera.random), however the tensor lies."""
    if not 0 <= rate < 1:
        raise refuse(ArgumentError, f"rate {rate} of 'dropout' is not in [0, 1)")
    x = tensor_of(x, "dropout")
    if not training or rate == 0:
        return x
    return ops.where(random.uniform(key, x.shape) >= rate, x / (1 - rate), 0)


def _reduce(name, values, reduction):
    if reduction not in ("mean", "sum", "none"):
        raise refuse(ArgumentError, f"reduction '{reduction}' of '{name}'; there are mean, sum and none")
    return ops.mean(values) if reduction == "mean" else ops.sum(values) if reduction == "sum" else values


def mse_loss(x, target, reduction: str = "mean") -> Tensor:
    """Squared differences; of 16-bit floats in float32."""
    x, target = _wide(tensor_of(x, "mse_loss")), _wide(tensor_of(target, "mse_loss"))
    if x.shape != target.shape:
        raise refuse(ShapeError, f"'mse_loss' of shapes {x.shape} and {target.shape}; they are equal")
    return _reduce("mse_loss", ops.square(x - target), reduction)


def _picked_loss(name, values, total, target, reduction, ignore_index) -> Tensor:
    """total (...) minus values (..., classes) at the target's class; 0 where the target is `ignore_index`, and not counted by the mean."""
    if ignore_index is not None:
        ignore_index = whole(name, "ignore_index", ignore_index)
    factors = label_factors(name, target, values.shape[-1], ignore_index, values.dtype)
    picked = ops.squeeze(ops.take_along_axis(values, ops.expand_dims(target, target.ndim), -1), -1)
    losses = (-picked if total is None else total - picked) * factors
    if ignore_index is None:
        return _reduce(name, losses, reduction)
    ignored = ops.equal(target, ignore_index)
    losses = ops.where(ignored, 0, losses)  # 0 times an infinite loss is NaN
    if reduction != "mean":
        return _reduce(name, losses, reduction)
    return ops.sum(losses) / ops.sum(ops.where(ignored, 0, 1)).astype(losses.dtype)


def nll_loss(logs, target, reduction: str = "mean", ignore_index: int | None = -100) -> Tensor:
    """-logs at the target's class. logs (..., classes), target (...) of integers.

    A target of `ignore_index` adds nothing, and the mean is over the others (PyTorch's rule; NaN where all are ignored). Any other target
    outside of the classes raises OutOfRangeError where it is known before the program runs; where the program computes it, the loss is NaN.
    With ignore_index=None every target counts, and the mean divides by a constant.
    """
    logs, target = tensor_of(logs, "nll_loss"), tensor_of(target, "nll_loss")
    if logs.shape[:-1] != target.shape or logs.ndim == 0:
        raise refuse(ShapeError, f"'nll_loss' of shapes {logs.shape} and {target.shape}: (..., classes) and (...)")
    return _picked_loss("nll_loss", logs, None, target, reduction, ignore_index)


def cross_entropy(logits, target, reduction: str = "mean", ignore_index: int | None = -100) -> Tensor:
    """-log softmax of the logits at the target's class. logits (..., classes), target (...) of integers; `ignore_index` and targets outside
    of the classes are those of `nll_loss`.

    Works on logits that are cut over their classes: a maximum and two sums are reduced, nothing is gathered.
    """
    logits, target = tensor_of(logits, "cross_entropy"), tensor_of(target, "cross_entropy")
    if logits.ndim == 0 or logits.shape[:-1] != target.shape:
        raise refuse(ShapeError, f"'cross_entropy' of shapes {logits.shape} and {target.shape}: (..., classes) and (...)")
    logits = _wide(logits)
    return _picked_loss("cross_entropy", logits, ops.logsumexp(logits, -1), target, reduction, ignore_index)
