# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Optimizers as pure updates: (parameters, gradients, state) -> (parameters, state). Trees in, trees out."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Sequence

from . import dtypes, ops, replicas, tree
from .compiled import jit
from .errors import ArgumentError, ShapeError
from .layout import check
from .mesh import ProcessMesh
from .ops.creation import zeros_like
from .ops.distributed import shard_tensor
from .sharding import Replicate, Shard, Sharding
from .source import entry, refuse
from .tensor import Tensor, asarray, from_array, spec
from .trace import current

State = dict
SCHEDULES = ("sequential", "gpipe", "1f1b", "interleaved", "zb-h1", "auto")


class Optimizer:
    """`init(parameters)` makes the state, `update` applies gradients. States lie as their parameters.

    Parameters may be any tree; of modules buffers are left alone. Subclasses name their `slots` and write `step`.
    """

    slots: tuple[str, ...] = ()

    @entry
    def init(self, parameters) -> State:
        """The state: a count of steps, and a tensor of zeros a slot and parameter."""
        for _, parameter in _trainable(parameters):
            parameter._used()
        return {"count": asarray(0, "int32"), **{slot: {name: self._zeros(slot, name, p) for name, p in _trainable(parameters)}
                                                for slot in self.slots}}

    def _zeros(self, slot, name, parameter):
        dtype = "float32" if parameter.dtype.itemsize == 2 else parameter.dtype
        if parameter._described:  # it has states that are descriptions
            return spec(parameter.shape, dtype, parameter.mesh, parameter.placements or ())
        return zeros_like(parameter, dtype)

    @entry
    def update(self, parameters, gradients, state: State):
        """Parameters and state after a step. Gradients have the structure of the parameters; one that has none (None) stays as it is.

        Raises ArgumentError for gradients of what is not a parameter, for none at all, and for a state of other parameters, ShapeError for
        another shape.
        """
        found = {leaf.path: asarray(leaf.value) for leaf in tree.flatten(reduced(gradients))[0]}
        names = {name for name, _ in _trainable(parameters)}
        if names and not found:
            raise refuse(ArgumentError, f"there is no gradient of any parameter ('{sorted(names)[0]}', ...)")
        self._check_state(names, state)
        for name in found:
            if name not in names:
                raise refuse(ArgumentError, f"there is a gradient of '{name}', which is not a parameter")
        count = state["count"] + 1
        new_state: State = {"count": count, **{slot: {} for slot in self.slots}}
        values = []
        for leaf in tree.flatten(parameters)[0]:
            p, g = asarray(leaf.value), found.get(leaf.path)
            if g is None:
                if leaf.path in names and self.slots:
                    for slot in self.slots:
                        new_state[slot][leaf.path] = state[slot][leaf.path]
                values.append(leaf.value)
                continue
            if g.shape != p.shape:
                raise refuse(ShapeError, f"the gradient of '{leaf.path}' has shape {g.shape}, the parameter {p.shape}")
            slots = [state[slot][leaf.path] for slot in self.slots]
            p, slots = self._apply(leaf.path, p, g, slots, count)
            values.append(p)
            for slot, value in zip(self.slots, slots):
                new_state[slot][leaf.path] = value
        return tree.rebuild(parameters, values), new_state

    def _check_state(self, names, state):
        if not isinstance(state, dict) or "count" not in state:
            raise refuse(ArgumentError, f"the state of an optimizer is what init(parameters) returns, not {type(state).__name__}")
        for slot in self.slots:
            missing = sorted(names.difference(state.get(slot, ())))
            if missing:
                raise refuse(ArgumentError, f"the state has no '{slot}' of '{missing[0]}'; it was made of other parameters: call init on those that "
                                            "are trained (after wrapping them)")

    def _apply(self, name, p, g, slots, count):
        wide = p.astype("float32") if p.dtype.itemsize == 2 else p
        new, slots = self.step(wide, g.astype(wide.dtype), slots, count)
        return new.astype(p.dtype), slots

    def step(self, p: Tensor, g: Tensor, slots: Sequence[Tensor], count: Tensor) -> tuple[Tensor, Sequence[Tensor]]:
        """One parameter: its new value and those of its slots. count is that of the step, from 1 on."""
        raise NotImplementedError


