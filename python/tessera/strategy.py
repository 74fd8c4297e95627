# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Strategies: into how many parts each dimension of each input of an operation is split."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence

from . import tree
from .compiled import jit
from .errors import StrategyError
from .ir import TensorType
from .layout import Layout, SubAxisSharding
from .mesh import ProcessMesh
from .sharding import Replicate, Shard, Sharding
from .source import refuse
from .tensor import Tensor, asarray
from .trace import Trace, current

# Values of `device` of `shard`, case-insensitive, and the backends that they select.
DEVICES = {"threads": "threads", "cpu": "threads", "cuda": "cuda", "gpu": "cuda"}


def check_cuts(shape: Sequence[int], cuts, devices: int, what: str) -> tuple[int, ...]:
    """Checks the numbers of parts of a tensor's dimensions on `devices` devices.

    Raises StrategyError, naming the tensor and the dimension.
    """
    if not isinstance(cuts, (tuple, list)) or any(isinstance(c, bool) or not isinstance(c, int) or c < 1 for c in cuts):
        raise refuse(StrategyError, f"strategy {cuts!r} of {what} is not a tuple of positive integers, one per dimension")
    if len(cuts) != len(shape):
        raise refuse(StrategyError, f"strategy {tuple(cuts)} of {what} has {len(cuts)} cuts for shape {tuple(shape)}; "
                                    "give one per dimension")
    for d, (n, c) in enumerate(zip(shape, cuts)):
        if n % c:
            raise refuse(StrategyError, f"strategy {tuple(cuts)} of {what}: {c} parts do not divide dimension {d} of extent {n}")
    if devices % math.prod(cuts):
        raise refuse(StrategyError, f"strategy {tuple(cuts)} of {what} makes {math.prod(cuts)} parts, which do not divide {devices} devices")
    return tuple(cuts)


def sharding_of(shape, cuts, mesh: ProcessMesh, what: str, at: Sequence[int] | None = None) -> Sharding:
    """The sharding with the given cuts.

    The processes of the mesh form one linear index, major first. Dimension d is split over the factor of the index of
    size cuts[d] and stride position at[d] (the product of the more major factors); by default dimensions follow each
    other.
    """
    cuts = check_cuts(shape, cuts, mesh.size, what)
    before, dims = 1, []
    for d, c in enumerate(cuts):
        dims.append(_parts(mesh, at[d] if at is not None else before, c, what) if c > 1 else ())
        before *= c
    placements: list = [Replicate()] * len(mesh.shape)
    whole = True
    for d, parts in enumerate(dims):
        for axis, _, size in parts:
            whole &= size == mesh.shape[axis]
            placements[axis] = Shard(d)
    if whole and all([a for a, _, _ in parts] == sorted(a for a, _, _ in parts) for parts in dims):
        return Sharding(mesh, tuple(placements))
    return SubAxisSharding(mesh, tuple(placements), Layout(tuple(map(tuple, dims))))


