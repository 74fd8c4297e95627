# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Optimizers of tessera that reduce gradients over all ranks."""

from __future__ import annotations

from .. import tree
from ..core import whole
from ..errors import ArgumentError
from ..optim import SGD, Adam, AdamW, Optimizer
from ..tensor import asarray
from .collectives import grouped_allreduce
from .compression import Compression
from .process_sets import ProcessSet, global_process_set
from .reductions import Average, ReduceOp, Sum, factor, reduction


def _reduced(gradients, name: str, options: dict):
    """A tree of gradients, reduced over all ranks."""
    leaves, _ = tree.flatten(gradients)
    results = grouped_allreduce([asarray(leaf.value) for leaf in leaves], name=name, **options)
    return tree.rebuild(gradients, results)


class _DistributedOptimizer(Optimizer):
    """An optimizer whose `update` first reduces the gradients over all ranks; it must run outside jit."""

    def __init__(self, inner: Optimizer, options: dict, passes: int):
        self.inner, self.slots, self._options, self._passes = inner, inner.slots, options, passes

    def init(self, parameters):
        state = self.inner.init(parameters)
        return state if self._passes == 1 else {**state, "pass": 0, "sum": None}

    def update(self, parameters, gradients, state):
        """Update the parameters: with backward_passes_per_step k, at every k-th call, by the mean gradient."""
        if self._passes > 1:
            if not isinstance(state, dict) or "pass" not in state:
                raise ArgumentError("the state has no 'pass', so another optimizer created it; call init of this one")
            total = gradients if state["sum"] is None else tree.map(lambda a, b: asarray(a) + asarray(b), state["sum"], gradients)
            count = int(state["pass"]) + 1
            state = {key: value for key, value in state.items() if key not in ("pass", "sum")}
            if count < self._passes:
                return parameters, {**state, "pass": count, "sum": total}
            gradients = tree.map(lambda a: asarray(a) / self._passes, total)
        parameters, state = self.inner.update(parameters, _reduced(gradients, "gradients", self._options), state)
        return parameters, state if self._passes == 1 else {**state, "pass": 0, "sum": None}

    def step(self, p, g, slots, count):
        return self.inner.step(p, g, slots, count)


def factors(op: ReduceOp, predivide, size: int) -> dict:
    """The op and scale factors of a reduction that divides by `predivide` before it and by the rest after it.

    Raises ArgumentError.
    """
    divisor = factor("gradient_predivide_factor", predivide)
    if divisor == 1.0:
        return {"op": op}
    if op is not Average:
        raise ArgumentError(f"gradient_predivide_factor {predivide} needs op Average, not {op}")
    if divisor <= 0:
        raise ArgumentError(f"gradient_predivide_factor {predivide} is not above 0")
    return {"op": Sum, "prescale_factor": 1 / divisor, "postscale_factor": divisor / size}


def DistributedOptimizer(optimizer: Optimizer, name: str | None = None, compression=Compression.none, backward_passes_per_step: int = 1,
                         op: ReduceOp = Average, gradient_predivide_factor: float = 1.0,
                         process_set: ProcessSet = global_process_set) -> Optimizer:
    """Wrap an optimizer of tessera.optim to reduce gradients over all ranks (for PyTorch, use tessera.horovod.torch).

    backward_passes_per_step: number of gradients to average locally before a reduction. gradient_predivide_factor: with
    op Average, the part of the division that precedes the reduction. Raises ArgumentError.
    """
    if not isinstance(optimizer, Optimizer):
        where = "; tessera.horovod.torch wraps those of PyTorch" if hasattr(optimizer, "param_groups") else ""
        raise ArgumentError(f"optimizer {type(optimizer).__name__} is not one of tessera.optim{where}")
    passes = whole("backward_passes_per_step", backward_passes_per_step, 1, 1 << 30)
    options = factors(reduction(op), gradient_predivide_factor, process_set.size())
    return _DistributedOptimizer(optimizer, {**options, "compression": compression, "process_set": process_set}, passes)


class Trainer:
    """Parameters and an optimizer that updates them in place.

    params: a tree of tensors in mutable containers (Module, dictionary). optimizer: one of tessera.optim, or 'sgd',
    'adam' or 'adamw' with the options optimizer_params.
    """

    _NAMES = {"sgd": SGD, "adam": Adam, "adamw": AdamW}

    def __init__(self, params, optimizer: Optimizer | str, optimizer_params: dict | None = None):
        if isinstance(optimizer, str):
            if optimizer not in self._NAMES:
                raise ArgumentError(f"unknown optimizer '{optimizer}'; expected one of {', '.join(self._NAMES)}")
            options = dict(optimizer_params or {})
            if "learning_rate" in options:
                options["rate"] = options.pop("learning_rate")
            optimizer = self._NAMES[optimizer](**options)
        if not isinstance(optimizer, Optimizer):
            raise ArgumentError(f"optimizer {type(optimizer).__name__} is not one of tessera.optim")
        self.params, self.optimizer = params, optimizer
        self.state = optimizer.init(params)

    @property
    def learning_rate(self):
        return self.optimizer.rate

    def set_learning_rate(self, rate: float) -> None:
        """Set the rate of the following steps."""
        self.optimizer.rate = rate

    def step(self, gradients, batch_size: int = 1) -> None:
        """Update the parameters. gradients: sums over a batch of `batch_size` samples, or means if it is 1."""
        scaled = tree.map(lambda g: asarray(g) / batch_size, gradients) if batch_size != 1 else gradients
        new, self.state = self.optimizer.update(self.params, self._combined(scaled), self.state)
        tree.assign(self.params, [leaf.value for leaf in tree.flatten(new)[0]])

    def _combined(self, gradients):
        return gradients


class DistributedTrainer(Trainer):
    """A Trainer that averages gradients over all ranks. Call broadcast_parameters(params) first."""

    def __init__(self, params, optimizer: Optimizer | str, optimizer_params: dict | None = None, compression=Compression.none,
                 gradient_predivide_factor: float = 1.0, prefix: str | None = None, process_set: ProcessSet = global_process_set):
        if isinstance(optimizer, _DistributedOptimizer):
            raise ArgumentError("optimizer is a DistributedOptimizer, which already averages; give the optimizer that it wraps")
        self._options = {**factors(Average, gradient_predivide_factor, process_set.size()), "compression": compression, "process_set": process_set}
        self._name = f"{prefix or ''}trainer"
        super().__init__(params, optimizer, optimizer_params)

    def _combined(self, gradients):
        return _reduced(gradients, self._name, self._options)
