# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pipeline parallelism: the layers of a model in stages on meshes, and micro-batches (docs/pipelines.md)."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Sequence

import numpy as np

from . import shared, tree
from .autodiff import value_and_grad
from .compiled import Jitted, jit
from .errors import ArgumentError, MeshError
from .mesh import ProcessMesh
from .nn.layers import Lambda, Sequential
from .nn.module import Module
from .ops.distributed import reshard, shard_tensor
from .optim import SCHEDULES, accumulated
from .sharding import Replicate, Shard
from .source import entry, refuse
from .tensor import asarray


class Pipeline(Module):
    """The layers of a model, placed on the meshes of their stages. A call moves the activations from mesh to mesh.

    A parameter shared by several stages is on the mesh of the first one; each other mesh has a copy during a step.
    """

    def __init__(self, layers: Sequence, stages: Sequence[ProcessMesh], split: Sequence[int], microbatches: int, schedule: str,
                 rule: Callable | None, batch_axis: str | None):
        super().__init__()
        self.stages, self.split, self.microbatches, self.schedule, self.batch_axis = tuple(stages), tuple(split), microbatches, schedule, batch_axis
        homes = [mesh for mesh, count in zip(stages, split) for _ in range(count)]
        placed, self.copies = shared.place(layers, homes, rule)
        self.layers = list(placed)

    def forward(self, x):
        layers, first = shared.with_copies(self).layers, 0
        for mesh, count in zip(self.stages, self.split):
            x = tree.map(lambda value: self._placed(asarray(value), mesh), x)
            for layer in layers[first:first + count]:
                x = layer(x)
            first += count
        return x

    def _placed(self, x, mesh):
        place = shard_tensor if x.mesh is None or x.mesh == mesh else reshard
        return place(x, mesh, [Shard(0) if name == self.batch_axis and x.ndim else Replicate() for name in mesh.dim_names])

    def value_and_grad(self, loss: Callable) -> Callable:
        """A function of (pipeline, *batch) that returns the mean loss over micro-batches, and its gradient.

        loss is a function of (pipeline, *micro_batch). Micro-batch i has the rows i, i + microbatches, ... of the
        batch. In `jit` the stages work on several micro-batches at a time; gradients are summed in the order of the
        micro-batches. A parameter shared by several stages is sent to them once per step, and its gradient is the sum
        over the stages, in their order.

        Raises ShapeError if the number of micro-batches does not divide the rows.
        """
        if not callable(loss):
            raise refuse(ArgumentError, f"value_and_grad of a pipeline takes a function of (pipeline, *batch), not {loss!r}")
        of_batch = accumulated(value_and_grad(loss), self.microbatches, self.schedule)

        def run(pipe, *batch):
            if not isinstance(pipe, Pipeline) or not pipe.copies:
                return of_batch(pipe, *batch)
            spread = shared.with_copies(pipe)
            value, gradients = of_batch(spread, *batch)
            shared.take_buffers(pipe, spread)
            return value, shared.gathered(pipe, gradients)
        return run


