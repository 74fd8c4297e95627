# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""torch.nn.attention.flex_attention: scores as a tensor, changed and masked by the user's functions, in the form of other attention."""

from __future__ import annotations

import contextlib
import functools
import math
import sys
from unittest import mock

import torch

from .. import ops
from .registry import rule


@rule("tessera.attend.default")
def _(scores, looks, value):
    """softmax(scores) value; queries of which `looks` has no key give 0."""
    some = ops.any(looks, -1, keepdims=True)
    weights = ops.softmax(ops.where(some, scores, 0.0), -1).astype(value.dtype)
    return ops.where(some, ops.einsum("bhqk,bhkd->bhqd", weights, value), 0.0)


@functools.cache
def _attend():
    torch.library.define("tessera::attend", "(Tensor scores, Tensor looks, Tensor value) -> Tensor")
    torch.library.impl("tessera::attend", "CompositeExplicitAutograd")(
        lambda scores, looks, value: torch._safe_softmax(scores, -1).to(value.dtype) @ value)
    torch.library.register_fake("tessera::attend")(lambda scores, looks, value: value.new_empty((*scores.shape[:-1], value.shape[-1])))
    return torch.ops.tessera.attend.default


def _attention(query, key, value, score_mod, block_mask, scale, *_):
    """(attention, log2 of the sums of exponentials, log2 of the greatest one), as the operation below flex_attention returns them.

    Which keys a query sees is asked of score_mod with a score of 0, because attention is recognised if that does not
    depend on the scores.
    """
    module = sys.modules["torch.nn.attention.flex_attention"]
    shape = (*query.shape[:-1], key.shape[-2])
    key, value = (torch.repeat_interleave(t, shape[1] // t.shape[1], 1).expand(shape[0], -1, -1, -1) for t in (key, value))
    scores = query @ key.transpose(-2, -1) * scale
    scores = scores.float() if scores.dtype.itemsize < 4 else scores
    places, looks = [torch.arange(n) for n in shape], torch.ones((1, 1, 1, shape[-1]), dtype=torch.bool)
    if score_mod is not module._identity:
        none = module._vmap_for_bhqkv(score_mod, prefix=(None,))(torch.zeros((), dtype=scores.dtype), *places)
        looks = none.detach() > -math.inf
        scores = module._vmap_for_bhqkv(score_mod, prefix=(0,))(scores, *places)
    if block_mask[-1] is not module.noop_mask:
        seen = module._vmap_for_bhqkv(block_mask[-1], prefix=())(*places)
        scores, looks = torch.where(seen, scores, -math.inf), looks & seen
    sums = torch.where(looks.any(-1), scores.logsumexp(-1), -math.inf)
    return _attend()(scores, looks, value), sums / math.log(2), scores.amax(-1) / math.log(2)


@contextlib.contextmanager
def seen_in_attention():
    """Context manager: in exports, flex_attention is plain operations."""
    module = sys.modules.get("torch.nn.attention.flex_attention")  # to import it takes time
    if module is None:
        yield
        return
    with mock.patch.multiple(module, flex_attention_hop=_attention, _FLEX_ATTENTION_DISABLE_COMPILE_DEBUG=True,
                             setup_compilation_env=contextlib.nullcontext,  # hides operations from the export
                             _validate_device=lambda *_: None):  # that PyTorch has no derivative on CPUs
        yield
