# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A training step of GPT-2 with AdamW, ours and PyTorch's: the tied output layer and the loss included, dropout left out."""

import dataclasses

import workloads


@dataclasses.dataclass(frozen=True)
class Sizes:
    layers: int = 12
    batch: int = 8
    tokens: int = 1024
    width: int = 768
    heads: int = 12
    words: int = 50257


SMALL = Sizes(1, 2, 16, 32, 2, 67)  # for a rehearsal
KINDS = {f"step of GPT-2 124M, 8x1024, AdamW, {kind}": kind for kind in ("f32", "bf16")}  # bf16 is mixed precision


def flops(sizes):
    """Of the products, forward and backward; half of the scores are visible."""
    parameters = 12 * sizes.layers * sizes.width**2 + sizes.words * sizes.width
    return 6 * sizes.batch * sizes.tokens * parameters + 7 * sizes.layers * sizes.batch * sizes.tokens**2 * sizes.width


def program(kind, sizes):
    """The step as a `Program` of the Python package."""
    import numpy as np
    import tessera as ts
    from tessera import nn, ops, optim

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.attention = nn.LayerNorm(sizes.width), nn.MultiHeadAttention(sizes.width, sizes.heads, causal=True)
            self.norm2, self.up = nn.LayerNorm(sizes.width), nn.Linear(sizes.width, 4 * sizes.width)
            self.down = nn.Linear(4 * sizes.width, sizes.width)

        def forward(self, x):
            x = x + self.attention(self.norm1(x))
            return x + self.down(nn.gelu(self.up(self.norm2(x))))

    class GPT(nn.Module):
        def __init__(self):
            super().__init__()
            self.token = nn.Embedding(sizes.words, sizes.width, 0.02)
            self.place = nn.init.normal((sizes.tokens, sizes.width), 0.02)
            self.blocks, self.norm = [Block() for _ in range(sizes.layers)], nn.LayerNorm(sizes.width)

        def forward(self, tokens):
            x = self.token(tokens) + self.place
            for block in self.blocks:
                x = block(x)
            return ops.einsum("bsd,vd->bsv", self.norm(x), self.token.weight)

    def loss(model, x, y):
        return nn.cross_entropy(model(x), y)

    optimizer = optim.AdamW(3e-4)
    made = optim.mixed_precision(loss) if kind == "bf16" else loss

    @ts.jit
    def step(model, state, x, y):
        value, gradients = ts.value_and_grad(made)(model, x, y)
        model, state = optimizer.update(model, gradients, state)
        return model, state, value

    model, x = GPT(), np.zeros((sizes.batch, sizes.tokens), np.int32)
    return workloads.with_bounds(step.lower(model, optimizer.init(model), x, x), [sizes.words] * 2)


def torch_step(kind, sizes, compile_):
    """A call that runs a step, and the library. compile_: False, True, or a mode of torch.compile, of the module; AdamW is PyTorch's
    fused one."""
    import torch
    import torch.nn.functional as f
    from torch import nn

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(sizes.width), nn.LayerNorm(sizes.width)
            self.qkv, self.out = nn.Linear(sizes.width, 3 * sizes.width), nn.Linear(sizes.width, sizes.width)
            self.up, self.down = nn.Linear(sizes.width, 4 * sizes.width), nn.Linear(4 * sizes.width, sizes.width)

        def forward(self, x):
            q, k, v = [each.view(sizes.batch, sizes.tokens, sizes.heads, -1).transpose(1, 2)
                       for each in self.qkv(self.norm1(x)).split(sizes.width, -1)]
            mixed = f.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2)
            x = x + self.out(mixed.reshape(sizes.batch, sizes.tokens, sizes.width))
            return x + self.down(f.gelu(self.up(self.norm2(x)), approximate="tanh"))

    class GPT(nn.Module):
        def __init__(self):
            super().__init__()
            self.token, self.place = nn.Embedding(sizes.words, sizes.width), nn.Parameter(torch.zeros(sizes.tokens, sizes.width))
            self.blocks, self.norm = nn.ModuleList(Block() for _ in range(sizes.layers)), nn.LayerNorm(sizes.width)

        def forward(self, x, y):
            h = self.token(x) + self.place
            for block in self.blocks:
                h = block(h)
            return f.cross_entropy(f.linear(self.norm(h), self.token.weight).view(-1, sizes.words), y.view(-1))

    torch.set_float32_matmul_precision("highest")
    model = GPT().cuda()
    optimizer = torch.optim.AdamW(model.parameters(), 3e-4, fused=True)
    if compile_:
        model = torch.compile(model, mode=None if compile_ is True else compile_)
    x, y = (torch.randint(0, sizes.words, (sizes.batch, sizes.tokens), device="cuda") for _ in range(2))

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", torch.bfloat16, enabled=kind == "bf16"):
            loss = model(x, y)
        loss.backward()
        optimizer.step()
        return loss
    return step, torch
