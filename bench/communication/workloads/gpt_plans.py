# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The best plans known by hand for GPT training steps."""

from __future__ import annotations

from .common import all_reduce, gather


def megatron(c, dp, tp):
    """4 activation all-reduces per layer over tp (2 forward, 2 backward), gradients once over dp. Without vocabulary the
    input is data: the last all-reduce is not needed, and the gradients of the first normalization are summed over tp."""
    activation = 4 * c.batch // dp * c.seq * c.d
    reductions = 4 * c.layers - (0 if c.embed else 1)
    wire = reductions * all_reduce(activation, tp)
    elements = c.layers * ((4 * c.d * c.d + 2 * c.d * c.ffn + c.ffn) // tp + 6 * c.d)
    count, how = reductions + 1, f"{reductions} activation all-reduces over tp + one fused gradient all-reduce over dp"
    if c.embed:
        elements += c.vocab * c.d // tp * (1 if c.tied else 2) + c.seq * c.d + 2 * c.d
        wire += 2 * all_reduce(activation, tp) + 3 * all_reduce(4 * c.batch // dp * c.seq, tp)
        count += 5
        how += " + vocabulary-parallel lookup (1), cross-entropy (max, sum, target: 3 small) and its input gradient (1)"
    else:
        wire += all_reduce(4 * 2 * c.d, tp)
    return dict(count=count, wire_bytes=wire + all_reduce(4 * elements + 4, dp), how=how)


def fsdp(c, n, gathers):
    """ZeRO-3: each weight gathered `gathers` times, its gradient reduce-scattered once, in one bucket per layer."""
    layer = 4 * c.d * c.d + 2 * c.d * c.ffn + c.ffn + 6 * c.d
    total = c.layers * layer + (2 * c.vocab * c.d + 2 * c.d if c.embed else 0)
    positions = c.seq * c.d if c.embed else 0
    return dict(count=(gathers + 1) * (c.layers + (1 if c.embed else 0)) + 1,
                wire_bytes=(gathers + 1) * gather(4 * total, n) + all_reduce(4 * positions + 4, n),
                how=f"ZeRO-3: {gathers} all-gather(s) + 1 reduce-scatter of all weights (bucketed by layer)")


def sequence_parallel(c, dp, tp):
    """Each activation all-reduce becomes a reduce-scatter and an all-gather of the same wire bytes."""
    plan = megatron(c, dp, tp)
    return dict(count=plan["count"] * 2 - 1, wire_bytes=plan["wire_bytes"],
                how="each activation all-reduce becomes reduce-scatter + all-gather: same wire bytes")
