# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Search for pipeline plans: stages, micro-batches, schedule, and data and tensor parallelism within stages.

Each tried candidate is compiled and judged by its modelled step time and planned memory. Candidates are tried in the
order of a lower bound of the step time: the slowest stage computes all micro-batches and waits for the other stages
once. The search ends when no bound is below the best step.
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
_MOST_PER_STAGE = 4  # micro-batches per stage: with these the bubble is below 20 %


@dataclasses.dataclass(frozen=True)
class PipelinePlan:
    """A division of a model over devices.

    stages; chunks: stages per mesh; data, tensor: devices of a stage that shard the batch, and the parameters by
    `rule`; split: layers per stage. Modelled: seconds per step, and memory, the peak bytes of the most loaded device.
    """

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
        """The Pipeline of this plan."""
        return _build(self._model, self, self._rule, self.schedule)

    @property
    def text(self) -> str:
        """The plan in one line, with its modelled step in ms and memory in MiB."""
        return (f"{self.stages} stages of {self.data} x {self.tensor} devices, {self.microbatches} micro-batches, {self.schedule}: "
                f"{1e3 * self.seconds:.3g} ms, {self.memory / 2 ** 20:.3g} MiB")


@dataclasses.dataclass(frozen=True)
class _Shape:
    """A candidate before it is compiled."""

    stages: int
    data: int
    tensor: int
    chunks: int
    microbatches: int
    split: tuple[int, ...]
    bound: float  # lower bound of the step time in seconds
    memory_bound: float

    @property
    def group(self) -> tuple[int, ...]:
        """Equal for candidates that differ only in their micro-batches."""
        return self.stages, self.data, self.tensor, self.chunks

    @property
    def numbers(self) -> tuple[int, ...]:
        return self.stages, self.data, self.tensor, self.chunks, self.microbatches


@entry
def plan_pipeline(model: Module | Sequence[Callable], loss: Callable, batch: Sequence, devices: int, microbatches: int | None = None,
                  optimizer: Optimizer | None = None, rule: Callable | None = None, memory_budget: float | None = None, topology=None,
                  trials: int = 8, sample=None) -> list[PipelinePlan]:
    """Pipeline plans to train `model` on `devices` devices within a memory budget, fastest modelled step first.

    model: as in `pipeline`.
    loss: a function of (pipeline, *batch).
    batch: the arrays, or descriptions (`spec`), of one step.
    microbatches: their number; default: searched.
    optimizer: its update becomes part of the step.
    rule(name, tensor): placements of a parameter on the axes "dp" and "tp" of a stage; without it parameters are
        replicated within a stage, and "tp" has one device.
    memory_budget: GiB per device.
    topology: the machine's topology file.
    trials: the maximum number of compiled candidates.
    sample: the input of the first layer, by default the first item of the batch.

    Raises ArgumentError for an invalid model, batch or number of devices, and if no plan fits the budget, naming the
    smallest.
    """
    layers = layers_of(model)
    for name, value in (("devices", devices), ("trials", trials), *((("microbatches", microbatches),) if microbatches is not None else ())):
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise refuse(ArgumentError, f"{name} {value!r} of plan_pipeline is not a positive integer")
    if not isinstance(batch, (tuple, list)) or not batch or not all(tree.is_array(each) and asarray(each).ndim for each in batch):
        raise refuse(ArgumentError, "batch of plan_pipeline is not a tuple of arrays (x, y) with rows")
    if memory_budget is not None and not memory_budget > 0:
        raise refuse(ArgumentError, f"memory_budget {memory_budget!r} of plan_pipeline is not a positive number of GiB")
    search = _Search(layers, loss, tuple(map(_described, batch)), optimizer, rule, topology)
    shapes = search.shapes(devices, microbatches, _described(batch[0] if sample is None else sample))
    if not shapes:
        raise refuse(ArgumentError, f"no pipeline has {devices} devices, {len(layers)} layers and {search.rows} rows per step"
                                    f"{f' in {microbatches} micro-batches' if microbatches else ''}; the number of stages must divide the "
                                    "devices, micro-batches the rows, and data-parallel devices the rows of a micro-batch")
    budget = math.inf if memory_budget is None else memory_budget * _GIB
    plans = search.run(shapes, budget, trials)
    fitting = sorted((plan for plan in plans if plan.memory <= budget), key=lambda plan: (plan.seconds, plan.memory))
    if not fitting:
        least = min(plans, key=lambda plan: plan.memory)
        raise refuse(ArgumentError, f"none of {len(plans)} pipelines tried fits into {budget / 2 ** 20:.3g} MiB per "
                                    "device; the smallest is "
                                    f"{least.text}")
    return fitting


