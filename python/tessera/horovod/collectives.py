# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Collectives on NumPy arrays, PyTorch tensors (GPU tensors are copied to the host and back), and tensors of tessera.

All ranks make the same calls; the order of named calls may differ. Calls with `_async` return a Handle for
`synchronize` and `poll`; calls with a trailing `_` work in place. A call that differs between ranks, or has an invalid
argument on one of them, raises CallError on all.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence

import numpy as np

from ..errors import ArgumentError
from .arrays import check_writable, read, write
from .calls import Call, Handle
from .compression import Compression
from .job import exchange, submit
from .process_sets import ProcessSet, global_process_set, number_of
from .reductions import ReduceOp, check_average, factor, reduction


def _start(kind: str, tensors, name, process_set, finish, describe=lambda call: None, inplace=False) -> Handle:
    """Start a call. `describe(call)` fills in its fields; if it raises ArgumentError, the call fails on all ranks."""
    exchange()
    number = number_of(process_set)
    call = Call(kind, "" if name is None else f"{kind} {name}", "" if name is None else str(name), number)
    try:
        if not isinstance(tensors, (list, tuple)):
            raise ArgumentError(f"tensors is {type(tensors).__name__}; expected a list of arrays")
        names = ["tensor"] if not kind.startswith("grouped_") else [f"tensors[{i}]" for i in range(len(tensors))]
        if inplace:
            for what, tensor in zip(names, tensors):
                check_writable(what, tensor)
        call.arrays = [read(what, tensor) for what, tensor in zip(names, tensors)]
        call.types = [array.dtype for array in call.arrays]
        call.shapes = [list(array.shape) for array in call.arrays]
        describe(call)
    except ArgumentError as error:
        call.error = str(error)
    return submit(call, finish)


def _results(tensors, inplace: bool):
    return lambda arrays, more: [write(array, like, inplace) for array, like in zip(arrays, tensors)]


def _only(finish):
    return lambda arrays, more: finish(arrays, more)[0]


def _reduce(kind, tensors, average, name, compression, op, prescale, postscale, process_set, inplace, single) -> Handle:
    compressed, contexts = tensors, [None] * len(tensors) if isinstance(tensors, (list, tuple)) else []
    if compression is not Compression.none and isinstance(tensors, (list, tuple)) and all(hasattr(each, "dtype") for each in tensors):
        pairs = [compression.compress(each) for each in tensors]
        compressed, contexts = [pair[0] for pair in pairs], [pair[1] for pair in pairs]

    def describe(call):
        chosen = reduction(op, average)
        for dtype in call.types:
            check_average(chosen, dtype)
        call.op, call.prescale, call.postscale = chosen.name, factor("prescale_factor", prescale), factor("postscale_factor", postscale)
        if kind.endswith("reducescatter") and any(not shape for shape in call.shapes):
            raise ArgumentError("reducescatter needs arrays with at least one dimension")

    def finish(arrays, more):
        if not any(context is not None for context in contexts):
            return _results(tensors, inplace)(arrays, more)
        made = [compression.decompress(each, context) for each, context in zip(_results(compressed, False)(arrays, more), contexts)]
        return [write(read("result", value), like, True) for value, like in zip(made, tensors)] if inplace else made
    return _start(kind, compressed, name, process_set, _only(finish) if single else finish, describe, inplace)


def allreduce_async(tensor, average: bool | None = None, name: str | None = None, op: ReduceOp | None = None, prescale_factor: float = 1.0,
                    postscale_factor: float = 1.0, process_set: ProcessSet = global_process_set, compression=Compression.none) -> Handle:
    """Start `allreduce`."""
    return _reduce("allreduce", [tensor], average, name, compression, op, prescale_factor, postscale_factor, process_set, False, True)


def allreduce(tensor, average: bool | None = None, name: str | None = None, compression=Compression.none, op: ReduceOp | None = None,
              prescale_factor: float = 1.0, postscale_factor: float = 1.0, process_set: ProcessSet = global_process_set):
    """Reduce the arrays of all ranks (default: average).

    Contributions are multiplied by prescale_factor, results by postscale_factor.
    """
    return allreduce_async(tensor, average, name, op, prescale_factor, postscale_factor, process_set, compression).wait()


def allreduce_async_(tensor, average: bool | None = None, name: str | None = None, op: ReduceOp | None = None, prescale_factor: float = 1.0,
                     postscale_factor: float = 1.0, process_set: ProcessSet = global_process_set) -> Handle:
    """Start `allreduce_`."""
    return _reduce("allreduce", [tensor], average, name, Compression.none, op, prescale_factor, postscale_factor, process_set, True, True)


