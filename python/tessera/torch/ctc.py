# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Connectionist temporal classification, as an operation of exported programs (see exportable.py)."""

from __future__ import annotations

import math

import torch

from .. import ops
from ..control import scan
from .registry import rule

_NONE = -1e30  # the logarithm of an impossible path, finite so that derivatives are


@torch.library.custom_op("tessera::ctc_loss", mutates_args=())
def _losses(log_probs: torch.Tensor, targets: torch.Tensor, input_lengths: torch.Tensor, target_lengths: torch.Tensor, blank: int) -> torch.Tensor:
    raise NotImplementedError("tessera::ctc_loss is an operation of exported programs")


@_losses.register_fake
def _(log_probs, targets, input_lengths, target_lengths, blank):
    return log_probs.new_empty(log_probs.shape[1])


def ctc_loss(log_probs, targets, input_lengths, target_lengths, blank=0, reduction=1, zero_infinity=False):
    """torch.ctc_loss by the operation: of one or several sequences, whose targets are padded or one after the other."""
    single = log_probs.ndim == 2
    log_probs = log_probs.unsqueeze(1) if single else log_probs
    input_lengths, target_lengths = [torch.as_tensor(n).reshape(-1).long() for n in (input_lengths, target_lengths)]
    if targets.ndim == 1:
        begins = target_lengths.cumsum(0) - target_lengths
        places = begins.unsqueeze(1) + torch.arange(targets.shape[0])
        targets = targets[places.clamp(max=max(0, targets.shape[0] - 1))] if targets.shape[0] else targets.reshape(1, 0).expand(len(begins), 0)
    losses = torch.ops.tessera.ctc_loss(log_probs, targets, input_lengths, target_lengths, blank)
    losses = torch.where(losses == math.inf, 0.0, losses) if zero_infinity else losses
    if reduction == 1:
        return (losses / target_lengths.clamp(min=1)).mean()
    return losses.sum() if reduction == 2 else losses.squeeze(0) if single else losses


@rule("tessera.ctc_loss.default")
def _(log_probs, targets, input_lengths, target_lengths, blank):
    """Losses of log_probs (time, batch, classes) and targets (batch, length), by the forward recursion over paths with blanks in between.

    Infinite where the target does not fit into the input (Graves et al., 2006).
    """
    time, batch, _ = log_probs.shape
    count = 2 * targets.shape[1] + 1
    between = ops.full(targets.shape, blank, targets.dtype)
    labels = ops.concat([ops.reshape(ops.stack([between, targets], 2), (batch, count - 1)), ops.full((batch, 1), blank, targets.dtype)], 1)
    emitted = ops.take_along_axis(log_probs, ops.zeros((time, batch, count), labels.dtype) + labels, 2, "clip")
    number = ops.arange(count)

    def later(x, by, fill):
        return ops.pad(x, [(0, 0), (by, 0)], fill)[:, :count]
    # A blank may be left out between different labels.
    skips = ops.logical_and(ops.not_equal(labels, blank), ops.logical_and(ops.not_equal(labels, later(labels, 2, blank)), ops.greater(number, 1)))
    first = ops.where(ops.less(number, 2), emitted[0], _NONE)

    def step(paths, now):
        emission, at = now
        parts = paths, later(paths, 1, _NONE), ops.where(skips, later(paths, 2, _NONE), _NONE)
        most = ops.stop_gradient(ops.maximum(parts[0], ops.maximum(parts[1], parts[2])))
        total = most + ops.log(sum(ops.exp(part - most) for part in parts)) + emission
        return ops.where(ops.expand_dims(ops.less(at, input_lengths), 1), total, paths), ops.zeros((), paths.dtype)
    paths = scan(step, first, (emitted[1:], ops.arange(1, time)))[0] if time > 1 else first
    last = ops.expand_dims(2 * target_lengths, 1)
    blanked = ops.take_along_axis(paths, last, 1, "clip")
    labelled = ops.where(ops.greater(last, 0), ops.take_along_axis(paths, ops.maximum(last - 1, 0), 1, "clip"), _NONE)
    most = ops.stop_gradient(ops.maximum(blanked, labelled))
    loss = -ops.squeeze(most + ops.log(ops.exp(blanked - most) + ops.exp(labelled - most)), 1)
    loss = ops.where(ops.equal(input_lengths, 0), ops.where(ops.equal(target_lengths, 0), 0.0, -2 * _NONE), loss)
    return ops.where(ops.greater(loss, -_NONE / 2), math.inf, loss)