class _Search:
    def __init__(self, layers, loss, batch, optimizer, rule, topology):
        self.layers, self.loss, self.batch, self.optimizer, self.rule, self.topology = layers, loss, batch, optimizer, rule, topology
        self.rows = batch[0].shape[0]
        self._seconds: dict = {}

    def shapes(self, devices: int, microbatches: int | None, sample: Tensor) -> list[_Shape]:
        """The candidates, by increasing bound."""
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
        """Candidate numbers of micro-batches: for 1, 2, 4, ... micro-batches per stage the next divisor of the rows."""
        if wanted is not None:
            return [wanted]
        divisors = [n for n in range(1, self.rows + 1) if self.rows % n == 0]
        goals = itertools.takewhile(lambda n: n <= _MOST_PER_STAGE * stages, (stages << i for i in itertools.count()))
        return sorted({next((n for n in divisors if n >= goal), self.rows) for goal in goals})

    def _shape(self, stages, data, tensor, chunks, parts, seconds) -> _Shape:
        split = balanced(seconds, stages * chunks)
        ends = list(itertools.accumulate(split))
        places = [range(end - count, end) for end, count in zip(ends, split)]
        of_mesh = [[layer for place in places[s::stages] for layer in place] for s in range(stages)]
        busy = [sum(seconds[i] for i in mine) / tensor for mine in of_mesh]
        # The bubble of a zero-bubble schedule is a third of a micro-batch per other stage; chunks of an interleaved one shorten it.
        waits = (sum(busy) - max(busy)) / 3 / (1 if chunks == 1 else chunks / 2)
        copies = 2 + (len(self.optimizer.slots) if self.optimizer is not None else 0)
        memory = max(sum(self._bytes(self.layers[i]) for i in mine) for mine in of_mesh) * copies / tensor
        return _Shape(stages, data, tensor, chunks, parts, tuple(split), parts * max(busy) + waits, memory)

    @staticmethod
    def _bytes(layer) -> int:
        return sum(leaf.value.size * leaf.value.dtype.itemsize for leaf in tree.flatten(layer)[0] if leaf.trainable)

    def _layer_seconds(self, sample: Tensor, rows: int) -> list[float]:
        """Modelled seconds of each layer, forward and backward, for `rows` rows on one device."""
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
        """(modelled seconds, description of the result) of a layer."""
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
        ended: set[tuple] = set()  # groups whose step became slower with another number of micro-batches
        for shape in _round_robin([shape for shape in shapes if shape.memory_bound <= budget]):
            if left == 0 or shape.bound >= best or shape.group in ended:
                continue
            left -= 1
            plans += (made := self._tried(shape, budget))
            seconds = min((plan.seconds for plan in made if plan.memory <= budget), default=math.inf)
            if seconds > of_group.setdefault(shape.group, seconds):
                ended.add(shape.group)
            best, of_group[shape.group] = min(best, seconds), min(seconds, of_group[shape.group])
        if not any(plan.memory <= budget for plan in plans):  # try the smallest: many stages, small micro-batches
            done = {(plan.stages, plan.data, plan.tensor, plan.chunks, plan.microbatches) for plan in plans}
            for shape in sorted(shapes, key=lambda each: (each.memory_bound, -each.stages, -each.microbatches, each.chunks))[:2]:
                if shape.numbers not in done:
                    plans += self._tried(shape, budget)
        return plans

    def _tried(self, shape: _Shape, budget: float) -> list[PipelinePlan]:
        """The plan with the fastest schedule; if it exceeds the budget, also those with the other schedules."""
        first = self._plan(shape, "auto")
        if first.memory <= budget or shape.stages == 1 or shape.chunks > 1:
            return [first]
        return [first, *[self._plan(shape, other) for other in ("1f1b", "zb-h1", "sequential") if other != first.schedule]]

    def _plan(self, shape: _Shape, schedule: str) -> PipelinePlan:
        pipe = _build(_described_tree(Sequential(*self.layers)), shape, self.rule, schedule)
        state = self.optimizer.init(pipe) if self.optimizer is not None else None

        def step(pipe, state, *batch):
            value, gradients = pipe.value_and_grad(self.loss)(pipe, *batch)
            return (gradients, value) if self.optimizer is None else (*self.optimizer.update(pipe, gradients, state), value)
        report = jit(step, donate=self.optimizer is not None, topology=self.topology).explain(pipe, state, *self.batch)
        taken = report["pipeline"]["schedule"] if "pipeline" in report else schedule
        return PipelinePlan(*shape.numbers, taken, shape.split, report["modelled_seconds"], report["peak_memory_bytes"],
                            self.layers, self.rule)


def _round_robin(shapes: list[_Shape]) -> list[_Shape]:
    """The first candidate of each group, then the second of each, ..."""
    turns: dict[tuple, list[_Shape]] = {}
    for shape in shapes:
        turns.setdefault(shape.group, []).append(shape)
    return [shape for turn in itertools.zip_longest(*turns.values()) for shape in turn if shape is not None]


def _build(model, shape, rule, schedule) -> Pipeline:
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