def allreduce_(tensor, average: bool | None = None, name: str | None = None, op: ReduceOp | None = None, prescale_factor: float = 1.0,
               postscale_factor: float = 1.0, process_set: ProcessSet = global_process_set):
    """`allreduce` in place."""
    return allreduce_async_(tensor, average, name, op, prescale_factor, postscale_factor, process_set).wait()


def grouped_allreduce_async(tensors: Sequence, average: bool | None = None, name: str | None = None, op: ReduceOp | None = None,
                            prescale_factor: float = 1.0, postscale_factor: float = 1.0,
                            process_set: ProcessSet = global_process_set, compression=Compression.none) -> Handle:
    """Start `grouped_allreduce`."""
    return _reduce("grouped_allreduce", tensors, average, name, compression, op, prescale_factor, postscale_factor, process_set, False, False)


def grouped_allreduce(tensors: Sequence, average: bool | None = None, name: str | None = None, compression=Compression.none,
                      op: ReduceOp | None = None, prescale_factor: float = 1.0, postscale_factor: float = 1.0,
                      process_set: ProcessSet = global_process_set) -> list:
    """`allreduce` of several arrays in one operation."""
    return grouped_allreduce_async(tensors, average, name, op, prescale_factor, postscale_factor, process_set, compression).wait()


def grouped_allreduce_async_(tensors: Sequence, average: bool | None = None, name: str | None = None, op: ReduceOp | None = None,
                             prescale_factor: float = 1.0, postscale_factor: float = 1.0,
                             process_set: ProcessSet = global_process_set) -> Handle:
    """Start `grouped_allreduce_`."""
    return _reduce("grouped_allreduce", tensors, average, name, Compression.none, op, prescale_factor, postscale_factor, process_set, True, False)


def grouped_allreduce_(tensors: Sequence, average: bool | None = None, name: str | None = None, op: ReduceOp | None = None,
                       prescale_factor: float = 1.0, postscale_factor: float = 1.0, process_set: ProcessSet = global_process_set) -> list:
    """`grouped_allreduce` in place."""
    return grouped_allreduce_async_(tensors, average, name, op, prescale_factor, postscale_factor, process_set).wait()


def _gather(kind, tensors, name, process_set, single) -> Handle:
    def describe(call):
        if any(not shape for shape in call.shapes):
            raise ArgumentError("allgather needs arrays with at least one dimension, along which they are concatenated")
    finish = _results(tensors, False)
    return _start(kind, tensors, name, process_set, _only(finish) if single else finish, describe)


def allgather_async(tensor, name: str | None = None, process_set: ProcessSet = global_process_set) -> Handle:
    """Start `allgather`."""
    return _gather("allgather", [tensor], name, process_set, True)


def allgather(tensor, name: str | None = None, process_set: ProcessSet = global_process_set):
    """Concatenate the arrays of all ranks along the first dimension, whose extent may differ between ranks."""
    return allgather_async(tensor, name, process_set).wait()


def grouped_allgather_async(tensors: Sequence, name: str | None = None, process_set: ProcessSet = global_process_set) -> Handle:
    """Start `grouped_allgather`."""
    return _gather("grouped_allgather", tensors, name, process_set, False)


def grouped_allgather(tensors: Sequence, name: str | None = None, process_set: ProcessSet = global_process_set) -> list:
    """`allgather` of several arrays in one operation."""
    return grouped_allgather_async(tensors, name, process_set).wait()


def _broadcast(tensor, root_rank, name, process_set, inplace) -> Handle:
    def describe(call):
        call.root = _rank(root_rank, process_set)
    return _start("broadcast", [tensor], name, process_set, _only(_results([tensor], inplace)), describe, inplace)


def _rank(root_rank, process_set: ProcessSet) -> int:
    if isinstance(root_rank, bool) or not hasattr(root_rank, "__index__") or operator.index(root_rank) not in process_set.ranks:
        raise ArgumentError(f"root_rank {root_rank!r} is not one of the ranks {process_set.ranks}")
    return operator.index(root_rank)


def broadcast_async(tensor, root_rank: int, name: str | None = None, process_set: ProcessSet = global_process_set) -> Handle:
    """Start `broadcast`."""
    return _broadcast(tensor, root_rank, name, process_set, False)


def broadcast(tensor, root_rank: int, name: str | None = None, process_set: ProcessSet = global_process_set):
    """The array of rank root_rank, on all ranks."""
    return broadcast_async(tensor, root_rank, name, process_set).wait()


def broadcast_async_(tensor, root_rank: int, name: str | None = None, process_set: ProcessSet = global_process_set) -> Handle:
    """Start `broadcast_`."""
    return _broadcast(tensor, root_rank, name, process_set, True)


