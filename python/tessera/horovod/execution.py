# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Run a call that all ranks of a set have made with equal arguments."""

from __future__ import annotations

import numpy as np

from .. import distributed as dist
from .arrays import Array, empty, zeros
from .calls import Call
from .reductions import KNOWN, scale


def refusal(calls: dict[int, Call], members: list[int], joined: list[int]) -> str | None:
    """Why a call cannot run although the ranks agree, as a message.

    Returns None if it can. joined: ranks that called join().
    """
    call = calls[min(calls)]
    if call.kind in ("broadcast", "grouped_broadcast") and call.root not in calls:
        return f"{call}: rank {call.root} has called join(), so it cannot broadcast"
    if joined and call.kind == "alltoall":
        return f"{call}: ranks {joined} have called join(), which alltoall does not support"
    if joined and call.op not in ("", "Average", "Sum"):
        return f"{call}: ranks {joined} have called join() and contribute zeros; the op must be Sum or Average"
    return None


def run(calls: dict[int, Call], rank: int, group: dist.ProcessGroup) -> tuple[list[Array], dict]:
    """Run a call. Returns this rank's results and further properties of them, such as sizes."""
    call = calls[min(calls)]
    return _KINDS[call.kind](calls, calls.get(rank), rank, group)


def _own(calls, own, rows=True) -> list[Array]:
    """This rank's arrays; if it has joined, zeros of the same shapes, or without `rows` of no rows."""
    if own is not None:
        return own.arrays
    like = calls[min(calls)]
    return [zeros(kind, shape if rows else [0, *shape[1:]]) for kind, shape in zip(like.types, like.shapes)]


def _packed(arrays: list[Array], run_one) -> None:
    """Apply run_one to the arrays, with those of equal dtype concatenated."""
    for kind in sorted({array.dtype for array in arrays}):
        same = [array for array in arrays if array.dtype == kind]
        if len(same) == 1:
            run_one(same[0])
            continue
        whole = Array(np.concatenate([array.flat for array in same]), kind, (sum(array.numel() for array in same),))
        run_one(whole)
        at = 0
        for array in same:
            array.flat[:] = whole.flat[at:at + array.flat.size]
            at += array.flat.size


def _allreduce(calls, own, rank, group):
    arrays, call = _own(calls, own), calls[min(calls)]

    def one(array):
        scale(array.flat, array.dtype, call.prescale)
        dist.all_reduce(array, KNOWN[call.op].kind, group=group)
        scale(array.flat, array.dtype, call.postscale)
    _packed(arrays, one)
    return arrays, {}


def _broadcast(calls, own, rank, group):
    arrays, call = _own(calls, own), calls[min(calls)]
    _packed(arrays, lambda array: dist.broadcast(array, call.root, group=group))
    return arrays, {}


def _allgather(calls, own, rank, group):
    results, sizes = [], []
    for index, array in enumerate(_own(calls, own, rows=False)):
        rows = [calls[other].shapes[index][0] if other in calls else 0 for other in group.ranks]
        parts = [empty(array.dtype, (count, *array.shape[1:])) for count in rows]
        dist.all_gather(parts, array, group=group)
        results.append(_joined(parts))
        sizes.append(rows)
    return results, {"sizes": sizes}


def _joined(parts: list[Array]) -> Array:
    return Array(np.concatenate([part.flat for part in parts]), parts[0].dtype, (sum(part.shape[0] for part in parts), *parts[0].shape[1:]))


def _cut(array: Array, rows: list[int]) -> list[Array]:
    bounds = np.cumsum([0, *rows]) * array.row * array.element_size()
    return [Array(np.ascontiguousarray(array.flat[bounds[i]:bounds[i + 1]]), array.dtype, (count, *array.shape[1:])) for i, count in enumerate(rows)]


def _reducescatter(calls, own, rank, group):
    results, call = [], calls[min(calls)]
    for array in _own(calls, own):
        scale(array.flat, array.dtype, call.prescale)
        size = group.size()
        parts = _cut(array, [array.shape[0] // size + (place < array.shape[0] % size) for place in range(size)])
        mine = empty(array.dtype, parts[group.rank()].shape)
        dist.reduce_scatter(mine, parts, KNOWN[call.op].kind, group=group)
        scale(mine.flat, mine.dtype, call.postscale)
        results.append(mine)
    return results, {}


def _alltoall(calls, own, rank, group):
    (array,), place = own.arrays, group.rank()
    received = [calls[other].splits[place] for other in group.ranks]
    outs = [empty(array.dtype, (count, *array.shape[1:])) for count in received]
    dist.all_to_all(outs, _cut(array, own.splits), group=group)
    return [_joined(outs)], {"received": received}


def _barrier(calls, own, rank, group):
    return [], {}  # a call runs only once all ranks have made it


_KINDS = {"allreduce": _allreduce, "grouped_allreduce": _allreduce, "broadcast": _broadcast, "grouped_broadcast": _broadcast,
          "allgather": _allgather, "grouped_allgather": _allgather, "reducescatter": _reducescatter,
          "grouped_reducescatter": _reducescatter, "alltoall": _alltoall, "barrier": _barrier}
