# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Data parallelism as placements, per-operation strategies, and pictures of how tensors lie."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from . import ops, tree
from .compiled import infer_layout, infer_predict_layout
from .eager import run_eagerly
from .errors import ArgumentError
from .layout import layout
from .mesh import ProcessMesh
from .nn.convolution import BatchNorm
from .nn.module import Module
from .ops.distributed import shard_tensor
from .optim import shard_parameters
from .sharding import Partial, Replicate, Shard
from .source import entry, refuse
from .strategy import shard
from .tensor import Tensor, asarray
from .trace import current

__all__ = ["DistributedDataParallel", "accumulate", "check_replicas", "infer_layout", "infer_predict_layout", "shard", "visualize_sharding"]


class DistributedDataParallel(Module):
    """`module` on every process of a mesh axis, each with its part of the batch.

    Wrapping places parameters and buffers of process 0 on all (Replicate). A call cuts the first axis of dense inputs over
    `axis`. Gradients are then sums over the processes, which the compiler reduces once. `module` is the one inside: save its
    state_dict, which a program without a mesh loads.

    In place of a mesh, device_ids names the processes. output_device, as in PyTorch, is one of them; results stay where they are
    computed. broadcast_buffers: batch normalisation is over the whole batch and its statistics are those of all; False: each process
    normalises by its own part, and has statistics of its own (buffers get a first axis of processes).

    Raises ArgumentError for what is no module, no mesh, no processes of it.
    """

    def __init__(self, module: Module, mesh: ProcessMesh | Sequence[int] | None = None, axis: str | int | None = None,
                 device_ids: Sequence[int] | None = None, output_device: int | None = None, broadcast_buffers: bool = True):
        super().__init__()
        if not isinstance(module, Module):
            raise refuse(ArgumentError, f"DistributedDataParallel wraps a Module, not {module!r}")
        if isinstance(mesh, (list, tuple, range)) and device_ids is None:
            mesh, device_ids = None, mesh
        if mesh is None and device_ids is not None:
            mesh = ProcessMesh(list(device_ids), ["dp"])
        if not isinstance(mesh, ProcessMesh):
            raise refuse(ArgumentError, f"DistributedDataParallel takes a ProcessMesh, or device_ids, not {mesh!r}")
        if device_ids is not None and list(device_ids) != mesh.process_ids:
            raise refuse(ArgumentError, f"device_ids {list(device_ids)} are not the processes {mesh.process_ids} of the mesh; give one of both")
        if output_device is not None and output_device not in mesh.process_ids:
            raise refuse(ArgumentError, f"output_device {output_device!r} is none of the processes {mesh.process_ids}")
        if not isinstance(broadcast_buffers, bool):
            raise refuse(ArgumentError, f"broadcast_buffers {broadcast_buffers!r} of DistributedDataParallel is True or False")
        if isinstance(axis, bool) or not isinstance(axis, (str, int, type(None))) or isinstance(axis, int) and not 0 <= axis < mesh.ndim:
            raise refuse(ArgumentError, f"axis {axis!r} of DistributedDataParallel: a name or number of an axis of {list(mesh.dim_names)}")
        self.mesh, self.axis = mesh, mesh.axis(axis) if isinstance(axis, str) else axis or 0
        self.synchronised = True
        self.module = shard_parameters(module, mesh, lambda name, tensor: None)
        if not broadcast_buffers:
            for inner in self.module.modules():
                if isinstance(inner, BatchNorm):
                    inner.separate(mesh, self.batch_placements)

    @property
    def batch_placements(self) -> list:
        return [Shard(0) if i == self.axis else Replicate() for i in range(len(self.mesh.shape))]

    def forward(self, *inputs, **kwargs):
        return self.module(*[self._placed(x) for x in inputs], **kwargs)

    def _placed(self, x):
        if not tree.is_array(x):
            return x
        x = asarray(x)
        if x.ndim == 0 or x.is_distributed:
            return x
        return shard_tensor(x, self.mesh, self.batch_placements)

    def unreduced(self, tensor: Tensor) -> Tensor:
        """A traced tensor that stays a sum over the data-parallel axis."""
        return shard_tensor(tensor, self.mesh, [Partial() if i == self.axis else Replicate() for i in range(len(self.mesh.shape))])

    @contextlib.contextmanager
    def no_sync(self):
        """Inside, gradients (and values) that value_and_grad returns stay sums over the processes that nobody has reduced. Add
        them up by `accumulate`; the step outside, which adds the last one, reduces once."""
        before = self.synchronised
        object.__setattr__(self, "synchronised", False)
        try:
            yield self
        finally:
            object.__setattr__(self, "synchronised", before)


