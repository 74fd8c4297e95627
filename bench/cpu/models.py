# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Training steps (forward, backward, SGD with momentum) of networks, of timm, transformers and here, in PyTorch and in Tessera."""

from __future__ import annotations

import os
import pathlib

import numpy as np
import torch

import tessera as ts
from tessera import nn

ROOT = pathlib.Path(__file__).resolve().parents[2]


def image(name, batch, extent, small_extent=32):
    def make(small):
        import timm
        n, size = (2, small_extent) if small else (batch, extent)
        return timm.create_model(name), {"x": torch.randn(n, 3, size, size)}, 1000
    return make


def text(name, layers, width, vocabulary, batch=8, tokens=128):
    def make(small):
        import transformers
        b, s, words, d, l = (2, 16, 128, 32, 1) if small else (batch, tokens, vocabulary, width, layers)
        heads = max(1, d // 64)
        common = dict(vocab_size=words, attn_implementation="sdpa")
        if name == "gpt2":
            config = transformers.GPT2Config(n_layer=l, n_embd=d, n_head=heads, n_positions=s, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0, **common)
            model = transformers.GPT2LMHeadModel(config)
        elif name == "bert":
            config = transformers.BertConfig(num_hidden_layers=l, hidden_size=d, num_attention_heads=heads, intermediate_size=4 * d,
                                             hidden_dropout_prob=0, attention_probs_dropout_prob=0, **common)
            model = transformers.BertForMaskedLM(config)
        else:
            config = transformers.LlamaConfig(num_hidden_layers=l, hidden_size=d, num_attention_heads=heads, intermediate_size=4 * d, **common)
            model = transformers.LlamaForCausalLM(config)
        return Logits(model), {"x": torch.randint(0, words, (b, s))}, words
    return make


class Lstm(torch.nn.Module):
    """A language model: embedding, LSTM, vocabulary."""

    def __init__(self, words, width, layers):
        super().__init__()
        self.embedding = torch.nn.Embedding(words, width)
        self.lstm = torch.nn.LSTM(width, width, layers, batch_first=True)
        self.head = torch.nn.Linear(width, words)

    def forward(self, x):
        return self.head(self.lstm(self.embedding(x))[0])


class Dlrm(torch.nn.Module):
    """Look-ups in tables of categories, a perceptron of numbers, products of all pairs, a perceptron (arXiv:1906.00091)."""

    def __init__(self, tables, rows, width, numbers=13):
        super().__init__()
        self.numbers, pairs = numbers, tables * (tables + 1) // 2
        self.tables = torch.nn.ModuleList(torch.nn.Embedding(rows, width) for _ in range(tables))
        self.bottom = perceptron(numbers, 4 * width, width)
        self.top = perceptron(width + pairs, 4 * width, 2)
        self.register_buffer("pairs", torch.tril_indices(tables + 1, tables + 1, -1))

    def forward(self, x):
        dense = self.bottom(x[:, :self.numbers])
        found = [table(x[:, self.numbers + i].long()) for i, table in enumerate(self.tables)]
        rows = torch.stack([dense, *found], 1)
        products = (rows @ rows.transpose(1, 2))[:, self.pairs[0], self.pairs[1]]
        return self.top(torch.cat([dense, products], 1))


def perceptron(*widths):
    layers = [torch.nn.Linear(a, b) for a, b in zip(widths, widths[1:])]
    return torch.nn.Sequential(*[m for layer in layers for m in (layer, torch.nn.ReLU())][:-1])


class UNet(torch.nn.Module):
    """Two levels down and up again, joined across (arXiv:1505.04597); a class for each pixel."""

    def __init__(self, width, classes=10):
        super().__init__()
        self.down = torch.nn.ModuleList([block(3, width), block(width, 2 * width)])
        self.middle = block(2 * width, 4 * width)
        self.ups = torch.nn.ModuleList([torch.nn.ConvTranspose2d(4 * width, 2 * width, 2, 2), torch.nn.ConvTranspose2d(2 * width, width, 2, 2)])
        self.joined = torch.nn.ModuleList([block(4 * width, 2 * width), block(2 * width, width)])
        self.head = torch.nn.Conv2d(width, classes, 1)

    def forward(self, x):
        skipped = []
        for down in self.down:
            x = down(x)
            skipped.append(x)
            x = torch.nn.functional.max_pool2d(x, 2)
        x = self.middle(x)
        for up, join in zip(self.ups, self.joined):
            x = join(torch.cat([up(x), skipped.pop()], 1))
        return self.head(x).permute(0, 2, 3, 1)


def block(inputs, outputs):
    return torch.nn.Sequential(torch.nn.Conv2d(inputs, outputs, 3, padding=1), torch.nn.BatchNorm2d(outputs), torch.nn.ReLU(),
                               torch.nn.Conv2d(outputs, outputs, 3, padding=1), torch.nn.BatchNorm2d(outputs), torch.nn.ReLU())


def lstm(small):
    words, batch, tokens, width = (64, 2, 8, 16) if small else (10000, 16, 64, 256)
    return Lstm(words, width, 2), {"x": torch.randint(0, words, (batch, tokens))}, words


def dlrm(small):
    tables, rows, batch, width = (3, 50, 8, 8) if small else (26, 20000, 512, 64)
    numbers = torch.rand(batch, 13)
    return Dlrm(tables, rows, width), {"x": torch.cat([numbers, torch.randint(0, rows, (batch, tables)).float()], 1)}, 2


def unet(small):
    batch, extent, width = (2, 16, 4) if small else (8, 64, 32)
    return UNet(width), {"x": torch.randn(batch, 3, extent, extent)}, 10


class Logits(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x):
        return self.model(input_ids=x, use_cache=False).logits


MODELS = {
    "resnet18": image("resnet18", 16, 64), "resnet50": image("resnet50", 8, 64), "efficientnet_b0": image("efficientnet_b0", 8, 64),
    "vit_tiny": image("vit_tiny_patch16_224", 8, 224, 224),
    "gpt2": text("gpt2", 4, 256, 50257), "bert": text("bert", 4, 256, 30522), "llama": text("llama", 4, 256, 32000),
    "lstm": lstm, "dlrm": dlrm, "unet": unet,
}
LARGE = {"gpt2_12": text("gpt2", 12, 256, 50257, batch=1), "gpt2_124m": text("gpt2", 12, 768, 50257, batch=1)}  # for first steps


def make(name, small):
    """(module, inputs, labels): labels are classes of each place of the result."""
    torch.manual_seed(0)
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    model, inputs, classes = {**MODELS, **LARGE}[name](small)
    x = inputs["x"]
    with torch.no_grad():
        places = model.eval()(x).shape[:-1]
    model.train()
    return model, x, torch.randint(0, classes, places)


def our_step(model, x, labels, devices=1, **options):
    """A call that trains one step. The state stays with the devices, over which the batch is cut if there are several."""
    return step_of(ts.from_torch(model, (x,)), x, labels, devices, **options)


def jitted(optimizer, **options):
    """The training step as a function of the module, the optimizer's state, the data and the labels."""
    def loss_of(m, x, labels):
        return nn.cross_entropy(m(x), labels)

    @ts.jit(donate=True, **options)
    def step(m, state, x, labels):
        loss, gradients = ts.value_and_grad(loss_of)(m, x, labels)
        m, state = optimizer.update(m, gradients, state)
        return m, state, loss
    return step


def program_of(model, x, labels):
    """The program of a training step."""
    optimizer, imported = ts.optim.SGD(0.01, momentum=0.9), ts.from_torch(model, (x,))
    return jitted(optimizer).lower(imported, optimizer.init(imported), ts.asarray(x.numpy()), ts.asarray(labels.numpy()))


def step_of(imported, x, labels, devices=1, **options):
    optimizer = ts.optim.SGD(0.01, momentum=0.9)
    step = jitted(optimizer, **options)
    state = [imported, optimizer.init(imported)]
    data = [ts.asarray(x.numpy()), ts.asarray(labels.numpy())]
    if devices > 1:
        mesh = ts.ProcessMesh(list(range(devices)), ["d"])
        data = [ts.shard_tensor(value, mesh, [ts.Shard(0)]) for value in data]

    def ours():
        state[0], state[1], loss = step(state[0], state[1], *data)
        return float(loss)
    return ours


def torch_step(model, run, x, labels):
    theirs = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)

    def go():
        theirs.zero_grad()
        logits = run(x)
        loss = torch.nn.functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), labels.reshape(-1))
        loss.backward()
        theirs.step()
        return float(loss.detach())
    return go


def contenders(name, small, compiled):
    """[(name, step)]: Tessera, torch, and torch.compile if `compiled`."""
    model, x, labels = make(name, small)
    found = [("tessera", our_step(model, x, labels)), ("torch", torch_step(model, model, x, labels))]
    if compiled:
        found.append(("torch.compile", torch_step(model, torch.compile(model), x, labels)))
    return found


def on_devices(name, small, devices):
    """[(name, step)]: Tessera on one device, and on several virtual ones: with weights where propagation leaves them, on every device,
    and where the search puts them on a machine whose devices share their cores."""
    model, x, labels = make(name, small)
    searched = dict(search="dynamic_programming", topology=str(ROOT / "share/topologies/2core.json"))
    return [("one device", our_step(model, x, labels)), (f"{devices} devices", our_step(model, x, labels, devices)),
            ("searched", our_step(model, x, labels, devices, **searched))]