def reduced(gradients):
    """The means over ranks of gradients that no_sync() left unreduced; others as they are. All ranks call it."""
    if current() is not None or not any(leaf.value._own for leaf in tree.flatten(gradients)[0] if isinstance(leaf.value, Tensor)):
        return gradients
    return _reduced(gradients)


@jit(feeds=False)
def _reduced(gradients):
    return tree.map(lambda g: replicas.settled(g) if g._own else g, gradients)


def _trainable(parameters) -> list[tuple[str, Tensor]]:
    return [(leaf.path, asarray(leaf.value)) for leaf in tree.flatten(parameters)[0]
            if leaf.trainable and asarray(leaf.value).dtype.kind == "float"]


def _number(name, value, low, high=math.inf):
    if isinstance(value, Tensor):
        return value
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise refuse(ArgumentError, f"{name} {value!r} is not a number")
    if not low <= value < high:
        raise refuse(ArgumentError, f"{name} {value} is not in [{low}, {high})")
    return value


class SGD(Optimizer):
    """p - rate * g; with momentum m: v = m * v + g and p - rate * v (nesterov: p - rate * (g + m * v)).

    weight_decay adds decay * p to the gradient.
    """

    def __init__(self, rate: float, momentum: float = 0.0, nesterov: bool = False, weight_decay: float = 0.0):
        self.rate, self.momentum = _number("rate", rate, 0), _number("momentum", momentum, 0, 1)
        self.nesterov, self.weight_decay = nesterov, _number("weight_decay", weight_decay, 0)
        self.slots = ("velocity",) if momentum else ()

    def step(self, p, g, slots, count):
        g = g + self.weight_decay * p if self.weight_decay else g
        if not slots:
            return p - self.rate * g, []
        velocity = self.momentum * slots[0] + g
        return p - self.rate * (g + self.momentum * velocity if self.nesterov else velocity), [velocity]


class Adam(Optimizer):
    """Kingma and Ba, "Adam" (ICLR 2015). weight_decay adds decay * p to the gradient."""

    slots = ("m", "v")

    def __init__(self, rate: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8, weight_decay: float = 0.0):
        self.rate, self.eps, self.weight_decay = _number("rate", rate, 0), _number("eps", eps, 0), _number("weight_decay", weight_decay, 0)
        if not isinstance(betas, (tuple, list)) or len(betas) != 2:
            raise refuse(ArgumentError, f"betas {betas!r} are two numbers in [0, 1)")
        self.betas = tuple(_number("beta", b, 0, 1) for b in betas)

    def direction(self, g, slots, count):
        (m, v), (b1, b2) = slots, self.betas
        m, v = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * ops.square(g)
        t = count.astype("float32")
        # b ** t as exp(t log b): one number for all elements.
        scale1 = 1 - ops.exp(t * math.log(b1)) if b1 else 1.0
        scale2 = 1 - ops.exp(t * math.log(b2)) if b2 else 1.0
        return (m / scale1) / (ops.sqrt(v / scale2) + self.eps), [m, v]

    def step(self, p, g, slots, count):
        g = g + self.weight_decay * p if self.weight_decay else g
        direction, slots = self.direction(g, slots, count)
        return p - self.rate * direction, slots


class AdamW(Adam):
    """Loshchilov and Hutter, "Decoupled weight decay regularization" (ICLR 2019): p shrinks by rate * decay * p."""

    def __init__(self, rate: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8, weight_decay: float = 0.01):
        super().__init__(rate, betas, eps, weight_decay)

    def step(self, p, g, slots, count):
        direction, slots = self.direction(g, slots, count)
        return p - self.rate * (direction + self.weight_decay * p), slots


