# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How to divide a model among devices: stages, micro-batches, their schedule, and data and tensor parallelism within a stage.

A candidate is compiled, and its modelled step and planned memory decide. Candidates are tried in the order of a lower bound of their step:
the slowest stage computes for all micro-batches, and waits for the other stages once. The search ends where no bound is below the best step.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Sequence

import numpy as np

from . import tree
from .autodiff import value_and_grad
from .compiled import jit
from .errors import ArgumentError
from .mesh import ProcessMesh
from .nn.layers import Sequential
from .nn.module import Module
from .optim import Optimizer
from .source import entry, refuse
from .stages import Pipeline, balanced, layers_of, pipeline
from .tensor import Tensor, asarray, spec

_GIB = 1024 ** 3
_LONGEST = 4  # micro-batches a stage, at most: the bubble is below 20 % then


@dataclasses.dataclass(frozen=True)
class PipelinePlan:
    """A way to divide a model among devices. `chunks`: stages that each mesh has; `data`, `tensor`: devices of a stage that cut the batch,
    and parameters by `rule`. Modelled: `seconds` of a step, `memory`, the bytes of the device that takes most."""

    stages: int
    data: int
    tensor: int
    chunks: int
    microbatches: int
    schedule: str
    split: tuple[int, ...]
    seconds: float
    memory: float
    _model: object = dataclasses.field(repr=False, compare=False)
    _rule: Callable | None = dataclasses.field(repr=False, compare=False)

    def build(self) -> Pipeline:
        """The pipeline."""
        return _built(self._model, self, self._rule, self.schedule)

    @property
    def text(self) -> str:
        return (f"{self.stages} stages of {self.data} x {self.tensor} devices, {self.microbatches} micro-batches, {self.schedule}: "
                f"{1e3 * self.seconds:.3g} ms, {self.memory / 2 ** 20:.3g} MiB")


@dataclasses.dataclass(frozen=True)
class _Shape:
    """What is decided before a candidate is compiled."""

    stages: int
    data: int
    tensor: int
    chunks: int
    microbatches: int
    split: tuple[int, ...]
    bound: float  # seconds, at least
    memory_bound: float

    @property
    def group(self) -> tuple[int, ...]:
        """What candidates have in common that differ in their micro-batches."""
        return self.stages, self.data, self.tensor, self.chunks

    @property
    def numbers(self) -> tuple[int, ...]:
        return self.stages, self.data, self.tensor, self.chunks, self.microbatches


@entry
def plan_pipeline(model: Module | Sequence[Callable], loss: Callable, batch: Sequence, devices: int, microbatches: int | None = None,
                  optimizer: Optimizer | None = None, rule: Callable | None = None, memory_budget: float | None = None, topology=None,
                  trials: int = 8, sample=None) -> list[PipelinePlan]:
    """Ways to train `model` in stages on `devices`, the fastest by the model first; all fit into the budget.

    model: as of `pipeline`. loss: a function of (pipeline, *batch). batch: arrays, or descriptions made by `spec`, of one step. sample: what the
    first layer takes, by default the first of the batch. microbatches: their number, where it is given. optimizer: whose update is a part of
    the step. rule(name, tensor): placements of a parameter on the axes "dp" and "tp" of a stage; without it parameters are whole on each device
    of a stage, and "tp" has one device. memory_budget: GiB a device. topology: the file of the machine. trials: how many candidates are
    compiled, at most.

    Raises ArgumentError where the model, the batch or the devices are none, and where nothing fits into the budget; it names the least then.
    """
    layers = layers_of(model)
    for name, value in (("devices", devices), ("trials", trials), *((("microbatches", microbatches),) if microbatches is not None else ())):
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise refuse(ArgumentError, f"{name} {value!r} of plan_pipeline is not a positive integer")
    if not isinstance(batch, (tuple, list)) or not batch or not all(tree.is_array(each) and asarray(each).ndim for each in batch):
        raise refuse(ArgumentError, "batch of plan_pipeline is a tuple of arrays, (x, y); each has rows")
    if memory_budget is not None and not memory_budget > 0:
        raise refuse(ArgumentError, f"memory_budget {memory_budget!r} of plan_pipeline is not a positive number of GiB")
    search = _Search(layers, loss, tuple(map(_described, batch)), optimizer, rule, topology)
    shapes = search.shapes(devices, microbatches, _described(batch[0] if sample is None else sample))
    if not shapes:
        raise refuse(ArgumentError, f"no pipeline has {devices} devices, {len(layers)} layers and {search.rows} rows a step"
                                    f"{f' in {microbatches} micro-batches' if microbatches else ''}; stages and the devices of each divide the "
                                    "devices, micro-batches the rows, and devices that cut a micro-batch its rows")
    budget = math.inf if memory_budget is None else memory_budget * _GIB
    plans = search.run(shapes, budget, trials)
    fitting = sorted((plan for plan in plans if plan.memory <= budget), key=lambda plan: (plan.seconds, plan.memory))
    if not fitting:
        least = min(plans, key=lambda plan: plan.memory)
        raise refuse(ArgumentError, f"no pipeline of {len(plans)} that were tried fits into {budget / 2 ** 20:.3g} MiB per device; the least is "
                                    f"{least.text}")
    return fitting


