# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PyTorch optimizers that reduce gradients over all ranks during the backward pass."""

from __future__ import annotations

import collections
import contextlib
import warnings

import torch

from ...core import whole
from ...errors import ArgumentError, Error
from ..collectives import grouped_allreduce_async
from ..compression import Compression
from ..optimizer import factors
from ..process_sets import ProcessSet, global_process_set
from ..reductions import Average, ReduceOp, reduction
from .collectives import sparse_allreduce_async


class GradientError(Error, AssertionError):
    """A gradient was computed or cleared between its reduction and the step that uses it."""


class _DistributedOptimizer:
    """The methods that DistributedOptimizer adds to the class of an optimizer."""

    def _distribute(self, named_parameters, compression, passes, options, groups, process_set, op, sparse_as_dense) -> None:
        self._compression, self._passes, self._options, self._set = compression, passes, options, process_set
        self._op, self._sparse_as_dense = op, sparse_as_dense
        self._names = _names(self, named_parameters)
        self._delays: dict = {}
        self._handles: dict = {}  # by group (tuple of parameters): the call, and the contexts of compression
        self._ready: dict = collections.defaultdict(set)
        self._synchronized, self._should_synchronize = False, True
        self._trained = [p for group in self.param_groups for p in group["params"] if p.requires_grad]
        self._groups = _groups(self._trained, groups)
        self._group_of = {p: group for group in self._groups for p in group}
        for p in self._trained:
            self._delays[p] = passes
            p.register_post_accumulate_grad_hook(self._hook)

    def _hook(self, p) -> None:
        group = self._group_of[p]
        if group in self._handles or self._delays[p] <= 0:
            raise GradientError(f"the gradient of '{self._names[p]}' was computed more than backward_passes_per_step ({self._passes}) times "
                                "before step() or synchronize(); raise backward_passes_per_step, or call step() in between")
        self._delays[p] -= 1
        if self._delays[p] == 0:
            self._ready[group].add(p)
            if len(self._ready[group]) == len(group):
                self._reduce(group)

    def _reduce(self, group) -> None:
        self._ready.pop(group, None)
        for p in group:
            if p.grad is None:  # unused on this rank
                p.grad = torch.zeros_like(p)
        if any(p.grad.is_sparse for p in group):
            return self._reduce_sparse(group)
        pairs = [self._compression.compress(p.grad / self._passes if self._passes > 1 else p.grad) for p in group]
        handle = grouped_allreduce_async([pair[0] for pair in pairs], name=f"gradient.{self._names[group[0]]}", process_set=self._set,
                                         **self._options)
        self._handles[group] = handle, [pair[1] for pair in pairs]

    def _reduce_sparse(self, group) -> None:
        if len(group) > 1:
            raise ArgumentError(f"the gradient of '{self._names[next(p for p in group if p.grad.is_sparse)]}' is sparse and in a group "
                                "with others; leave it out of groups, and do not use num_groups")
        gradient, name = group[0].grad, f"gradient.{self._names[group[0]]}"
        if self._passes > 1:
            gradient = gradient / self._passes
        if self._sparse_as_dense:
            handle = grouped_allreduce_async([gradient.to_dense()], name=name, process_set=self._set, **self._options)
            self._handles[group] = lambda: [handle.wait()[0].to_sparse()], None
        else:
            wait = sparse_allreduce_async(gradient.coalesce(), name, self._op, self._set)
            self._handles[group] = lambda: [wait()], None

    def set_backward_passes_per_step(self, passes: int) -> None:
        self._passes = whole("backward_passes_per_step", passes, 1, 1 << 30)
        self._delays = {p: self._passes for p in self._delays}

    def synchronize(self) -> None:
        """Wait until all gradients are reduced, including those that this backward pass did not compute.

        step() calls it, except inside skip_synchronize().
        """
        for group in self._groups:
            if group not in self._handles:
                self._reduce(group)
        for group in self._groups:
            handle, contexts = self._handles.pop(group)
            if contexts is None:
                group[0].grad = handle()[0]
                continue
            for p, result, context in zip(group, handle.wait(), contexts):
                p.grad.copy_(self._compression.decompress(result, context))
        self._delays = {p: self._passes for p in self._delays}
        self._synchronized = True

    @contextlib.contextmanager
    def skip_synchronize(self):
        """A context for a step() after synchronize(), for example if gradients are clipped in between."""
        self._should_synchronize = False
        try:
            yield
        finally:
            self._should_synchronize = True

    def step(self, closure=None):
        if self._should_synchronize:
            if self._synchronized:
                warnings.warn("step() synchronizes again after synchronize(); put it inside 'with optimizer.skip_synchronize():'", stacklevel=2)
            self.synchronize()
        self._synchronized = False
        return super(self.__class__, self).step(closure)

    def zero_grad(self, *args, **kwargs):
        if self._handles:
            raise GradientError("zero_grad() was called after backward() and before step() or synchronize(), while gradients are being reduced")
        return super(self.__class__, self).zero_grad(*args, **kwargs)