class ShardedOptimizer(Optimizer):
    """What shard_optimizer makes: the same update on states (and gradients) that are placed otherwise."""

    def __init__(self, inner: Optimizer, place: Callable, gradients: bool, accumulation: int = 1):
        self.inner, self.slots, self._place, self._gradients, self._parts = inner, inner.slots, place, gradients, accumulation

    def init(self, parameters):
        state = super().init(parameters)
        if self._parts > 1:
            state |= {"part": asarray(0, "int32"), "sum": {name: self._zeros("sum", name, p) for name, p in _trainable(parameters)}}
        return state

    def update(self, parameters, gradients, state):
        """With gradient_accumulation k every k-th call changes the parameters, by the mean of the gradients of k calls."""
        if self._parts == 1:
            return super().update(parameters, gradients, state)
        if not isinstance(state, dict) or "sum" not in state:
            raise refuse(ArgumentError, "the state has no 'sum' of gradients; it was made by another optimizer: call init of this one")
        found = {leaf.path: asarray(leaf.value) for leaf in tree.flatten(gradients)[0]}
        for name in found:
            if name not in state["sum"]:
                raise refuse(ArgumentError, f"there is a gradient of '{name}', which is not a parameter")
        total = {name: old + found[name].astype(old.dtype) if name in found else old for name, old in state["sum"].items()}
        part = state["part"] + 1
        last = ops.equal(part, self._parts)
        mean = tree.rebuild(gradients, [total[leaf.path] / self._parts for leaf in tree.flatten(gradients)[0]])
        inner = {k: v for k, v in state.items() if k not in ("part", "sum")}
        new, changed = super().update(parameters, mean, inner)
        chosen = lambda a, b: asarray(b) if a is b else ops.where(last, a, b)
        new = tree.map(chosen, new, parameters)
        changed = tree.map(chosen, changed, inner)
        return new, {**changed, "part": ops.where(last, 0, part), "sum": {name: ops.where(last, 0.0, t) for name, t in total.items()}}

    def _zeros(self, slot, name, parameter):
        made = self.inner._zeros(slot, name, parameter)
        placements = self._place(name, parameter)
        return made if placements is None else _placed_like(made, parameter.mesh, placements)

    def _apply(self, name, p, g, slots, count):
        placements = self._place(name, p)
        if placements is None:
            return self.inner._apply(name, p, g, slots, count)
        if self._gradients:
            g = shard_tensor(g, p.mesh, placements)
        new, slots = self.inner._apply(name, p, g, slots, count)
        return new, [shard_tensor(s, p.mesh, placements) if s.shape == p.shape else s for s in slots]

    def step(self, p, g, slots, count):
        return self.inner.step(p, g, slots, count)


def _placed(tensor: Tensor, mesh, placements) -> Tensor:
    if tensor._scope is not None:
        return shard_tensor(tensor, mesh, placements)
    made = shard_tensor(from_array(tensor._concrete("placing"), tensor.dtype), mesh, placements)
    made._used()
    return made


def shard_optimizer(optimizer: Optimizer, shard_fn: Callable | None = None, gradient_accumulation: int = 1, *, level: int = 0,
                    axis: str | None = None) -> Optimizer:
    """An optimizer whose states lie otherwise than their parameters.

    shard_fn(name, parameter) gives placements of the states of a parameter, or None (as the parameter). Without it the states
    are cut over a mesh axis (the first unless given) over which the parameter is replicated: level 1 the states (ZeRO-1), 2
    also the gradients (ZeRO-2); for level 3 place the parameters themselves by shard_parameters. Level 0 cuts nothing.
    gradient_accumulation: so many calls of update make one step, by the mean of their gradients.

    Raises ArgumentError for what is not an optimizer, for other levels and for no positive number of calls.
    """
    if not isinstance(optimizer, Optimizer):
        raise refuse(ArgumentError, f"{optimizer!r} is not an optimizer; there are SGD, Adam, AdamW and subclasses of Optimizer")
    if level not in (0, 1, 2, 3):
        raise refuse(ArgumentError, f"level {level} of shard_optimizer; there are 0, 1, 2, 3")
    if isinstance(gradient_accumulation, bool) or not isinstance(gradient_accumulation, int) or gradient_accumulation < 1:
        raise refuse(ArgumentError, f"gradient_accumulation {gradient_accumulation!r} of shard_optimizer is not a positive integer")
    if shard_fn is not None and not callable(shard_fn):
        raise refuse(ArgumentError, f"shard_fn {shard_fn!r} of shard_optimizer is a function of name and parameter that gives placements")
    place = shard_fn or ((lambda name, p: zero_placements(p, axis)) if level else (lambda name, p: None))
    return ShardedOptimizer(optimizer, place, level >= 2, gradient_accumulation)


