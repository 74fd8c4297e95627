# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Collectives of a process group.

Common arguments: group: a ProcessGroup (default: all ranks of the job); async_op: return a Work instead of waiting;
algorithm: a name such as 'ring' (default: chosen by group, hosts and size; `which_algorithm`). Ranks that are not in
the group return None. All raise ArgumentError, or DistributedError if the call fails on any rank.
"""

from __future__ import annotations

from ..errors import ArgumentError
from ..source import location
from .buffers import Buffer, buffer, buffers, joined, pack, same_type, unpack
from .group import ProcessGroup, member
from .work import Work


class ReduceOp:
    """Reductions. f16 and bf16 are added in f32; max and min propagate NaN.

    AVG (or "mean") applies to floats only, the bitwise reductions to integers and bool only.
    """

    SUM, AVG, MAX, MIN, PRODUCT, BAND, BOR, BXOR = "sum", "avg", "max", "min", "prod", "band", "bor", "bxor"


def _run(group: ProcessGroup | None, kind: str, describe, async_op: bool):
    """Run a collective. `describe(group)` checks the arguments and returns those of `_call`.

    If it raises ArgumentError, the call fails on all ranks.
    """
    target = member(group)
    if target is None:
        return None
    try:
        work = _call(target, kind, **describe(target))
    except ArgumentError as error:
        work = refuse(target, kind, error)
    if async_op:
        return work
    work.wait()
    return None


def refuse(group: ProcessGroup, kind: str, reason) -> Work:
    """Take part in the other ranks' call in order to make it fail on all ranks, with `reason`."""
    with group.errors():
        return Work(group, group.handle.refuse(f"{kind}: {reason}{_at(', at ')}"))


def _call(group: ProcessGroup, kind: str, source: Buffer | None, target: Buffer | None, counts, receives=(), op=None, root=0,
          algorithm=None, finish=None) -> Work:
    for name, value in (("op", op), ("algorithm", algorithm)):
        if value is not None and not isinstance(value, str):
            raise ArgumentError(f"{name} {value!r} is not a name")
    one = source or target
    op = ReduceOp.AVG if op == "mean" else op
    with group.errors():
        handle = group.handle.call(kind, one.type, op, root, counts, list(receives), source.address if source else 0,
                                   target.address if target else 0, algorithm, _at(), group.device_of(one), one.stream,
                                   source.parts if source else (), target.parts if target else ())
    return Work(group, handle, (source, target), finish)


def _at(prefix: str = "") -> str:
    """The user's line, for messages."""
    place = location()
    return f"{prefix}{place.file}:{place.line}" if place else ""


def _member_of(group: ProcessGroup, name: str, rank) -> int:
    if isinstance(rank, bool) or not isinstance(rank, int) or rank not in group.ranks:
        raise ArgumentError(f"{name} {rank!r} is not a rank of the group {group.ranks}")
    return rank


def _counts(group: ProcessGroup, name: str, counts, count: int) -> list[int]:
    """The number of elements of each rank: `counts`, or `count` for all."""
    if counts is None:
        return [count] * group.size()
    if len(counts) != group.size() or not all(isinstance(each, int) and each >= 0 for each in counts):
        raise ArgumentError(f"{name} {counts!r} is not a list of element counts, one for each of the {group.size()} ranks")
    if counts[group.rank()] != count:
        raise ArgumentError(f"{name}[{group.rank()}] is {counts[group.rank()]}, and the array of this rank has {count} elements")
    return list(counts)


def all_reduce(tensor, op: str = ReduceOp.SUM, group=None, async_op: bool = False, algorithm: str | None = None):
    """Reduce the arrays of all ranks, in place on every rank.

    By default, contributions are combined in the order of ranks, so that all runs give the same bits. Other algorithms
    (ring, halving_doubling, tree, hierarchical) may round differently.
    """
    def describe(_):
        data = buffer("tensor", tensor)
        return dict(source=data, target=data, counts=[data.count], op=op, algorithm=algorithm)
    return _run(group, "all_reduce", describe, async_op)


def reduce(tensor, dst: int, op: str = ReduceOp.SUM, group=None, async_op: bool = False, algorithm: str | None = None):
    """Reduce the arrays of all ranks, in place on rank dst; the arrays of other ranks do not change."""
    def describe(group):
        root = _member_of(group, "dst", dst)
        data = buffer("tensor", tensor, writable=root == group.global_rank)
        return dict(source=data, target=data, counts=[data.count], op=op, root=root, algorithm=algorithm)
    return _run(group, "reduce", describe, async_op)


