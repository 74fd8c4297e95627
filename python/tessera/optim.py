# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Optimizers as pure functions on trees: (parameters, gradients, state) -> (parameters, state)."""

from __future__ import annotations

import contextlib
import dis
import itertools
import math
from collections.abc import Callable, Sequence

from . import dtypes, ops, replicas, tree
from .compiled import jit
from .errors import ArgumentError, ShapeError
from .layout import check
from .mesh import ProcessMesh
from .ops.creation import zeros_like
from .ops.distributed import Unused, shard_tensor
from .sharding import Open, Replicate, Shard, Sharding
from .source import entry, refuse, warn
from .tensor import Tensor, asarray, from_array, spec
from .trace import current

State = dict
SCHEDULES = ("sequential", "gpipe", "1f1b", "interleaved", "zb-h1", "auto")


class Optimizer:
    """Base class: `init(parameters)` makes the state, `update` applies gradients.

    States have the placements of their parameters. Along mesh axes that replicate a parameter which others cut, the
    compiler places its states (Open()): where devices divide the update, each keeps a part of them.

    Parameters are any tree; buffers of modules are not updated. A subclass names its `slots` and defines `step`.
    """

    slots: tuple[str, ...] = ()

    @entry
    def init(self, parameters) -> State:
        """The initial state: a step count, and per slot a tensor of zeros for each parameter.

        States of 16-bit parameters are float32.
        """
        for _, parameter in _trainable(parameters):
            parameter._used()
        return {"count": asarray(0, "int32"), **{slot: {name: self._zeros(slot, name, p) for name, p in _trainable(parameters)}
                                                for slot in self.slots}}

    def _zeros(self, slot, name, parameter):
        dtype = "float32" if parameter.dtype.itemsize == 2 else parameter.dtype
        placed = _open(parameter.sharding)
        if parameter._described:  # its states are descriptions too
            return spec(parameter.shape, dtype, parameter.mesh, placed.placements if placed else parameter.placements or ())
        made = zeros_like(parameter, dtype)
        if made._scope is None and placed is not None:
            made.sharding = placed
        return made

    @entry
    def update(self, parameters, gradients, state: State):
        """(new parameters, new state) after one step.

        gradients: a tree of the structure of `parameters`; a parameter whose gradient is None does not change.

        Raises ArgumentError for gradients of unknown parameters, if there are no gradients, and for a state of other
        parameters; ShapeError if a gradient's shape differs.
        """
        found = {leaf.path: asarray(leaf.value) for leaf in tree.flatten(reduced(gradients))[0]}
        names = {name for name, _ in _trainable(parameters)}
        if names and not found:
            raise refuse(ArgumentError, f"no parameter has a gradient ('{sorted(names)[0]}', ...)")
        self._check_state(names, state)
        for name in found:
            if name not in names:
                raise refuse(ArgumentError, f"gradient of '{name}', which is not a parameter")
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
            raise refuse(ArgumentError, f"expected the state that init(parameters) returns, got {type(state).__name__}")
        for slot in self.slots:
            missing = sorted(names.difference(state.get(slot, ())))
            if missing:
                raise refuse(ArgumentError, f"the state has no '{slot}' of '{missing[0]}'; it belongs to other "
                                            "parameters: call init on the parameters "
                                            "that are trained, after wrapping them")

    def _apply(self, name, p, g, slots, count):
        wide = p.astype("float32") if p.dtype.itemsize == 2 else p
        new, slots = self.step(wide, g.astype(wide.dtype), slots, count)
        return new.astype(p.dtype), slots

    def step(self, p: Tensor, g: Tensor, slots: Sequence[Tensor], count: Tensor) -> tuple[Tensor, Sequence[Tensor]]:
        """Updates one parameter: (new value, new values of its slots). `count` is the number of the step, from 1."""
        raise NotImplementedError