def _names(optimizer, named_parameters) -> dict:
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    if named_parameters is None:
        return {p: f"{i}.{j}" for i, group in enumerate(optimizer.param_groups) for j, p in enumerate(group["params"])}
    pairs = list(named_parameters)
    if any(not isinstance(pair, tuple) or len(pair) != 2 for pair in pairs):
        raise ArgumentError("named_parameters must be (name, parameter) pairs, as from model.named_parameters()")
    twice = [name for name, count in collections.Counter(name for name, _ in pairs).items() if count > 1]
    if twice:
        raise ArgumentError(f"duplicate name '{twice[0]}' in named_parameters")
    names = {p: name for name, p in pairs}
    missing = [p for p in parameters if p not in names]
    if missing:
        raise ArgumentError(f"named_parameters lack {len(missing)} parameters of the optimizer, the first of shape {tuple(missing[0].shape)}; "
                            "give all, or leave named_parameters out")
    return names


def _groups(parameters, groups) -> list[tuple]:
    """The groups of parameters that are reduced together: one each, `groups` of equal length, or the given lists.

    Raises ArgumentError.
    """
    if groups is None:
        return [(p,) for p in parameters]
    if isinstance(groups, int) and not isinstance(groups, bool):
        count = min(groups, len(parameters))
        if groups < 0:
            raise ArgumentError(f"num_groups {groups} is below 0")
        return [tuple(parameters[len(parameters) * i // count:len(parameters) * (i + 1) // count]) for i in range(count)] if count else _groups(parameters, None)
    if not isinstance(groups, (list, tuple)) or not all(isinstance(group, (list, tuple)) for group in groups):
        raise ArgumentError(f"groups {groups!r} is neither a number nor a list of lists of parameters")
    made = [tuple(p for p in group if p.requires_grad) for group in groups]
    listed = [p for group in made for p in group]
    if len(set(listed)) != len(listed) or not set(listed) <= set(parameters):
        raise ArgumentError("groups must be lists of parameters of the optimizer, with each parameter in at most one list")
    return [group for group in made if group] + [(p,) for p in parameters if p not in set(listed)]


def DistributedOptimizer(optimizer: torch.optim.Optimizer, named_parameters=None, compression=Compression.none,
                         backward_passes_per_step: int = 1, op: ReduceOp = Average, gradient_predivide_factor: float = 1.0,
                         num_groups: int = 0, groups=None, sparse_as_dense: bool = False,
                         process_set: ProcessSet = global_process_set) -> torch.optim.Optimizer:
    """Extend an optimizer in place to reduce gradients over all ranks, and return it.

    The reduction of a gradient starts when the backward pass has computed it; step() waits for all.
    backward_passes_per_step: number of passes whose mean gradient is reduced. num_groups, groups: reduce parameters in
    that many groups of equal length, or in the given lists of parameters. sparse_as_dense: reduce sparse gradients as
    dense ones instead of gathering them from all ranks. Raises ArgumentError.
    """
    if not isinstance(optimizer, torch.optim.Optimizer):
        raise ArgumentError(f"optimizer {type(optimizer).__name__} is not one of torch.optim; tessera.horovod wraps those of tessera")
    if hasattr(optimizer, "_distribute"):
        raise ArgumentError("optimizer is already a DistributedOptimizer")
    passes = whole("backward_passes_per_step", backward_passes_per_step, 1, 1 << 30)
    options = factors(reduction(op), gradient_predivide_factor, process_set.size())
    own = {name: getattr(_DistributedOptimizer, name) for name in vars(_DistributedOptimizer) if not name.startswith("__")}
    optimizer.__class__ = type(type(optimizer).__name__, (type(optimizer),), own)
    optimizer._distribute(named_parameters, compression, passes, options, groups if groups is not None else num_groups or None, process_set,
                          reduction(op), sparse_as_dense)
    return optimizer