def broadcast(tensor, src: int, group=None, async_op: bool = False, algorithm: str | None = None):
    """Copy the array of rank src to all ranks, in place."""
    def describe(group):
        root = _member_of(group, "src", src)
        data = buffer("tensor", tensor, writable=root != group.global_rank)
        return dict(source=data, target=data, counts=[data.count], root=root, algorithm=algorithm)
    return _run(group, "broadcast", describe, async_op)


def all_gather(tensor_list, tensor, group=None, async_op: bool = False, algorithm: str | None = None):
    """Set tensor_list[i] to the array of the i-th rank of the group. Sizes may differ between ranks."""
    def describe(group):
        own, parts = buffer("tensor", tensor, writable=False), buffers("tensor_list", tensor_list, group.size())
        same_type(tensor=own, tensor_list=parts[0])
        counts = _counts(group, "the sizes of tensor_list", [part.count for part in parts], own.count)
        whole = joined(parts)
        return dict(source=own, target=whole, counts=counts, algorithm=algorithm, finish=lambda: unpack(whole, parts))
    return _run(group, "all_gather", describe, async_op)


def all_gather_into_tensor(output_tensor, input_tensor, group=None, async_op: bool = False, algorithm: str | None = None):
    """Set the output to the concatenation of the arrays of all ranks."""
    def describe(group):
        own, whole = buffer("input_tensor", input_tensor, writable=False), buffer("output_tensor", output_tensor)
        same_type(input_tensor=own, output_tensor=whole)
        if whole.count != own.count * group.size():
            raise ArgumentError(f"output_tensor has {whole.count} elements; {group.size()} ranks with {own.count} each give "
                                f"{own.count * group.size()}")
        return dict(source=own, target=whole, counts=[own.count] * group.size(), algorithm=algorithm)
    return _run(group, "all_gather", describe, async_op)


def reduce_scatter(output, input_list, op: str = ReduceOp.SUM, group=None, async_op: bool = False, algorithm: str | None = None):
    """Set the output of the i-th rank to the reduction of all ranks' input_list[i]. Sizes may differ between ranks."""
    def describe(group):
        own, parts = buffer("output", output), buffers("input_list", input_list, group.size(), writable=False)
        same_type(output=own, input_list=parts[0])
        counts = _counts(group, "the sizes of input_list", [part.count for part in parts], own.count)
        return dict(source=pack(parts), target=own, counts=counts, op=op, algorithm=algorithm)
    return _run(group, "reduce_scatter", describe, async_op)


def reduce_scatter_tensor(output, input, op: str = ReduceOp.SUM, group=None, async_op: bool = False, algorithm: str | None = None):
    """`reduce_scatter` with equal parts of one array."""
    def describe(group):
        own, whole = buffer("output", output), buffer("input", input, writable=False)
        same_type(output=own, input=whole)
        if whole.count != own.count * group.size():
            raise ArgumentError(f"input has {whole.count} elements; {group.size()} ranks with outputs of {own.count} each take "
                                f"{own.count * group.size()}")
        return dict(source=whole, target=own, counts=[own.count] * group.size(), op=op, algorithm=algorithm)
    return _run(group, "reduce_scatter", describe, async_op)


def gather(tensor, gather_list=None, dst: int = 0, group=None, async_op: bool = False, counts=None, algorithm: str | None = None):
    """Set gather_list[i] on rank dst to the array of the i-th rank; other ranks pass None.

    counts: number of elements of each rank, given on all ranks if sizes differ.
    """
    def describe(group):
        root, own = _member_of(group, "dst", dst), buffer("tensor", tensor, writable=False)
        sizes = _counts(group, "counts", counts, own.count)
        if group.global_rank != root:
            if gather_list:
                raise ArgumentError(f"gather_list is given on rank {group.global_rank}, and dst is {root}")
            return dict(source=own, target=None, counts=sizes, root=root, algorithm=algorithm)
        parts = buffers("gather_list", gather_list, group.size())
        same_type(tensor=own, gather_list=parts[0])
        _match("gather_list", parts, sizes)
        whole = joined(parts)
        return dict(source=own, target=whole, counts=sizes, root=root, algorithm=algorithm, finish=lambda: unpack(whole, parts))
    return _run(group, "gather", describe, async_op)


def scatter(tensor, scatter_list=None, src: int = 0, group=None, async_op: bool = False, counts=None, algorithm: str | None = None):
    """Set the array of the i-th rank to scatter_list[i] of rank src; other ranks pass None.

    counts: number of elements of each rank, given on all ranks if sizes differ.
    """
    def describe(group):
        root, own = _member_of(group, "src", src), buffer("tensor", tensor)
        sizes = _counts(group, "counts", counts, own.count)
        if group.global_rank != root:
            if scatter_list:
                raise ArgumentError(f"scatter_list is given on rank {group.global_rank}, and src is {root}")
            return dict(source=None, target=own, counts=sizes, root=root, algorithm=algorithm)
        parts = buffers("scatter_list", scatter_list, group.size(), writable=False)
        same_type(tensor=own, scatter_list=parts[0])
        _match("scatter_list", parts, sizes)
        return dict(source=pack(parts), target=own, counts=sizes, root=root, algorithm=algorithm)
    return _run(group, "scatter", describe, async_op)