def reduced(gradients):
    """Averages over ranks the gradients that no_sync() left unreduced; returns others unchanged.

    Collective: all ranks call it.
    """
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
    """Stochastic gradient descent: p -= rate * g.

    With momentum m: v = m * v + g and p -= rate * v, or with nesterov p -= rate * (g + m * v). weight_decay adds decay
    * p to the gradient.
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
            raise refuse(ArgumentError, f"betas {betas!r} are not two numbers in [0, 1)")
        self.betas = tuple(_number("beta", b, 0, 1) for b in betas)

    def direction(self, g, slots, count):
        """(the update before the rate, new moments) of a gradient; the moments are corrected for their zero start by `count`."""
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
    """Adam with decoupled weight decay: p also shrinks by rate * decay * p (Loshchilov and Hutter, ICLR 2019)."""

    def __init__(self, rate: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8, weight_decay: float = 0.01):
        super().__init__(rate, betas, eps, weight_decay)

    def step(self, p, g, slots, count):
        direction, slots = self.direction(g, slots, count)
        return p - self.rate * (direction + self.weight_decay * p), slots


class ShardedOptimizer(Optimizer):
    """The result of shard_optimizer: the same update on states (and gradients) with other placements."""

    def __init__(self, inner: Optimizer, place: Callable, gradients: bool, accumulation: int = 1):
        self.inner, self.slots, self._place, self._gradients, self._parts = inner, inner.slots, place, gradients, accumulation

    def init(self, parameters):
        state = super().init(parameters)
        if self._parts > 1:
            state |= {"part": asarray(0, "int32"), "sum": {name: self._zeros("sum", name, p) for name, p in _trainable(parameters)}}
        return state

    def update(self, parameters, gradients, state):
        """As Optimizer.update.

        With gradient_accumulation k, only every k-th call updates, by the mean of the last k gradients.
        """
        if self._parts == 1:
            return super().update(parameters, gradients, state)
        if not isinstance(state, dict) or "sum" not in state:
            raise refuse(ArgumentError, "the state has no 'sum' of gradients; it belongs to another optimizer: call init of this one")
        found = {leaf.path: asarray(leaf.value) for leaf in tree.flatten(gradients)[0]}
        for name in found:
            if name not in state["sum"]:
                raise refuse(ArgumentError, f"gradient of '{name}', which is not a parameter")
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


def _open(sharding: Sharding | None) -> Sharding | None:
    """The sharding of a cut tensor with the axes that replicate it left to the compiler; None for other tensors."""
    if type(sharding) is not Sharding or not any(isinstance(p, Shard) for p in sharding.placements):
        return None
    return Sharding(sharding.mesh, tuple(Open() if isinstance(p, Replicate) else p for p in sharding.placements))


def _placed(tensor: Tensor, mesh, placements) -> Tensor:
    if tensor._scope is not None:
        return shard_tensor(tensor, mesh, placements)
    made = shard_tensor(from_array(tensor._concrete("placing"), tensor.dtype), mesh, placements)
    made._used()
    return made


def shard_optimizer(optimizer: Optimizer, shard_fn: Callable | None = None, gradient_accumulation: int = 1, *, level: int = 0,
                    axis: str | None = None) -> Optimizer:
    """An optimizer whose states are sharded independently of their parameters.

    shard_fn(name, parameter): the placements of a parameter's states, or None for those of the parameter. Without it
        states are sharded over `axis` where the parameter is replicated along it.
    gradient_accumulation: the number of update calls per step; their gradients are averaged.
    level: 1 shards the states (ZeRO-1), 2 also the gradients (ZeRO-2); for 3 also place the parameters with
        shard_parameters. 0 shards nothing by itself.
    axis: a mesh axis, default the first.

    Raises ArgumentError if `optimizer` is not an Optimizer, for other levels, and if gradient_accumulation is not
    positive.
    """
    if not isinstance(optimizer, Optimizer):
        raise refuse(ArgumentError, f"{optimizer!r} is not an optimizer (SGD, Adam, AdamW or another subclass of Optimizer)")
    if level not in (0, 1, 2, 3):
        raise refuse(ArgumentError, f"level {level} of shard_optimizer is not 0, 1, 2 or 3")
    if isinstance(gradient_accumulation, bool) or not isinstance(gradient_accumulation, int) or gradient_accumulation < 1:
        raise refuse(ArgumentError, f"gradient_accumulation {gradient_accumulation!r} of shard_optimizer is not a positive integer")
    if shard_fn is not None and not callable(shard_fn):
        raise refuse(ArgumentError, f"shard_fn {shard_fn!r} of shard_optimizer is not a function (name, parameter) -> placements")
    place = shard_fn or ((lambda name, p: zero_placements(p, axis)) if level else (lambda name, p: None))
    return ShardedOptimizer(optimizer, place, level >= 2, gradient_accumulation)


def zero_placements(parameter: Tensor, axis: str | None = None) -> list | None:
    """The placements of a parameter with one more dimension sharded, over mesh axis `axis`.

    Chooses the first free dimension that the axis divides, else the longest. Returns None if the axis already shards
    the parameter, or no free dimension is as long as the axis.
    """
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
    """A copy of `parameters` placed on `mesh`.

    rule(name, tensor) returns placements, or None for replicated; without a rule parameters are sharded over `axis`
    where possible (ZeRO-3). Buffers are replicated. Warns if the rule chooses by names and gives no parameter a placement.
    """
    made, unused = placed_parameters(parameters, mesh, rule, axis), Unused("shard_parameters")
    leaves = tree.flatten(made)[0]
    unused.used = not leaves
    for old, new in zip(tree.flatten(parameters)[0], leaves):
        if new.value is old.value or new.value._scope is not None:
            unused.used = True  # placed itself; a traced result that is unused has a warning of its own
        else:
            new.value._unused = unused
    return made


def placed_parameters(parameters, mesh: ProcessMesh, rule: Callable | None, axis: str | None = None):
    """As shard_parameters, without a warning if the result is unused."""
    chosen = {}

    def one(leaf):
        tensor = asarray(leaf.value)
        whole = [Replicate()] * len(mesh.shape)
        placements = whole
        if leaf.parameter:
            placements = rule(leaf.path, tensor) if rule else zero_placements(_placed_like(tensor, mesh, whole), axis)
            chosen[leaf.path] = placements
        return _placed_like(tensor, mesh, whole if placements is None else placements)
    made = tree.rebuild(parameters, [one(leaf) for leaf in tree.flatten(parameters)[0]])
    if chosen and all(placements is None for placements in chosen.values()) and _reads_name(rule):
        names = ", ".join(f"'{name}'" for name in itertools.islice(chosen, 5))
        warn(f"the rule of shard_parameters returns None for all {len(chosen)} parameters, which are replicated; it is given the names "
             f"{names}{', ...' if len(chosen) > 5 else ''}")
    return made


def _reads_name(rule) -> bool:
    """Whether the code of a rule uses its first argument."""
    code = getattr(rule, "__code__", None)
    if code is None or not code.co_varnames:
        return False
    read = (i.argval if isinstance(i.argval, tuple) else (i.argval,) for i in dis.get_instructions(code))
    return any(code.co_varnames[0] in names for names in read)


def _placed_like(tensor, mesh, placements):
    if tensor._described:  # a description, or made under LazyGuard
        tensor.sharding = check(Sharding(mesh, tuple(placements)), tensor.shape, tensor.dtype.element, "the parameter")
        return tensor
    return _placed(tensor, mesh, placements)


def mixed_precision(function: Callable, dtype="bfloat16") -> Callable:
    """`function` computed in 16 bits: floating-point arguments are cast to `dtype`, results to float32.

    Gradients with respect to the original arguments, the float32 master weights, are float32. Raises ArgumentError if
    dtype is not a floating-point type.
    """
    def cast(value, to):
        leaves, _ = tree.flatten(value)
        return tree.rebuild(value, [asarray(leaf.value).astype(to) if asarray(leaf.value).dtype.kind == "float" else leaf.value for leaf in leaves])

    kind = dtypes.dtype(dtype)
    if kind.kind != "float":
        raise refuse(ArgumentError, f"mixed_precision takes a floating-point dtype, not {kind}")

    def computed(*args, **kwargs):
        result = function(*[cast(a, dtype) for a in args], **{k: cast(v, dtype) for k, v in kwargs.items()})
        return cast(result, "float32")
    computed.__name__ = getattr(function, "__name__", "computed")
    computed.__wrapped__ = function
    return computed


def accumulated(value_and_gradients: Callable, parts: int, schedule: str | None = None) -> Callable:
    """value_and_grad over `parts` equal micro-batches, in order: the means of values and of gradients.

    Arguments after the first are split along their first axis: micro-batch i has the rows i, i + parts, ..., so that
    every device that holds rows takes part. Gradients are summed before the reduction over devices. schedule: for a
    function on several meshes, the order in which these run the micro-batches concurrently (docs/pipelines.md); results
    are bitwise equal for all schedules.

    Raises ArgumentError for an unknown schedule or if parts is not positive; ShapeError if parts does not divide the
    rows.
    """
    if schedule is not None and schedule not in SCHEDULES:
        raise refuse(ArgumentError, f"unknown schedule {schedule!r} of 'accumulated'; expected one of {', '.join(SCHEDULES)}")
    if isinstance(parts, bool) or not isinstance(parts, int) or parts < 1:
        raise refuse(ArgumentError, f"parts {parts!r} of 'accumulated' is not a positive integer")

    def run(parameters, *batch):
        total = None
        pieces = [_split_rows(b, parts) for b in batch]
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


def _split_rows(batch, parts):
    """Reshapes (rows, ...) to (rows / parts, parts, ...)."""
    batch = asarray(batch)
    if batch.ndim == 0 or batch.shape[0] % parts:
        raise refuse(ShapeError, f"a batch of shape {batch.shape} is not divisible into {parts} parts; its first axis "
                                 "must be a multiple of that")
    return batch.reshape((batch.shape[0] // parts, parts, *batch.shape[1:]))

