# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Training steps in JAX with annotated inputs, and the best plans known for them. SUITE names them at full size, SMALL at
sizes that run in a moment, for tests."""

from __future__ import annotations

from dataclasses import replace

from . import gpt_plans as plans
from .common import P, Prog, shardings
from .convnet import Convnet, convnet
from .gpt import Gpt, gpt
from .mlp import Mlp, mlp_dp, mlp_dptp, mlp_tp
from .moe import Moe, moe

GRID, LINE = dict(d=2, t=4), dict(d=8)


def suite(c=Gpt(), layers=12, fsdp_layers=4, mlp=Mlp(), conv=Convnet(), experts=Moe()):
    """Programs by name, each created when it is called."""
    deep = replace(c, layers=layers, embed=True)
    few = replace(c, layers=fsdp_layers, embed=True)

    def megatron(c, **more):
        return lambda: gpt(c, GRID, "megatron", plans.megatron(c, 2, 4), **more)

    def fsdp(c, gathers=1, **more):
        return lambda: gpt(c, LINE, "fsdp", plans.fsdp(c, 8, gathers), **more)

    def sequence(**more):
        return lambda: gpt(few, GRID, "megatron", plans.sequence_parallel(few, 2, 4), pin=P("d", "t", None), **more)

    pinned = dict(pin=P("d"), pin_in=P("d"))
    return {
        "mlp_dp": lambda: mlp_dp(mlp), "mlp_tp": lambda: mlp_tp(mlp), "mlp_dptp": lambda: mlp_dptp(mlp),
        "gpt_block_tp": megatron(c), "gpt_block_tp_outfree": megatron(c, pin_out=False),
        "gpt_block_tp_fusedqkv": megatron(replace(c, fusedqkv=True)),
        "gpt12_untied": megatron(deep), "gpt12_untied_onehot": megatron(replace(deep, onehot=True)),
        "gpt12_tied": megatron(replace(deep, tied=True)), "gpt12_untied_scan": megatron(replace(deep, scan=True)),
        "gpt12_untied_outfree": megatron(deep, pin_out=False),
        "gpt_fsdp": fsdp(few), "gpt_fsdp_pinact": fsdp(few, **pinned),
        "gpt_fsdp_scan_pinact": fsdp(replace(few, scan=True), 2, **pinned),
        "gpt_sp": sequence(), "gpt_sp_pin_in": sequence(pin_in=P("d", None, None)),
        "conv_dp": lambda: convnet(conv, False), "conv_spatial": lambda: convnet(conv, True),
        "moe": lambda: moe(experts), "moe_pinned": lambda: moe(experts, "once"), "moe_pinned_twice": lambda: moe(experts, "twice"),
    }


SUITE = suite()
SMALL = suite(Gpt(d=32, heads=4, seq=8, batch=8, ffn=64, vocab=32), layers=2, fsdp_layers=2, mlp=Mlp(16, 32, 64),
              conv=Convnet(8, 16, (3, 4, 8), 10), experts=Moe(8, 16, 16, 8, 4, 32))
