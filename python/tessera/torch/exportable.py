# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions of PyTorch that torch.export refuses because they look at values: while a module is exported they are programs that do not."""

from __future__ import annotations

import contextlib
import math
from unittest import mock

import torch

from .ctc import ctc_loss
from .flex import seen_in_attention
from .packed import packed_as_padded


def gaussian_nll_loss(input, target, var, full=False, eps=1e-6, reduction="mean"):
    """torch.nn.functional.gaussian_nll_loss without its check that variances are positive; the derivative passes the clamp, as there."""
    var = var * torch.ones_like(input) if isinstance(var, float) else var
    if var.shape != input.shape and var.shape == input.shape[:-1]:
        var = var.unsqueeze(-1)
    var = var + (var.clamp(min=eps) - var).detach()
    loss = 0.5 * (torch.log(var) + (input - target) ** 2 / var) + (0.5 * math.log(2 * math.pi) if full else 0.0)
    return loss.mean() if reduction == "mean" else loss.sum() if reduction == "sum" else loss


def cov(input, *, correction=1, fweights=None, aweights=None):
    """torch.cov of (variables, observations), without its checks of weights."""
    x = input.reshape(1, -1) if input.ndim < 2 else input
    given = [w for w in (fweights, aweights) if w is not None]
    weights = math.prod(w.to(x.dtype) for w in given) if given else torch.ones(x.shape[1], dtype=x.dtype)
    total = weights.sum()
    free = total - correction * ((weights * aweights).sum() / total if aweights is not None else 1)
    x = x - (x * weights).sum(1, keepdim=True) / total
    return ((x * weights) @ x.mT.conj() / free.clamp(min=0)).squeeze()


def corrcoef(input):
    """torch.corrcoef, without looking at values."""
    found = cov(input)
    if found.ndim == 0:
        return found / found
    deviation = found.diagonal().sqrt()
    return (found / deviation[:, None] / deviation).clamp(-1, 1)


def _detect_is_causal_mask(mask, is_causal=None, size=None):
    """torch.nn.modules.transformer's, which compares the mask with a causal one to choose a kernel; the mask is applied in any case."""
    return is_causal is True


_normalize = torch.nn.modules.batchnorm._BatchNorm.forward


def _cumulative_batch_norm(self, input):
    """The forward of a batch normalization; with momentum=None the average over all batches has a weight that is a tensor."""
    if self.momentum is not None or not self.training or not self.track_running_stats:
        return _normalize(self, input)
    self._check_input_dim(input)
    with torch.no_grad():
        self.num_batches_tracked.add_(1)
        weight, axes = 1.0 / self.num_batches_tracked, (0, *range(2, input.ndim))
        for running, batch in ((self.running_mean, input.mean(axes)), (self.running_var, input.var(axes))):
            running.add_((batch.to(running.dtype) - running) * weight.to(running.dtype))
    return torch.nn.functional.batch_norm(input, None, None, self.weight, self.bias, True, 0.0, self.eps)


def _adaptive_loss(self, input, target):
    """The forward of AdaptiveLogSoftmaxWithLoss: every cluster for all rows, since the number of rows of each depends on the targets.

    A target that is no class is an index out of range.
    """
    rows, classes = (input, target) if target.ndim else (input[None], target[None])
    places, logs = torch.where(target < self.n_classes, classes, -1), 0.0
    for i, (low, high) in enumerate(zip(self.cutoffs, self.cutoffs[1:])):
        within = (classes >= low) & (classes < high)
        own = torch.log_softmax(self.tail[i](rows), 1).gather(1, torch.where(within, classes - low, 0)[:, None])[:, 0]
        logs, places = logs + torch.where(within, own, 0.0), torch.where(within, self.shortlist_size + i, places)
    output = logs + torch.log_softmax(self.head(rows), 1).gather(1, places[:, None])[:, 0]
    return torch.nn.modules.adaptive._ASMoutput(output if target.ndim else output[0], -output.mean())


def _adaptive_prediction(self, input):
    """Its predict(), with the logarithms of all classes for all rows."""
    head = self.head(input)
    best = head.argmax(1)
    return torch.where(best < self.shortlist_size, best, self._get_full_log_prob(input, head).argmax(1))


@contextlib.contextmanager
def exportable():
    """Context manager: these functions can be exported."""
    with contextlib.ExitStack() as stack:
        if hasattr(torch.nn.modules.transformer, _detect_is_causal_mask.__name__):  # it is private
            stack.enter_context(mock.patch.object(torch.nn.modules.transformer, _detect_is_causal_mask.__name__, _detect_is_causal_mask))
        stack.enter_context(mock.patch.object(torch.nn.modules.batchnorm._BatchNorm, "forward", _cumulative_batch_norm))
        stack.enter_context(mock.patch.multiple(torch.nn.AdaptiveLogSoftmaxWithLoss, forward=_adaptive_loss, predict=_adaptive_prediction))
        stack.enter_context(seen_in_attention())
        stack.enter_context(packed_as_padded())
        stack.enter_context(torch.backends.mkldnn.flags(enabled=False))  # its recurrent layers are other operations
        for module, function in ((torch, ctc_loss), (torch, cov), (torch, corrcoef), (torch.nn.functional, gaussian_nll_loss)):
            stack.enter_context(mock.patch.object(module, function.__name__, function))
        yield