def broadcast_(tensor, root_rank: int, name: str | None = None, process_set: ProcessSet = global_process_set):
    """`broadcast` in place."""
    return broadcast_async_(tensor, root_rank, name, process_set).wait()


def alltoall_async(tensor, splits=None, name: str | None = None, process_set: ProcessSet = global_process_set) -> Handle:
    """Start `alltoall`."""
    def describe(call):
        size = process_set.size()
        if not call.shapes[0]:
            raise ArgumentError("alltoall needs arrays with at least one dimension, along which they are split")
        rows = call.shapes[0][0]
        if splits is None and rows % size:
            raise ArgumentError(f"tensor has {rows} rows, not a multiple of {size} ranks; give splits")
        try:
            call.splits = [rows // size] * size if splits is None else [operator.index(each) for each in getattr(splits, "tolist", lambda: splits)()]
        except TypeError:
            raise ArgumentError(f"splits {splits!r} are not whole numbers") from None
        if len(call.splits) != size or min(call.splits) < 0 or sum(call.splits) != rows:
            raise ArgumentError(f"splits {call.splits} are not {size} parts of {rows} rows")

    def finish(arrays, more):
        result = write(arrays[0], tensor)
        if splits is None:
            return result
        received = np.array(more["received"], np.int64)
        return result, write(read("splits", received), tensor)
    return _start("alltoall", [tensor], name, process_set, finish, describe)


def alltoall(tensor, splits=None, name: str | None = None, process_set: ProcessSet = global_process_set):
    """Split the array along its first dimension, send part i to the i-th rank, and concatenate the received parts.

    splits: rows of each part (default: equal parts). If given, the result is a pair with the number of rows from each
    rank.
    """
    return alltoall_async(tensor, splits, name, process_set).wait()


def reducescatter_async(tensor, op: ReduceOp | None = None, name: str | None = None, prescale_factor: float = 1.0,
                        postscale_factor: float = 1.0, process_set: ProcessSet = global_process_set, compression=Compression.none) -> Handle:
    """Start `reducescatter`."""
    return _reduce("reducescatter", [tensor], None, name, compression, op, prescale_factor, postscale_factor, process_set, False, True)


def reducescatter(tensor, op: ReduceOp | None = None, name: str | None = None, compression=Compression.none, prescale_factor: float = 1.0,
                  postscale_factor: float = 1.0, process_set: ProcessSet = global_process_set):
    """Reduce the arrays of all ranks and scatter the result along the first dimension.

    Of n ranks, the first `rows % n` get one row more than the others.
    """
    return reducescatter_async(tensor, op, name, prescale_factor, postscale_factor, process_set, compression).wait()


def grouped_reducescatter_async(tensors: Sequence, op: ReduceOp | None = None, name: str | None = None, prescale_factor: float = 1.0,
                                postscale_factor: float = 1.0, process_set: ProcessSet = global_process_set,
                                compression=Compression.none) -> Handle:
    """Start `grouped_reducescatter`."""
    return _reduce("grouped_reducescatter", tensors, None, name, compression, op, prescale_factor, postscale_factor, process_set, False, False)


def grouped_reducescatter(tensors: Sequence, op: ReduceOp | None = None, name: str | None = None, compression=Compression.none,
                          prescale_factor: float = 1.0, postscale_factor: float = 1.0,
                          process_set: ProcessSet = global_process_set) -> list:
    """`reducescatter` of several arrays in one operation."""
    return grouped_reducescatter_async(tensors, op, name, prescale_factor, postscale_factor, process_set, compression).wait()


def barrier(process_set: ProcessSet = global_process_set) -> None:
    """Wait until all ranks of the set have called it."""
    submit(Call("barrier", "", set=number_of(process_set)), lambda *_: None).wait()


def join(device: int = -1) -> int:
    """Declare that this rank has no more data, and wait until all ranks have called it. Returns the last rank that did.

    Until then, this rank takes part in the calls of others with zeros (in allgather, with no rows).
    """
    return submit(Call("join", "join", root=exchange().unnamed()), lambda _, more: more["last"]).wait()


def synchronize(handle: Handle):
    """Wait for a call and return its result. Raises CallError or HorovodInternalError."""
    if not isinstance(handle, Handle):
        raise ArgumentError(f"handle {handle!r} is not the result of an _async call")
    return handle.wait()


def poll(handle: Handle) -> bool:
    """Whether a call has ended or failed."""
    if not isinstance(handle, Handle):
        raise ArgumentError(f"handle {handle!r} is not the result of an _async call")
    return handle.is_completed()