class _Search:
    def __init__(self, layers, loss, batch, optimizer, rule, topology):
        self.layers, self.loss, self.batch, self.optimizer, self.rule, self.topology = layers, loss, batch, optimizer, rule, topology
        self.rows = batch[0].shape[0]
        self._seconds: dict = {}

    def shapes(self, devices: int, microbatches: int | None, sample: Tensor) -> list[_Shape]:
        """Candidates, by their bound."""
        found = []
        for stages in (n for n in range(1, min(devices, len(self.layers)) + 1) if devices % n == 0):
            each = devices // stages
            for tensor in (n for n in range(1, each + 1) if each % n == 0 and (n == 1 or self.rule is not None)):
                data = each // tensor
                for parts in self._parts(stages, microbatches):
                    if self.rows % parts or (self.rows // parts) % data:
                        continue
                    seconds = self._layer_seconds(sample, sample.shape[0] * self.rows // (self.batch[0].shape[0] * parts * data))
                    for chunks in (1, 2):
                        if chunks > 1 and (stages == 1 or parts % stages or stages * chunks > len(self.layers)):
                            continue
                        found.append(self._shape(stages, data, tensor, chunks, parts, seconds))
        return sorted(found, key=lambda shape: (shape.bound, shape.memory_bound, shape.numbers))

    def _parts(self, stages: int, wanted: int | None) -> list[int]:
        """Numbers of micro-batches: the divisors of the rows next to the stages, twice as many, ..."""
        if wanted is not None:
            return [wanted]
        divisors = [n for n in range(1, self.rows + 1) if self.rows % n == 0]
        goals = itertools.takewhile(lambda n: n <= _LONGEST * stages, (stages << i for i in itertools.count()))
        return sorted({next((n for n in divisors if n >= goal), self.rows) for goal in goals})

    def _shape(self, stages, data, tensor, chunks, parts, seconds) -> _Shape:
        split = balanced(seconds, stages * chunks)
        ends = list(itertools.accumulate(split))
        places = [range(end - count, end) for end, count in zip(ends, split)]
        of_mesh = [[layer for place in places[s::stages] for layer in place] for s in range(stages)]
        busy = [sum(seconds[i] for i in mine) / tensor for mine in of_mesh]
        # A bubble of zero-bubble schedules, or of the chunks of interleaved ones: a third of a micro-batch for each other stage.
        waits = (sum(busy) - max(busy)) / 3 / (1 if chunks == 1 else chunks / 2)
        copies = 2 + (len(self.optimizer.slots) if self.optimizer is not None else 0)
        memory = max(sum(self._bytes(self.layers[i]) for i in mine) for mine in of_mesh) * copies / tensor
        return _Shape(stages, data, tensor, chunks, parts, tuple(split), parts * max(busy) + waits, memory)

    @staticmethod
    def _bytes(layer) -> int:
        return sum(leaf.value.size * leaf.value.dtype.itemsize for leaf in tree.flatten(layer)[0] if leaf.trainable)

    def _layer_seconds(self, sample: Tensor, rows: int) -> list[float]:
        """Modelled seconds of each layer, forward and backward, for so many rows on one device."""
        seconds, value = [], spec((rows, *sample.shape[1:]), sample.dtype)
        for layer in self.layers:
            plain = _described_tree(layer)
            key = tree.flatten(plain)[1], tuple((leaf.value.shape, leaf.value.dtype) for leaf in tree.flatten(plain)[0]), value.shape, value.dtype
            if key not in self._seconds:
                self._seconds[key] = self._measured(plain, value)
            each, value = self._seconds[key]
            seconds.append(each)
        return seconds

    def _measured(self, layer, value):
        """(seconds, a description of the result)."""
        results = []

        def of(layer, x):
            y = layer(x)
            results.append(y)
            return asarray(y).astype("float32").sum()
        arguments = [i for i, each in enumerate((layer, value)) if any(
            leaf.trainable and asarray(leaf.value).dtype.kind == "float" for leaf in tree.flatten(each)[0])]
        made = jit(value_and_grad(of, arguments) if arguments else of, topology=self.topology)
        seconds = made.explain(layer, value)["modelled_seconds"]
        return seconds, spec(results[-1].shape, results[-1].dtype)

    def run(self, shapes: list[_Shape], budget: float, trials: int) -> list[PipelinePlan]:
        plans: list[PipelinePlan] = []
        best, left = math.inf, trials
        of_group: dict[tuple, float] = {}  # the best step
        ended: set[tuple] = set()  # groups in which more or fewer micro-batches have become slower
        for shape in _in_turn([shape for shape in shapes if shape.memory_bound <= budget]):
            if left == 0 or shape.bound >= best or shape.group in ended:
                continue
            left -= 1
            plans += (made := self._tried(shape, budget))
            seconds = min((plan.seconds for plan in made if plan.memory <= budget), default=math.inf)
            if seconds > of_group.setdefault(shape.group, seconds):
                ended.add(shape.group)
            best, of_group[shape.group] = min(best, seconds), min(seconds, of_group[shape.group])
        if not any(plan.memory <= budget for plan in plans):  # what takes least: many stages, small micro-batches
            done = {(plan.stages, plan.data, plan.tensor, plan.chunks, plan.microbatches) for plan in plans}
            for shape in sorted(shapes, key=lambda each: (each.memory_bound, -each.stages, -each.microbatches, each.chunks))[:2]:
                if shape.numbers not in done:
                    plans += self._tried(shape, budget)
        return plans

    def _tried(self, shape: _Shape, budget: float) -> list[PipelinePlan]:
        """The plan with the fastest schedule; where that takes too much, those of the others, too."""
        first = self._plan(shape, "auto")
        if first.memory <= budget or shape.stages == 1 or shape.chunks > 1:
            return [first]
        return [first, *[self._plan(shape, other) for other in ("1f1b", "zb-h1", "sequential") if other != first.schedule]]

    def _plan(self, shape: _Shape, schedule: str) -> PipelinePlan:
        pipe = _built(_described_tree(Sequential(*self.layers)), shape, self.rule, schedule)
        state = self.optimizer.init(pipe) if self.optimizer is not None else None

        def step(pipe, state, *batch):
            value, gradients = pipe.value_and_grad(self.loss)(pipe, *batch)
            return (gradients, value) if self.optimizer is None else (*self.optimizer.update(pipe, gradients, state), value)
        report = jit(step, donate=self.optimizer is not None, topology=self.topology).explain(pipe, state, *self.batch)
        taken = report["pipeline"]["schedule"] if "pipeline" in report else schedule
        return PipelinePlan(*shape.numbers, taken, shape.split, report["modelled_seconds"], report["peak_memory_bytes"],
                            self.layers, self.rule)


def _in_turn(shapes: list[_Shape]) -> list[_Shape]:
    """The first of each group, the second of each, ..."""
    turns: dict[tuple, list[_Shape]] = {}
    for shape in shapes:
        turns.setdefault(shape.group, []).append(shape)
    return [shape for turn in itertools.zip_longest(*turns.values()) for shape in turn if shape is not None]


def _built(model, shape, rule, schedule) -> Pipeline:
    each = shape.data * shape.tensor
    ids = np.arange(shape.stages * each).reshape(shape.stages, shape.data, shape.tensor)
    names = ["dp", "tp"] if rule is not None else ["dp"]
    meshes = [ProcessMesh(ids[s] if rule is not None else ids[s].reshape(-1), names, f"stage{s}") for s in range(shape.stages)]
    return pipeline(model, meshes * shape.chunks, shape.microbatches, schedule, list(shape.split), rule, "dp" if shape.data > 1 else None)


def _described(value) -> Tensor:
    value = asarray(value)
    return spec(value.shape, value.dtype)


def _described_tree(value):
    return tree.rebuild(value, [_described(leaf.value) for leaf in tree.flatten(value)[0]])