@entry
def pipeline(model: Module | Sequence[Callable], stages: int | Sequence[ProcessMesh], microbatches: int, schedule: str = "1f1b",
             split: Sequence[int] | None = None, rule: Callable | None = None, batch_axis: str | None = None, sample=None) -> Pipeline:
    """`model` in pipeline stages. `plan_pipeline` searches for stages, micro-batches and schedule.

    model: an nn.Sequential, or a list of modules and functions of one value (a tensor, or a tuple, list or dictionary of
        tensors). A function has no parameters of its own; a bound method has those of its module.
    stages: one mesh per stage, repeating in turn for "interleaved"; or a number, with stage i on process i.
    microbatches: the number of equal parts of a batch.
    schedule: "sequential", "gpipe", "1f1b", "interleaved", "zb-h1" (docs/pipelines.md), or "auto", the shortest modelled
        step.
    split: the number of layers of each stage; default: equal, with larger first stages.
    rule(name, tensor): the placements of a parameter ("3.weight" of layer 3) within its stage, or None for replicated.
    batch_axis: the mesh axis that shards each micro-batch.
    sample: an array of the shape and type of a micro-batch; the split then minimizes the longest modelled forward pass
        of a stage.

    Raises ArgumentError for an invalid model, stages, number of micro-batches, split or schedule; MeshError if
    different meshes share processes.
    """
    layers = layers_of(model)
    meshes = _meshes(stages)
    if isinstance(microbatches, bool) or not isinstance(microbatches, int) or microbatches < 1:
        raise refuse(ArgumentError, f"microbatches {microbatches!r} of a pipeline is not a positive integer")
    if schedule not in SCHEDULES:
        raise refuse(ArgumentError, f"unknown schedule {schedule!r} of a pipeline; expected one of {', '.join(SCHEDULES)}")
    if batch_axis is not None:
        for mesh in meshes:
            if batch_axis not in mesh.dim_names:
                raise refuse(ArgumentError, f"batch_axis {batch_axis!r} of a pipeline is not an axis of {mesh!r}")
    if sample is not None and split is not None:
        raise refuse(ArgumentError, "a pipeline takes split or sample, not both: the sample chooses the split")
    if len(layers) < len(meshes) and (nested := sum(len(layer) - 1 for layer in layers if isinstance(layer, Sequential))):
        raise refuse(ArgumentError, f"{len(layers)} layers in {len(meshes)} stages; each stage has at least one "
                                    "layer, and a nested nn.Sequential "
                                    f"counts as one: give its layers, {len(layers) + nested} in total")
    counts = _split(len(layers), len(meshes), split)
    if sample is not None:
        counts = balanced(_seconds_of(layers, sample), len(meshes))
    _check_schedule(schedule, meshes, microbatches)
    return Pipeline(layers, meshes, counts, microbatches, schedule, rule, batch_axis)


def layers_of(model: Module | Sequence[Callable]) -> list[Module]:
    """The layers of a model in order. Raises ArgumentError if it is not a Sequential or a list of layers."""
    layers = list(model.layers) if isinstance(model, Sequential) else list(model) if isinstance(model, (list, tuple)) else None
    if layers is None:
        raise refuse(ArgumentError, f"a pipeline takes an nn.Sequential or a list of layers, not {type(model).__name__}; give the layers in "
                                    "order")
    made = list(Sequential(*layers).layers)
    for i, layer in enumerate(made):
        if isinstance(layer, Lambda) and (found := _module_used_by(layer.function, set())) is not None:
            name, module = found
            raise refuse(ArgumentError, f"layer {i} of a pipeline is a function that uses the parameters of '{name}' ({type(module).__name__}), "
                                        "which the pipeline does not have; give a module with it as an attribute, or a method of it")
    return made


def _module_used_by(function, seen: set[int]):
    """(name, module with parameters) of one that a function captures; None if there is none."""
    if id(function) in seen:
        return None
    seen.add(id(function))
    around: dict[str, object] = {}
    if isinstance(function, functools.partial):
        around = {"function": function.func, **{f"argument {i}": value for i, value in enumerate(function.args)}, **function.keywords}
    elif isinstance(function, Jitted) or hasattr(function, "__wrapped__"):
        around = {"function": function.__wrapped__}
    elif hasattr(function, "__code__"):
        code = function.__code__
        around = {name: function.__globals__[name] for name in code.co_names if name in function.__globals__}
        for name, cell in zip(code.co_freevars, function.__closure__ or ()):
            with contextlib.suppress(ValueError):  # not assigned yet
                around[name] = cell.cell_contents
    for name, value in around.items():
        if isinstance(value, Module) and any(leaf.trainable for leaf in tree.flatten(value)[0]):
            return name, value
        if callable(value) and not isinstance(value, (type, Module)) and (found := _module_used_by(value, seen)) is not None:
            return found
    return None


