# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Broadcast of parameters, optimizer states and objects, and all-gather of objects."""

from __future__ import annotations

import numpy as np

from .. import tree
from ..errors import ArgumentError
from .arrays import is_torch
from .collectives import allgather, allgather_async, broadcast, broadcast_async
from .job import exchange
from .objects import decode, encode
from .process_sets import ProcessSet, global_process_set


def broadcast_parameters(params, root_rank: int = 0, prefix: str | None = None):
    """Broadcast the parameters of a rank: a tree of arrays (dictionary, Module, ...), or (name, array) pairs.

    Returns them.

    NumPy and PyTorch arrays are changed in place; tensors of tessera, which are immutable, are replaced in mutable
    containers.
    """
    pairs = isinstance(params, (list, tuple)) and params and all(isinstance(each, tuple) and len(each) == 2 and isinstance(each[0], str) for each in params)
    params = dict(params) if pairs or type(params).__name__ in ("generator", "dict_items", "zip") else params
    leaves, _ = tree.flatten(params)
    if not leaves:
        raise ArgumentError(f"params of type {type(params).__name__} have no arrays; expected a tree of arrays, or (name, array) pairs")
    handles = [broadcast_async(leaf.value, root_rank, f"{prefix or 'parameter'}.{leaf.path}") for leaf in leaves]
    results = [handle.wait() for handle in handles]
    for leaf, new in zip(leaves, results):
        if is_torch(leaf.value):
            leaf.value.data.copy_(new)
        elif isinstance(leaf.value, np.ndarray) and leaf.value.flags.writeable:
            leaf.value[...] = new
    kept = [leaf.value if is_torch(leaf.value) or isinstance(leaf.value, np.ndarray) and leaf.value.flags.writeable else new
            for leaf, new in zip(leaves, results)]
    if not tree.is_array(params):
        tree.assign(params, kept)
    return tree.rebuild(params, kept)


def broadcast_optimizer_state(state, root_rank: int = 0):
    """Broadcast the state of an optimizer of tessera (the result of init()) from a rank. Returns it."""
    if is_torch(state) or hasattr(state, "param_groups"):
        raise ArgumentError("the optimizer is PyTorch's; use broadcast_optimizer_state of tessera.horovod.torch")
    if not isinstance(state, dict):
        raise ArgumentError(f"state is {type(state).__name__}; expected the result of an optimizer's init()")
    return broadcast_object(state, root_rank, "optimizer_state")


def broadcast_object(obj=None, root_rank: int = 0, name: str | None = None, process_set: ProcessSet = global_process_set):
    """Broadcast an object of rank root_rank: numbers, str, bytes, arrays, and lists, tuples, sets and dicts of these.

    Other classes raise ArgumentError, since nothing that a rank sends is executed.
    """
    name = name or "object"
    data, error = np.empty(0, np.uint8), None
    if exchange().rank == root_rank:
        try:
            data = np.frombuffer(encode(obj), np.uint8)
        except ArgumentError as caught:  # raised after the broadcast, which the others wait for
            error = caught
    size = broadcast(np.array([-1 if error else data.size]), root_rank, f"{name}.size", process_set)
    if size[0] < 0:
        raise error or ArgumentError(f"rank {root_rank} cannot send its object '{name}'")
    whole = broadcast(data if exchange().rank == root_rank else np.empty(size[0], np.uint8), root_rank, f"{name}.data", process_set)
    return decode(whole.tobytes())


def allgather_object(obj, name: str | None = None, process_set: ProcessSet = global_process_set) -> list:
    """The objects of all ranks, in the order of ranks. Raises ArgumentError if one cannot be sent."""
    name, error = name or "object", None
    try:
        data = np.frombuffer(encode(obj), np.uint8)
    except ArgumentError as caught:
        data, error = np.empty(0, np.uint8), caught
    sizes = allgather_async(np.array([-1 if error else data.size]), f"{name}.sizes", process_set)
    whole, sizes = allgather(data, f"{name}.data", process_set), sizes.wait()
    if error:
        raise error
    if (sizes < 0).any():
        raise ArgumentError(f"rank {process_set.ranks[int(np.argmin(sizes))]} cannot send its object '{name}'")
    bounds = np.cumsum([0, *sizes])
    return [decode(whole[bounds[i]:bounds[i + 1]].tobytes()) for i in range(len(sizes))]