def zero_placements(parameter: Tensor, axis: str | None = None) -> list | None:
    """The placements of a parameter with a dimension more cut, over `axis`; None where that axis cuts it already, or no
    dimension is as long as the axis. Of dimensions the first that divides is taken, else the longest."""
    mesh, placements = parameter.mesh, list(parameter.placements or ())
    if mesh is None:
        return None
    placements += [Replicate()] * (len(mesh.shape) - len(placements))
    number = mesh.axis(axis) if axis is not None else 0
    if not isinstance(placements[number], Replicate):
        return None
    taken = {p.dim for p in placements if isinstance(p, Shard)}
    extent = mesh.shape[number]
    free = [d for d, n in enumerate(parameter.shape) if d not in taken and n >= extent]
    if not free:
        return None
    best = next((d for d in free if parameter.shape[d] % extent == 0), max(free, key=lambda d: parameter.shape[d]))
    placements[number] = Shard(best)
    return placements


@entry
def shard_parameters(parameters, mesh: ProcessMesh, rule: Callable | None = None, axis: str | None = None):
    """A copy whose parameters lie on `mesh`: by rule(name, tensor), which gives placements or None (replicated); without a rule
    cut over `axis` where that can be (ZeRO-3). Buffers are replicated."""
    def one(leaf):
        tensor = asarray(leaf.value)
        whole = [Replicate()] * len(mesh.shape)
        placements = whole
        if leaf.parameter:
            placements = rule(leaf.path, tensor) if rule else zero_placements(_placed_like(tensor, mesh, whole), axis)
        return _placed_like(tensor, mesh, whole if placements is None else placements)
    return tree.rebuild(parameters, [one(leaf) for leaf in tree.flatten(parameters)[0]])


def _placed_like(tensor, mesh, placements):
    if tensor._described:  # a description, or lazily made
        tensor.sharding = check(Sharding(mesh, tuple(placements)), tensor.shape, tensor.dtype.element, "the parameter")
        return tensor
    return _placed(tensor, mesh, placements)


def mixed_precision(function: Callable, dtype="bfloat16") -> Callable:
    """`function` computed in 16 bits: floats among its arguments are converted, its results are float32. Differentiated by the
    original arguments, gradients are float32: those are the master weights."""
    def cast(value, to):
        leaves, _ = tree.flatten(value)
        return tree.rebuild(value, [asarray(leaf.value).astype(to) if asarray(leaf.value).dtype.kind == "float" else leaf.value for leaf in leaves])

    kind = dtypes.dtype(dtype)
    if kind.kind != "float":
        raise refuse(ArgumentError, f"mixed_precision computes in floats, not in {kind}")

    def computed(*args, **kwargs):
        result = function(*[cast(a, dtype) for a in args], **{k: cast(v, dtype) for k, v in kwargs.items()})
        return cast(result, "float32")
    computed.__name__ = getattr(function, "__name__", "computed")
    computed.__wrapped__ = function
    return computed


def accumulated(value_and_gradients: Callable, parts: int, schedule: str | None = None) -> Callable:
    """value_and_grad over `parts` equal parts of the batch, one after the other: means of values and of gradients. Arguments after
    the first are taken apart along their first axis: part i has the rows i, i + parts, ..., which are on every device that has rows.
    Gradients are summed before they are reduced over devices. schedule: where the function is on several meshes, the order in which
    these compute the parts at the same time (docs/pipelines.md); the bits are the same in every one."""
    if schedule is not None and schedule not in SCHEDULES:
        raise refuse(ArgumentError, f"schedule {schedule!r} of 'accumulated'; there are {', '.join(SCHEDULES)}")
    if isinstance(parts, bool) or not isinstance(parts, int) or parts < 1:
        raise refuse(ArgumentError, f"{parts!r} parts of 'accumulated'; there is at least one")

    def run(parameters, *batch):
        total = None
        pieces = [_apart(b, parts) for b in batch]
        trace = current()
        if trace is not None and schedule is not None:
            trace.schedule = schedule
        for i in range(parts):
            with trace.of_micro_batch(i) if trace is not None else contextlib.nullcontext():
                value, gradients = value_and_gradients(parameters, *[p[:, i] for p in pieces])
            now = (value, gradients)
            total = now if total is None else tree.map(lambda a, b: a + b, total, now)
        return tree.map(lambda t: t / parts, total)
    return run


def _apart(batch, parts):
    """(rows, ...) as (rows / parts, parts, ...)."""
    batch = asarray(batch)
    if batch.ndim == 0 or batch.shape[0] % parts:
        raise refuse(ShapeError, f"a batch of shape {batch.shape} has no {parts} equal parts; its first axis is a multiple of that")
    return batch.reshape((batch.shape[0] // parts, parts, *batch.shape[1:]))