def _meshes(stages) -> list[ProcessMesh]:
    if isinstance(stages, int) and not isinstance(stages, bool):
        if stages < 1:
            raise refuse(ArgumentError, f"{stages} stages of a pipeline; give at least one")
        return [ProcessMesh([i], ["x"], f"stage{i}") for i in range(stages)]
    meshes = list(stages) if isinstance(stages, (list, tuple)) else []
    if not meshes or not all(isinstance(mesh, ProcessMesh) for mesh in meshes):
        raise refuse(ArgumentError, f"stages {stages!r} of a pipeline is not a number or a list of ProcessMesh")
    owners: dict[int, ProcessMesh] = {}
    for mesh in meshes:
        for process in mesh.process_ids:
            if owners.setdefault(process, mesh) != mesh:
                raise refuse(MeshError, f"process {process} is in {owners[process]!r} and in {mesh!r}; meshes of a "
                                        "pipeline's stages must be equal "
                                        "or disjoint")
    return meshes


def _split(layers: int, stages: int, split) -> list[int]:
    if split is None:
        if layers < stages:
            raise refuse(ArgumentError, f"{layers} layers in {stages} stages; each stage has at least one layer")
        return [layers // stages + (i < layers % stages) for i in range(stages)]
    counts = list(split)
    if len(counts) != stages or not all(isinstance(n, int) and n > 0 for n in counts) or sum(counts) != layers:
        raise refuse(ArgumentError, f"split {counts} of {layers} layers in {stages} stages; give a positive number "
                                    f"per stage, with sum {layers}")
    return counts


def _seconds_of(layers: Sequence, sample) -> list[float]:
    """Modelled seconds of each layer's forward pass on one device, for `sample` as the input of the first layer."""
    seconds, value = [], np.asarray(sample)
    for layer in layers:
        takes = (layer, value) if isinstance(layer, Module) else (value,)
        forward = jit((lambda layer, x: layer(x)) if isinstance(layer, Module) else layer)
        seconds.append(forward.explain(*takes)["modelled_seconds"])
        value = forward(*takes).numpy()
    return seconds


def balanced(seconds: Sequence[float], stages: int) -> list[int]:
    """The number of layers of each stage, at least one, that minimizes the longest stage.

    Ties give the first stages more layers.
    """
    count = len(seconds)
    before = [0.0]
    for each in seconds:
        before.append(before[-1] + each)
    # longest[k][i]: the longest stage of the layers from i on in k stages; cut[k][i]: the end of the first of them.
    longest = [[float("inf")] * (count + 1) for _ in range(stages + 1)]
    cut = [[count] * (count + 1) for _ in range(stages + 1)]
    longest[0][count] = 0.0
    for k in range(1, stages + 1):
        for i in range(count):
            for end in range(count - k + 1, i, -1):
                if (value := max(before[end] - before[i], longest[k - 1][end])) < longest[k][i]:
                    longest[k][i], cut[k][i] = value, end
    counts, i = [], 0
    for k in range(stages, 0, -1):
        counts.append(cut[k][i] - i)
        i = cut[k][i]
    return counts


def _check_schedule(schedule: str, meshes, microbatches: int) -> None:
    """Raises ArgumentError for what dist-schedule-pipeline would reject, at the caller's line."""
    distinct = list(dict.fromkeys(meshes))
    if meshes != distinct * (len(meshes) // len(distinct)):
        raise refuse(ArgumentError, f"stages on {[mesh.name for mesh in meshes]} revisit a mesh out of turn; repeat "
                                    "all meshes in the same order: "
                                    f"{[mesh.name for mesh in distinct] * max(1, len(meshes) // len(distinct))}")
    wraps = len(meshes) > len(distinct)
    if wraps and schedule not in ("interleaved", "sequential", "auto"):
        raise refuse(ArgumentError, f"schedule '{schedule}' needs one stage per mesh, got {len(meshes)} stages on "
                                    f"{len(distinct)} meshes; use interleaved")
    if schedule == "interleaved" and not wraps:
        raise refuse(ArgumentError, "schedule 'interleaved' needs several stages per mesh; repeat the meshes, or use 1f1b")
    if schedule == "interleaved" and microbatches % len(distinct):
        raise refuse(ArgumentError, f"schedule 'interleaved' needs a multiple of {len(distinct)} micro-batches, one per mesh, not "
                                    f"{microbatches}; use {(microbatches // len(distinct) + 1) * len(distinct)}")

