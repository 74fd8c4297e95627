# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Activations, normalization and losses as functions."""

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
    """x if x > 0, else slope * x."""
    return ops.where(ops.greater(x, 0), x, x * slope)


def gelu(x, approximate: bool = False) -> Tensor:
    """x * Phi(x), with the standard normal distribution function Phi; approximate: the tanh approximation."""
    x = tensor_of(x, "gelu")
    if approximate:
        return x * 0.5 * (1 + ops.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3)))
    return x * 0.5 * (1 + ops.erf(x * math.sqrt(0.5)))


def silu(x) -> Tensor:
    """x * sigmoid(x)."""
    return tensor_of(x, "silu") * sigmoid(x)


def softplus(x) -> Tensor:
    """log(1 + exp(x)), without overflow, and without a kink at 0, where the derivatives would not be those of a smooth function."""
    above = ops.greater(x, 0)
    return ops.where(above, x, 0) + ops.log1p(ops.exp(ops.where(above, -tensor_of(x, "softplus"), x)))


def linear(x, weight, bias=None) -> Tensor:
    """x (..., in) @ weight (in, out) + bias (out)."""
    y = ops.matmul(x, weight)
    return y if bias is None else y + bias


def _wide(x):
    """16-bit floats converted to float32, in which they are normalized."""
    return x.astype("float32") if x.dtype.kind == "float" and x.dtype.itemsize == 2 else x


def layer_norm(x, weight=None, bias=None, axes=-1, eps: float = 1e-5) -> Tensor:
    """(x - mean) / sqrt(variance + eps) over the trailing `axes`, times weight, plus bias.

    16-bit floats are computed in float32.
    """
    x = tensor_of(x, "layer_norm")
    wide = _wide(x)
    apart = wide - ops.mean(wide, axes, keepdims=True)
    y = (apart * ops.rsqrt(ops.mean(ops.square(apart), axes, keepdims=True) + eps)).astype(x.dtype)
    y = y if weight is None else y * weight
    return y if bias is None else y + bias


def rms_norm(x, weight=None, eps: float = 1e-6) -> Tensor:
    """x / sqrt(mean(x^2) + eps) over the last axis, times weight. 16-bit floats are computed in float32."""
    x = tensor_of(x, "rms_norm")
    wide = _wide(x)
    y = (wide * ops.rsqrt(ops.mean(ops.square(wide), -1, keepdims=True) + eps)).astype(x.dtype)
    return y if weight is None else y * weight


def dropout(x, rate: float, key, training: bool = True) -> Tensor:
    """Sets elements to 0 with probability `rate` and divides the others by 1 - rate; returns x if not training.

    The random bits depend on `key` (tessera.random) and the element's index alone, for any placement. Raises
    ArgumentError unless 0 <= rate < 1.
    """
    if not 0 <= rate < 1:
        raise refuse(ArgumentError, f"rate {rate} of 'dropout' is not in [0, 1)")
    x = tensor_of(x, "dropout")
    if not training or rate == 0:
        return x
    return ops.where(random.uniform(key, x.shape) >= rate, x / (1 - rate), 0)


def _reduce(name, values, reduction):
    if reduction not in ("mean", "sum", "none"):
        raise refuse(ArgumentError, f"reduction '{reduction}' of '{name}' is not mean, sum or none")
    return ops.mean(values) if reduction == "mean" else ops.sum(values) if reduction == "sum" else values


def mse_loss(x, target, reduction: str = "mean") -> Tensor:
    """Squared differences of x and target, of equal shapes, reduced by "mean", "sum" or "none".

    16-bit floats are computed in float32. Raises ShapeError if shapes differ.
    """
    x, target = _wide(tensor_of(x, "mse_loss")), _wide(tensor_of(target, "mse_loss"))
    if x.shape != target.shape:
        raise refuse(ShapeError, f"'mse_loss' of shapes {x.shape} and {target.shape}; they must be equal")
    return _reduce("mse_loss", ops.square(x - target), reduction)


def _picked_loss(name, values, total, target, reduction, ignore_index) -> Tensor:
    """total (...) minus values (..., classes) at the target's class.

    Targets equal to `ignore_index` give 0 and do not count in the mean.
    """
    if ignore_index is not None:
        ignore_index = whole(name, "ignore_index", ignore_index)
    factors = label_factors(name, target, values.shape[-1], ignore_index, values.dtype)
    picked = ops.squeeze(ops.take_along_axis(values, ops.expand_dims(target, target.ndim), -1), -1)
    losses = (-picked if total is None else total - picked) * factors
    if ignore_index is None:
        return _reduce(name, losses, reduction)
    ignored = ops.equal(target, ignore_index)
    losses = ops.where(ignored, 0, losses)  # factors do not suffice: 0 times an infinite loss is NaN
    if reduction != "mean":
        return _reduce(name, losses, reduction)
    return ops.sum(losses) / ops.sum(ops.where(ignored, 0, 1)).astype(losses.dtype)


def nll_loss(logs, target, reduction: str = "mean", ignore_index: int | None = -100) -> Tensor:
    """-logs at the target's class. logs: (..., classes); target: (...) integers; reduction: "mean", "sum" or "none".

    A target equal to `ignore_index` adds 0, and the mean is over the other targets, as in PyTorch (NaN if all are
    ignored); with None all targets count. A target out of range raises OutOfRangeError if it is known before the
    program runs; if the program computes it, the loss is NaN. Raises ShapeError if shapes do not match.
    """
    logs, target = tensor_of(logs, "nll_loss"), tensor_of(target, "nll_loss")
    if logs.shape[:-1] != target.shape or logs.ndim == 0:
        raise refuse(ShapeError, f"'nll_loss' of shapes {logs.shape} and {target.shape}: expected (..., classes) and (...)")
    return _picked_loss("nll_loss", logs, None, target, reduction, ignore_index)


def cross_entropy(logits, target, reduction: str = "mean", ignore_index: int | None = -100) -> Tensor:
    """-log(softmax(logits)) at the target's class.

    Arguments, errors and `ignore_index` as in nll_loss; 16-bit floats are computed in float32.

    Logits may be sharded over classes: a maximum and two sums are reduced, nothing is gathered.
    """
    logits, target = tensor_of(logits, "cross_entropy"), tensor_of(target, "cross_entropy")
    if logits.ndim == 0 or logits.shape[:-1] != target.shape:
        raise refuse(ShapeError, f"'cross_entropy' of shapes {logits.shape} and {target.shape}: expected (..., classes) and (...)")
    logits = _wide(logits)
    return _picked_loss("cross_entropy", logits, ops.logsumexp(logits, -1), target, reduction, ignore_index)