def accumulate(total, more):
    """The sums of two trees, leaf by leaf; None for `total` begins. What is partial in `more` stays so."""
    if total is None:
        return more

    def add(a, b):
        a, b = asarray(a), asarray(b)
        partial = next((t.sharding for t in (a, b) if t.placements is not None and any(isinstance(p, Partial) for p in t.placements)), None)
        if partial is None:
            return a + b
        if current() is None:
            return run_eagerly(_added, (a, b, partial), {})
        return _added(current(), a, b, partial)
    return tree.map(add, total, more)


def _added(trace, a, b, sharding):
    a, b = [t if t.sharding == sharding else shard_tensor(t, sharding.mesh, sharding.placements) for t in (a, b)]
    return shard_tensor(ops.add(a, b), sharding.mesh, sharding.placements)


def check_replicas(*models: Module) -> None:
    """Raises ArgumentError, which names the first parameter that differs in place, shape or type, unless the models of all ranks have
    one structure."""
    first = [(name, p.shape, p.dtype) for name, p in models[0].named_parameters()]
    for rank, model in enumerate(models[1:], 1):
        other = [(name, p.shape, p.dtype) for name, p in model.named_parameters()]
        for a, b in zip([*first, None], [*other, None]):
            if a != b:
                say = lambda p: f"'{p[0]}' {p[2]} {p[1]}" if p else "nothing"
                raise refuse(ArgumentError, f"models differ: rank 0 has {say(a)} where rank {rank} has {say(b)}")


@entry
def visualize_sharding(tensor: Tensor, width: int = 60) -> str:
    """A picture of a tensor of one or two dimensions: which processes hold which part, drawn as large as it is. Prints nothing; print
    what it returns.

    Processes that hold the same are named with commas: `0,1`. Of a partial value they hold terms: `sum(0,1; 2,3)` is a sum of two, the
    first of which 0 and 1 hold. Below, where it is not all, stands what the numbers on the axes do not say: processes without a part.
    Raises ArgumentError for tensors of other ranks.
    """
    tensor = asarray(tensor)
    if tensor.ndim not in (1, 2):
        raise refuse(ArgumentError, f"visualize_sharding takes tensors of one or two dimensions, not shape {tensor.shape}")
    tensor._used()
    if tensor.sharding is None:
        return f"everything {list(tensor.shape)} on one device"
    of, boxes, empty = layout(tensor.sharding, tensor.ndim), {}, []
    for rank in tensor.mesh.devices:
        box = of.box(tensor.shape, tensor.mesh, rank)
        if all(s.stop > s.start for s in box):
            boxes.setdefault(tuple((s.start, s.stop) for s in box), []).append(rank)
        else:
            empty.append(rank)
    if not boxes:
        return f"nothing: the tensor of shape {list(tensor.shape)} has no elements"
    rows = sorted({box[0] for box in boxes}) if tensor.ndim == 2 else [(0, 1)]
    columns = sorted({box[-1] for box in boxes})
    text = {(row, column): _holders(of, tensor.mesh, boxes.get((row, column) if tensor.ndim == 2 else (column,), ()))
            for row in rows for column in columns}
    side = [f"{row[0]}:{row[1]} " if tensor.ndim == 2 else "" for row in rows]
    margin = max(map(len, side))
    least = [max(len(f"{c[0]}:{c[1]}"), *[len(text[row, c]) for row in rows]) + 2 for c in columns]
    cells = _drawn([c[1] - c[0] for c in columns], least, width - margin - len(columns) - 1)
    heights = _drawn([row[1] - row[0] for row in rows], [1] * len(rows), len(rows))
    line = " " * margin + "+" + "+".join("-" * n for n in cells) + "+"
    lines = [" " * (margin + 1) + " ".join(f"{c[0]}:{c[1]}".center(n) for c, n in zip(columns, cells)).rstrip(), line]
    for row, label, height in zip(rows, side, heights):
        for i in range(height):
            here = i == (height - 1) // 2
            lines.append((label if here else "").rjust(margin) + "|" + "|".join((text[row, c] if here else "").center(n) for c, n in zip(columns, cells)) + "|")
        lines.append(line)
    return "\n".join(lines + ([f"nothing on {','.join(map(str, empty))}"] if empty else []))


def _drawn(extents, least, room) -> list[int]:
    """Characters for parts of such extents: as many for an element everywhere (up to rounding), at least `least`, and about `room`."""
    scale = max(room / sum(extents), *[low / n for low, n in zip(least, extents)])
    scale = min(scale, max(4 * room, sum(least)) / sum(extents))  # a part that is very small may be drawn larger than it is
    return [max(low, round(n * scale)) for low, n in zip(least, extents)]


def _holders(of, mesh, ranks) -> str:
    """Processes that hold one part, those of a partial value by terms."""
    if not of.partial:
        return ",".join(map(str, ranks))
    terms: dict[tuple, list[int]] = {}
    for rank in ranks:
        terms.setdefault(of.term(mesh, rank), []).append(rank)
    kinds = " and ".join(dict.fromkeys(kind for _, kind in of.partial))
    return f"{kinds}({'; '.join(','.join(map(str, term)) for term in terms.values())})" if ranks else ""
