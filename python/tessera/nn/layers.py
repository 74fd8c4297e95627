# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Linear maps, lookups, normalisation over features, dropout; modules one after the other."""

from __future__ import annotations

from collections.abc import Callable

from .. import ops, random
from ..errors import ArgumentError, ShapeError
from ..ops.base import tensor_of
from ..source import refuse, standing_at
from . import functional as F
from . import init
from .module import Module


def positive(layer: str, **sizes) -> None:
    for name, value in sizes.items():
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise refuse(ArgumentError, f"{name} {value!r} of {layer} is not a positive integer")


class Linear(Module):
    """x (..., in) -> x @ weight (in, out) + bias (out)."""

    def __init__(self, in_features: int, out_features: int, bias: bool = True, dtype="float32"):
        super().__init__()
        positive("Linear", in_features=in_features, out_features=out_features)
        self.weight = init.fan_in((in_features, out_features), in_features, dtype)
        self.bias = init.fan_in((out_features,), in_features, dtype) if bias else None

    def forward(self, x):
        x = tensor_of(x, "Linear")
        if x.ndim == 0 or x.shape[-1] != self.weight.shape[0]:
            raise refuse(ShapeError, f"Linear takes {self.weight.shape[0]} features in the last axis, not shape {x.shape}")
        return F.linear(x, self.weight, self.bias)


class Embedding(Module):
    """Integers (...) -> rows of weight: (..., features). An index outside of [0, num_embeddings) raises OutOfRangeError where it is known
    before the program runs; where the program computes it, its row is NaN."""

    def __init__(self, num_embeddings: int, features: int, std: float = 1.0, dtype="float32"):
        super().__init__()
        positive("Embedding", num_embeddings=num_embeddings, features=features)
        self.weight = init.normal((num_embeddings, features), std, dtype)

    def forward(self, indices):
        with standing_at(None, "Embedding"):
            return ops.take(self.weight, indices, 0, "refuse")


class LayerNorm(Module):
    """Mean 0 and variance 1 along the last axis, then weight and bias."""

    def __init__(self, features: int, eps: float = 1e-5, bias: bool = True, dtype="float32"):
        super().__init__()
        positive("LayerNorm", features=features)
        self.eps = eps
        self.weight = init.constant((features,), 1, dtype)
        self.bias = init.constant((features,), 0, dtype) if bias else None

    def forward(self, x):
        return F.layer_norm(x, self.weight, self.bias, eps=self.eps)


class RMSNorm(Module):
    """Mean square 1 along the last axis, then weight."""

    def __init__(self, features: int, eps: float = 1e-6, dtype="float32"):
        super().__init__()
        positive("RMSNorm", features=features)
        self.eps = eps
        self.weight = init.constant((features,), 1, dtype)

    def forward(self, x):
        return F.rms_norm(x, self.weight, self.eps)


class Dropout(Module):
    """Zeros with probability `rate` while training. Its counter (a buffer) goes up with each call, so that each draws other
    bits; which ones depends on seed, counter and index alone, not on how the tensor lies."""

    def __init__(self, rate: float = 0.5, seed: int = 0):
        super().__init__()
        if not 0 <= rate < 1:
            raise refuse(ArgumentError, f"rate {rate} of Dropout is not in [0, 1)")
        self.rate, self.seed = rate, seed
        self.register_buffer("counter", 0)

    def forward(self, x):
        if not self.training or self.rate == 0:
            return x
        y = F.dropout(x, self.rate, random.key(self.seed, self.counter))
        self.counter = self.counter + 1
        return y


class Flatten(Module):
    """Joins the axes from `start_axis` on."""

    def __init__(self, start_axis: int = 1):
        super().__init__()
        self.start_axis = start_axis

    def forward(self, x):
        return ops.flatten(x, self.start_axis)


class Lambda(Module):
    """A function as a module."""

    def __init__(self, function: Callable):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


class Method(Module):
    """A method of a module as a layer: it shares the parameters of the module."""

    def __init__(self, module: Module, name: str):
        super().__init__()
        self.module, self.name = module, name

    def forward(self, x):
        return getattr(self.module, self.name)(x)


class Sequential(Module):
    """Modules (or functions) one after the other. A bound method of a module has the parameters of the module."""

    def __init__(self, *layers: Callable):
        super().__init__()
        self.layers = [_layer(layer) for layer in layers]

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x

    def __getitem__(self, index):
        return self.layers[index]

    def __len__(self):
        return len(self.layers)


def _layer(layer: Callable) -> Module:
    if isinstance(layer, Module):
        return layer
    owner = getattr(layer, "__self__", None)
    name = getattr(layer, "__name__", None)
    return Method(owner, name) if isinstance(owner, Module) and getattr(owner, str(name), None) == layer else Lambda(layer)
