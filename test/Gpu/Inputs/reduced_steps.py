# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares the kernels of training steps with the CPU's on the emulated GPU, at reduced sizes, in several orders of blocks.

    reduced_steps.py NAME...    names of PROGRAMS
"""

import collections
import os
import re
import subprocess
import sys
import tempfile

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"  # the plans of the models name 8 devices
ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, os.pardir, os.pardir)
sys.path.insert(0, os.path.join(ROOT, "bench", "search"))

import numpy as np  # noqa: E402

import models  # noqa: E402
import tessera as ts  # noqa: E402
from tessera import nn, optim  # noqa: E402


def of_jax(model):
    return str(ts.from_jax(model.step, model.args))


def gpt_adamw(mixed):
    """Ours: a GPT of two blocks with AdamW, of f32 or in mixed precision (bf16)."""
    words, width, tokens = 67, 32, 24

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.attention = nn.LayerNorm(width), nn.MultiHeadAttention(width, 2, causal=True)
            self.norm2, self.up, self.down = nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x):
            x = x + self.attention(self.norm1(x))
            return x + self.down(nn.gelu(self.up(self.norm2(x))))

    class GPT(nn.Module):
        def __init__(self):
            super().__init__()
            self.token, self.place = nn.Embedding(words, width, 0.02), nn.init.normal((tokens, width), 0.02)
            self.blocks, self.norm, self.head = [Block(), Block()], nn.LayerNorm(width), nn.Linear(width, words)

        def forward(self, x):
            x = self.token(x) + self.place
            for block in self.blocks:
                x = block(x)
            return self.head(self.norm(x))

    def loss(model, x, y):
        return nn.cross_entropy(model(x), y)

    optimizer = optim.AdamW(3e-4)
    made = optim.mixed_precision(loss) if mixed else loss

    @ts.jit
    def step(model, state, x, y):
        value, gradients = ts.value_and_grad(made)(model, x, y)
        model, state = optimizer.update(model, gradients, state)
        return model, state, value

    model, x = GPT(), np.zeros((3, tokens), np.int32)
    return step.lower(model, optimizer.init(model), x, x).lower("normalized")


PROGRAMS = {
    "GPT-2": lambda: of_jax(models.gpt(layers=1, d=48, heads=3, seq=40, batch=2, ffn=96, vocab=203)),
    "Llama": lambda: of_jax(models.llama_block(d=64, heads=4, groups=2, seq=24, batch=2, ffn=88)),
    "ResNet-50": lambda: of_jax(models.resnet50(batch=2, size=32, classes=10, blocks=(1, 1))),
    "DLRM": lambda: of_jax(models.dlrm(batch=24, tables=3, rows=50, width=16)),
    "AdamW": lambda: gpt_adamw(False),
    "AdamW, bf16": lambda: gpt_adamw(True),
}


def main():
    for name in sys.argv[1:]:
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "step.mlir")
            with open(path, "w", encoding="utf-8") as file:
                file.write(PROGRAMS[name]())
            done = subprocess.run(["tessera-opt", path, "--dist-recognize-attention-backward=recomputed-scores=0", "--tessera-pipeline=gpu", "--codegen=gpu", "--tessera-check-gpu-kernels", "-o", os.devnull],
                                  capture_output=True, text=True)
        schemes = collections.Counter(scheme for line in re.findall(r"^\S+:(.*) equal$", done.stdout, re.M) for scheme in line.split())
        kernels = len(re.findall(r" equal$", done.stdout, re.M))
        wrong = [line for line in done.stderr.splitlines() if "error:" in line]
        print(f"{name}: {kernels} kernels equal, {', '.join(sorted(schemes))}")
        if done.returncode or wrong:
            print("\n".join(wrong) or done.stderr)


main()
