# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The optimizers of tessera.optim as array updates that servers apply. A server gets names and numbers, no code."""

from __future__ import annotations

import math

import numpy as np

from .. import optim
from ..errors import ArgumentError

# By optimizer: the names of its parameters and of its state arrays (slots).
_KINDS = {
    "SGD": (("rate", "momentum", "nesterov", "weight_decay"), ("velocity",)),
    "Adam": (("rate", "beta1", "beta2", "eps", "weight_decay"), ("m", "v")),
    "AdamW": (("rate", "beta1", "beta2", "eps", "weight_decay"), ("m", "v")),
}


def describe(optimizer, scale: float = 1.0) -> dict:
    """The serializable description of an optimizer. scale: factor of gradients.

    Raises ArgumentError if it is not supported.
    """
    kinds = {optim.SGD: "SGD", optim.Adam: "Adam", optim.AdamW: "AdamW"}
    kind = kinds.get(type(optimizer))
    if kind is None:
        raise ArgumentError(f"{optimizer!r} is not an optimizer of a store; expected one of tessera.optim.{', tessera.optim.'.join(_KINDS)}")
    values = {name: float(getattr(optimizer, name)) for name in _KINDS[kind][0] if not name.startswith("beta")}
    if kind != "SGD":
        values |= {"beta1": float(optimizer.betas[0]), "beta2": float(optimizer.betas[1])}
    if isinstance(scale, bool) or not isinstance(scale, (int, float)) or not math.isfinite(scale):
        raise ArgumentError(f"scale {scale!r} is not a number")
    return {"kind": kind, "scale": float(scale), **values}


def is_known(optimizer) -> bool:
    """Whether `optimizer` is a valid result of `describe`."""
    if not isinstance(optimizer, dict) or optimizer.get("kind") not in _KINDS:
        return False
    names = {"scale", *_KINDS[optimizer["kind"]][0]}
    return optimizer.keys() == {"kind", *names} and all(
        isinstance(optimizer[name], float) and math.isfinite(optimizer[name]) for name in names)


def wide(dtype: np.dtype) -> np.dtype:
    """The accumulation type of `dtype`: float32 for 16-bit floats."""
    return np.dtype(np.float32) if dtype.itemsize == 2 and dtype.kind not in "iu" else dtype


def slots(optimizer: dict) -> tuple[str, ...]:
    """The names of an optimizer's slots."""
    if optimizer["kind"] == "SGD" and not optimizer["momentum"]:
        return ()
    return _KINDS[optimizer["kind"]][1]


def apply(optimizer: dict, value: np.ndarray, gradient: np.ndarray, state: dict[str, np.ndarray], count: int) -> np.ndarray:
    """The new value after step `count`, from 1. Updates the slots in `state`; missing ones start as zeros."""
    kind = wide(value.dtype)
    p, g = value.astype(kind), gradient.astype(kind)
    number = {name: kind.type(each) for name, each in optimizer.items() if name != "kind"}
    if optimizer["scale"] != 1:
        g = g * number["scale"]
    if optimizer["weight_decay"] and optimizer["kind"] != "AdamW":
        g = g + number["weight_decay"] * p
    names = slots(optimizer)
    for name in [name for name in state if name not in names]:
        del state[name]
    old = [state.get(name, np.zeros(p.shape, kind)) for name in names]
    if optimizer["kind"] == "SGD":
        if names:
            state["velocity"] = number["momentum"] * old[0] + g
            g = g + number["momentum"] * state["velocity"] if optimizer["nesterov"] else state["velocity"]
        return (p - number["rate"] * g).astype(value.dtype)
    one = kind.type(1)
    state["m"] = number["beta1"] * old[0] + (one - number["beta1"]) * g
    state["v"] = number["beta2"] * old[1] + (one - number["beta2"]) * g * g
    step = (state["m"] / kind.type(1 - optimizer["beta1"] ** count)) / (
        np.sqrt(state["v"] / kind.type(1 - optimizer["beta2"] ** count)) + number["eps"])
    if optimizer["kind"] == "AdamW":
        step = step + number["weight_decay"] * p
    return (p - number["rate"] * step).astype(value.dtype)
