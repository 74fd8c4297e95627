# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Linear, Embedding, normalization over features, Dropout, Sequential."""

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
    """Raises ArgumentError if a size of a layer is not a positive integer."""
    for name, value in sizes.items():
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise refuse(ArgumentError, f"{name} {value!r} of {layer} is not a positive integer")


class Linear(Module):
    """x (..., in) -> x @ weight + bias, (..., out). weight: (in, out); bias: (out,)."""

    def __init__(self, in_features: int, out_features: int, bias: bool = True, dtype="float32"):
        super().__init__()
        positive("Linear", in_features=in_features, out_features=out_features)
        self.weight = init.fan_in((in_features, out_features), in_features, dtype)
        self.bias = init.fan_in((out_features,), in_features, dtype) if bias else None

    def forward(self, x):
        x = tensor_of(x, "Linear")
        if x.ndim == 0 or x.shape[-1] != self.weight.shape[0]:
            raise refuse(ShapeError, f"Linear takes {self.weight.shape[0]} features in the last axis, got shape {x.shape}")
        return F.linear(x, self.weight, self.bias)


class Embedding(Module):
    """Rows of weight (num_embeddings, features) at integer indices (...): (..., features).

    An index outside [0, num_embeddings) raises OutOfRangeError if it is known before the program runs; if the program
    computes it, its row is NaN.
    """

    def __init__(self, num_embeddings: int, features: int, std: float = 1.0, dtype="float32"):
        super().__init__()
        positive("Embedding", num_embeddings=num_embeddings, features=features)
        self.weight = init.normal((num_embeddings, features), std, dtype)

    def forward(self, indices):
        with standing_at(None, "Embedding"):
            return ops.take(self.weight, indices, 0, "refuse")


class LayerNorm(Module):
    """Normalizes the last axis to mean 0 and variance 1, then applies weight and bias, both (features,)."""

    def __init__(self, features: int, eps: float = 1e-5, bias: bool = True, dtype="float32"):
        super().__init__()
        positive("LayerNorm", features=features)
        self.eps = eps
        self.weight = init.constant((features,), 1, dtype)
        self.bias = init.constant((features,), 0, dtype) if bias else None

    def forward(self, x):
        return F.layer_norm(x, self.weight, self.bias, eps=self.eps)


class RMSNorm(Module):
    """Normalizes the last axis to mean square 1, then applies weight (features,)."""

    def __init__(self, features: int, eps: float = 1e-6, dtype="float32"):
        super().__init__()
        positive("RMSNorm", features=features)
        self.eps = eps
        self.weight = init.constant((features,), 1, dtype)

    def forward(self, x):
        return F.rms_norm(x, self.weight, self.eps)


class Dropout(Module):
    """Sets elements to 0 with probability `rate` while training.

    A counter (a buffer) increases with each call, so that calls draw different bits; these depend on seed, counter and
    index alone, for any placement.
    """

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
    """Joins the axes from `start_axis` on into one."""

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
    """A method of a module as a layer; it shares the module's parameters."""

    def __init__(self, module: Module, name: str):
        super().__init__()
        self.module, self.name = module, name

    def forward(self, x):
        return getattr(self.module, self.name)(x)


class Sequential(Module):
    """Modules or functions applied in order. A bound method of a module has the parameters of that module."""

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
