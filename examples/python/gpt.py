# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A GPT over the characters of a text: the topics of Python's own help. Batch over "dp", heads and inner features over "tp".

    python gpt.py --devices 2x4
"""

import common
import numpy as np

from tessera import Replicate, Shard, nn, optim, shard_tensor


class Block(nn.Module):
    def __init__(self, features, heads):
        super().__init__()
        self.norm1, self.attention = nn.LayerNorm(features), nn.MultiHeadAttention(features, heads, causal=True, bias=False)
        self.norm2, self.up, self.down = nn.LayerNorm(features), nn.Linear(features, 4 * features), nn.Linear(4 * features, features)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.down(nn.gelu(self.up(self.norm2(x))))


class GPT(nn.Module):
    def __init__(self, symbols, length, features, heads, layers):
        super().__init__()
        self.token, self.place = nn.Embedding(symbols, features, 0.02), nn.init.normal((length, features), 0.02)
        self.blocks = [Block(features, heads) for _ in range(layers)]
        self.norm, self.head = nn.LayerNorm(features), nn.Linear(features, symbols, bias=False)

    def forward(self, tokens):
        x = self.token(tokens) + self.place
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


# Where a parameter is cut over "tp", by the end of its name: heads of attention, inner features of the perceptron.
CUTS = {"attention.query": 1, "attention.key": 1, "attention.value": 1, "attention.out": 0,
        "up.weight": 1, "up.bias": 0, "down.weight": 0}


def rule(name, tensor):
    dim = next((d for end, d in CUTS.items() if name.endswith(end)), None)
    return [Replicate(), Replicate() if dim is None else Shard(dim)]


def text():
    from pydoc_data.topics import topics
    return "\n".join(topics[name] for name in sorted(topics))


def main():
    options = common.parse(__doc__.splitlines()[0], devices="2x4", layers=2, features=64, heads=4, length=32, batch=16)
    characters = text()
    symbols = sorted(set(characters))
    codes = np.array([symbols.index(c) for c in characters[:50000]])

    def build(distributed):
        model = GPT(len(symbols), options.length, options.features, options.heads, options.layers)
        mesh = common.mesh_of(options.extents, "dp", "tp")
        if distributed:
            model = optim.shard_parameters(model, mesh, rule)

        def batch(i):
            starts = np.random.default_rng(i).integers(0, len(codes) - options.length - 1, options.batch)
            rows = np.stack([codes[s:s + options.length + 1] for s in starts])
            pair = rows[:, :-1], rows[:, 1:]
            return [shard_tensor(p, mesh, [Shard(0)]) for p in pair] if distributed else pair
        return model, optim.AdamW(3e-3), lambda model, x, y: nn.cross_entropy(model(x), y), batch
    common.train(build, options)


if __name__ == "__main__":
    main()