def _parts(mesh, before, count, what):
    """The axis parts that form a factor of size `count` of the linear index of a mesh, after factors of product
    `before`.
    """
    parts, product = [], 1  # product of the axes in front
    for axis, n in enumerate(mesh.shape):
        low, high = max(before, product), min(before * count, product * n)
        if low < high:
            if low % product or high % low or (product * n) % high:
                raise refuse(StrategyError, f"strategy of {what}: a cut into {count} does not fit the mesh of {list(mesh.shape)}")
            parts.append((axis, low // product, high // low))
        product *= n
    return tuple(parts)


def _mesh_of(tensors: Sequence[Tensor], mesh: ProcessMesh | None, strategy) -> ProcessMesh:
    found = mesh or next((t.mesh for t in tensors if t.mesh is not None), None)
    if found is not None:
        return found
    return ProcessMesh(list(range(max([1, *[math.prod(c) for c in strategy if c is not None]]))), ["devices"])


def _links(function: Callable, tensors: Sequence[Tensor]) -> dict[tuple[int, int], int]:
    """(input, dimension) -> loop, for a function that is a single loop nest; empty for others.

    Dimensions with equal loops must be split alike.
    """
    trial, result = Trace(), {}
    with trial.recording(), trial.function("a trial") as frame:
        values = [frame.argument(TensorType(t.shape, t.dtype.element)) for t in tensors]
        function(*[trial.tensor(v) for v in values])
        nests = [o for o in frame.block.operations if "maps" in o.attributes]
    if len(nests) != 1:
        return {}
    for operand, map in zip(nests[0].operands, nests[0].attributes["maps"]):
        for i, value in enumerate(values):
            if value is operand:
                for d, place in enumerate(map.results):
                    if isinstance(place, int):
                        result.setdefault((i, d), place)
    return result


def shard(function: Callable, in_strategy: Sequence, out_strategy: Sequence | None = None, device: str = "threads", level: int = 0,
          mesh: ProcessMesh | None = None) -> Callable:
    """`function` with its inputs (and results) split by strategies. Outside jit a call is one compiled program.

    in_strategy: for each positional tensor a tuple with the number of parts of each dimension, or None (left to the
        compiler). The product of a tuple must divide the number of devices: those of `mesh`, of the operands' mesh, or
        the largest product.
    out_strategy: the same for each result.
    device: "threads" ("cpu") or "cuda" ("gpu").
    level: 0 plans reshards for the least bytes, 1 for the least time, 2 searches for the placements of least memory.
    mesh: the processes; placements of inner values are propagated on it.

    Raises StrategyError, naming the function, the input and the dimension.
    """
    name = getattr(function, "__name__", type(function).__name__)
    if not callable(function):
        raise refuse(StrategyError, f"shard takes a function, not {function!r}")
    if not isinstance(device, str) or device.lower() not in DEVICES:
        raise refuse(StrategyError, f"unknown device '{device}' of shard({name}); expected one of {', '.join(DEVICES)}")
    if isinstance(level, bool) or level not in (0, 1, 2):
        raise refuse(StrategyError, f"level {level!r} of shard({name}) is not 0 (least communication), 1 (least time) "
                                    "or 2 (least memory)")
    if not isinstance(in_strategy, (tuple, list)):
        raise refuse(StrategyError, f"in_strategy {in_strategy!r} of shard({name}) is not a tuple of cuts per input")

    def constrained(*args, **kwargs):
        tensors = [asarray(a) for a in args]
        if len(in_strategy) != len(tensors):
            raise refuse(StrategyError, f"in_strategy of '{name}' has {len(in_strategy)} tuples for {len(tensors)} inputs")
        on = _mesh_of(tensors, mesh, [*in_strategy, *(out_strategy or ())])
        for i, (tensor, cuts) in enumerate(zip(tensors, in_strategy)):
            if cuts is not None:
                check_cuts(tensor.shape, cuts, on.size, f"input {i} of '{name}'")
        at = _places(functools.partial(function, **kwargs), tensors, in_strategy, on)
        placed, constrain = [], current().constrained
        for i, (tensor, cuts) in enumerate(zip(tensors, in_strategy)):
            placed.append(tensor if cuts is None else constrain(tensor, sharding_of(tensor.shape, cuts, on, f"input {i} of '{name}'", at[i])))
        result = function(*placed, **kwargs)
        if out_strategy is None:
            return result
        leaves, _ = tree.flatten(result)
        if len(out_strategy) != len(leaves):
            raise refuse(StrategyError, f"out_strategy of '{name}' has {len(out_strategy)} tuples for {len(leaves)} results")
        return tree.rebuild(result, [leaf.value if cuts is None else constrain(
            leaf.value, sharding_of(leaf.value.shape, cuts, on, f"result {i} of '{name}'"))
            for i, (leaf, cuts) in enumerate(zip(leaves, out_strategy))])

    least_memory = dict(search="dynamic_programming", minimise="memory") if level == 2 else {}
    made = jit(constrained, feeds=False, backend=DEVICES[device.lower()], objective="bytes" if level == 0 else "time", **least_memory)
    functools.update_wrapper(made, function)
    return made


def _places(function, tensors, strategy, mesh) -> list[list[int] | None]:
    """For each input, the position of each dimension's factor in the linear process index.

    Dimensions that an operation iterates over in one loop get the same factor. None for an input: default positions.
    """
    links = _links(function, [asarray(t) for t in tensors])
    cuts_of: dict[int, int] = {}
    for (i, d), loop in links.items():
        if strategy[i] is not None and strategy[i][d] > 1:
            if cuts_of.setdefault(loop, strategy[i][d]) != strategy[i][d]:
                return [None] * len(tensors)  # two inputs split one loop differently: use the defaults
    if not cuts_of or mesh.size % math.prod(cuts_of.values()):
        return [None] * len(tensors)
    begin, before = {}, 1
    for loop in sorted(cuts_of):
        begin[loop] = before
        before *= cuts_of[loop]
    if any(c is not None and any(n > 1 and (i, d) not in links for d, n in enumerate(c)) for i, c in enumerate(strategy)):
        return [None] * len(tensors)
    return [None if c is None else [begin.get(links.get((i, d)), 1) for d in range(len(c))] for i, c in enumerate(strategy)]