def _match(name: str, parts: list[Buffer], counts: list[int]) -> None:
    for index, (part, count) in enumerate(zip(parts, counts)):
        if part.count != count:
            raise ArgumentError(f"{name}[{index}] has {part.count} elements, and rank {index} of the group has {count}; "
                                "if sizes differ, give counts on all ranks")


def all_to_all(output_tensor_list, input_tensor_list, group=None, async_op: bool = False, algorithm: str | None = None):
    """Send input_tensor_list[i] to the i-th rank, and receive output_tensor_list[i] from it. Sizes may differ."""
    def describe(group):
        outs = buffers("output_tensor_list", output_tensor_list, group.size())
        ins = buffers("input_tensor_list", input_tensor_list, group.size(), writable=False)
        same_type(output_tensor_list=outs[0], input_tensor_list=ins[0])
        whole = joined(outs)
        return dict(source=pack(ins), target=whole, counts=[part.count for part in ins], receives=[part.count for part in outs],
                    algorithm=algorithm, finish=lambda: unpack(whole, outs))
    return _run(group, "all_to_all", describe, async_op)


def all_to_all_single(output, input, output_split_sizes=None, input_split_sizes=None, group=None, async_op: bool = False,
                      algorithm: str | None = None):
    """`all_to_all` with one input and one output, split along dimension 0: evenly, or into the given numbers of rows."""
    def describe(group):
        out, own = buffer("output", output), buffer("input", input, writable=False)
        same_type(output=out, input=own)
        return dict(source=own, target=out, counts=_splits(group, "input", input, own, input_split_sizes),
                    receives=_splits(group, "output", output, out, output_split_sizes), algorithm=algorithm)
    return _run(group, "all_to_all", describe, async_op)


def _splits(group: ProcessGroup, name: str, value, data: Buffer, sizes) -> list[int]:
    rows = tuple(value.shape)[0] if len(tuple(value.shape)) else 1
    if sizes is None:
        if rows % group.size():
            raise ArgumentError(f"{name} has {rows} rows, not a multiple of {group.size()} ranks; give {name}_split_sizes")
        sizes = [rows // group.size()] * group.size()
    if len(sizes) != group.size() or sum(sizes) != rows or min(sizes) < 0:
        raise ArgumentError(f"{name}_split_sizes {list(sizes)} are not {group.size()} parts of {rows} rows")
    return [int(size) * (data.count // rows if rows else 0) for size in sizes]


def barrier(group=None, async_op: bool = False):
    """Wait until all ranks of the group have called it."""
    target = member(group)
    if target is None:
        return None
    with target.errors():
        work = Work(target, target.handle.call("barrier", "i8", None, 0, [], [], 0, 0, None, _at()))
    if async_op:
        return work
    work.wait()
    return None


def which_algorithm(kind: str, tensor, group=None, root: int = 0) -> str:
    """The default algorithm of a call, which depends on the group, its hosts and the size; equal on all ranks.

    tensor: this rank's input of all_gather and gather, one part of reduce_scatter and scatter, or the buffer of other
    kinds.
    """
    target, call = _sized(kind, tensor, group, root)
    if target is None:
        return ""
    with target.errors():
        return target.handle.algorithm(*call)


def sent_bytes(kind: str, tensor, group=None, root: int = 0, algorithm: str | None = None) -> dict[int, int]:
    """The bytes of data that this rank sends in a call, by receiving rank; in all_to_all, with this array for each
    rank.

    Message headers of TCP and control messages are not included. tensor: as in `which_algorithm`.
    """
    target, call = _sized(kind, tensor, group, root)
    if target is None:
        return {}
    with target.errors():
        return {rank: count for rank, count in zip(target.ranks, target.handle.sent_bytes(*call, algorithm)) if count}


def _sized(kind: str, tensor, group, root: int):
    """The group and the arguments of a call: kind, dtype, root, numbers of elements to send and to receive by rank."""
    target, data = member(group), buffer("tensor", tensor, writable=False)
    if target is None:
        return None, ()
    whole = kind in ("all_reduce", "reduce", "broadcast")
    counts = [data.count] * (1 if whole else target.size())
    return target, (kind, data.type, root, counts, counts if kind == "all_to_all" else [])
