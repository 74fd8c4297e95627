# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Collectives of a group."""

from __future__ import annotations

from ..errors import ArgumentError
from ..source import location
from .buffers import Buffer, buffer, buffers, joined, pack, same_type, unpack
from .group import ProcessGroup, member
from .work import Work


class ReduceOp:
    """How contributions are combined. f16 and bf16 are added in f32; max and min hand NaN on; AVG ("mean" is the same) is of floats, the
    last three are of integers and bool."""

    SUM, AVG, MAX, MIN, PRODUCT, BAND, BOR, BXOR = "sum", "avg", "max", "min", "prod", "band", "bor", "bxor"


def _run(group: ProcessGroup | None, kind: str, describe, async_op: bool):
    """`describe(group)` checks the arguments and says what to call. Where it refuses them, the call fails on all ranks."""
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
    """Takes part in the call of the others, which fails on all ranks."""
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
    """The caller's line, for messages."""
    place = location()
    return f"{prefix}{place.file}:{place.line}" if place else ""


def _member_of(group: ProcessGroup, name: str, rank) -> int:
    if isinstance(rank, bool) or not isinstance(rank, int) or rank not in group.ranks:
        raise ArgumentError(f"{name} {rank!r} is not of the group {group.ranks}")
    return rank


def _counts(group: ProcessGroup, name: str, counts, count: int) -> list[int]:
    """Elements of each rank: those given, or as many as here."""
    if counts is None:
        return [count] * group.size()
    if len(counts) != group.size() or not all(isinstance(each, int) and each >= 0 for each in counts):
        raise ArgumentError(f"{name} {counts!r} are no numbers of elements, one for each of the {group.size()} ranks")
    if counts[group.rank()] != count:
        raise ArgumentError(f"{name}[{group.rank()}] is {counts[group.rank()]}, and the array of this rank has {count} elements")
    return list(counts)


def all_reduce(tensor, op: str = ReduceOp.SUM, group=None, async_op: bool = False, algorithm: str | None = None):
    """In place: every rank gets the reduction of all ranks' arrays. By default contributions are combined in the order of ranks, so
    that all runs give the same bits; another algorithm (ring, halving_doubling, tree, hierarchical) may round otherwise."""
    def describe(_):
        data = buffer("tensor", tensor)
        return dict(source=data, target=data, counts=[data.count], op=op, algorithm=algorithm)
    return _run(group, "all_reduce", describe, async_op)


def reduce(tensor, dst: int, op: str = ReduceOp.SUM, group=None, async_op: bool = False, algorithm: str | None = None):
    """In place on rank dst; the arrays of other ranks stay as they are."""
    def describe(group):
        root = _member_of(group, "dst", dst)
        data = buffer("tensor", tensor, writable=root == group.global_rank)
        return dict(source=data, target=data, counts=[data.count], op=op, root=root, algorithm=algorithm)
    return _run(group, "reduce", describe, async_op)


def broadcast(tensor, src: int, group=None, async_op: bool = False, algorithm: str | None = None):
    """In place: every rank gets the array of rank src."""
    def describe(group):
        root = _member_of(group, "src", src)
        data = buffer("tensor", tensor, writable=root != group.global_rank)
        return dict(source=data, target=data, counts=[data.count], root=root, algorithm=algorithm)
    return _run(group, "broadcast", describe, async_op)


def all_gather(tensor_list, tensor, group=None, async_op: bool = False, algorithm: str | None = None):
    """tensor_list[i] becomes the array of the i-th rank of the group. Ranks may have different sizes."""
    def describe(group):
        own, parts = buffer("tensor", tensor, writable=False), buffers("tensor_list", tensor_list, group.size())
        same_type(tensor=own, tensor_list=parts[0])
        counts = _counts(group, "the sizes of tensor_list", [part.count for part in parts], own.count)
        whole = joined(parts)
        return dict(source=own, target=whole, counts=counts, algorithm=algorithm, finish=lambda: unpack(whole, parts))
    return _run(group, "all_gather", describe, async_op)


def all_gather_into_tensor(output_tensor, input_tensor, group=None, async_op: bool = False, algorithm: str | None = None):
    """The output becomes the arrays of all ranks, one behind the other."""
    def describe(group):
        own, whole = buffer("input_tensor", input_tensor, writable=False), buffer("output_tensor", output_tensor)
        same_type(input_tensor=own, output_tensor=whole)
        if whole.count != own.count * group.size():
            raise ArgumentError(f"output_tensor has {whole.count} elements; {group.size()} ranks with {own.count} each give "
                                f"{own.count * group.size()}")
        return dict(source=own, target=whole, counts=[own.count] * group.size(), algorithm=algorithm)
    return _run(group, "all_gather", describe, async_op)


def reduce_scatter(output, input_list, op: str = ReduceOp.SUM, group=None, async_op: bool = False, algorithm: str | None = None):
    """The output of the i-th rank becomes the reduction of all ranks' input_list[i]. The parts may have different sizes."""
    def describe(group):
        own, parts = buffer("output", output), buffers("input_list", input_list, group.size(), writable=False)
        same_type(output=own, input_list=parts[0])
        counts = _counts(group, "the sizes of input_list", [part.count for part in parts], own.count)
        return dict(source=pack(parts), target=own, counts=counts, op=op, algorithm=algorithm)
    return _run(group, "reduce_scatter", describe, async_op)


def reduce_scatter_tensor(output, input, op: str = ReduceOp.SUM, group=None, async_op: bool = False, algorithm: str | None = None):
    """The same with equal parts of one array."""
    def describe(group):
        own, whole = buffer("output", output), buffer("input", input, writable=False)
        same_type(output=own, input=whole)
        if whole.count != own.count * group.size():
            raise ArgumentError(f"input has {whole.count} elements, which {group.size()} ranks do not share in parts of {own.count}")
        return dict(source=whole, target=own, counts=[own.count] * group.size(), op=op, algorithm=algorithm)
    return _run(group, "reduce_scatter", describe, async_op)


def gather(tensor, gather_list=None, dst: int = 0, group=None, async_op: bool = False, counts=None, algorithm: str | None = None):
    """On rank dst, gather_list[i] becomes the array of the i-th rank; other ranks give None. Where ranks have different sizes, all of
    them give `counts`, the elements of each."""
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
    """The array of the i-th rank becomes scatter_list[i] of rank src; other ranks give None. Where parts have different sizes, all
    ranks give `counts`, the elements of each."""
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
            raise ArgumentError(f"{name}[{index}] has {part.count} elements, and rank {index} of the group {count}; "
                                "different sizes need counts, on all ranks")


def all_to_all(output_tensor_list, input_tensor_list, group=None, async_op: bool = False, algorithm: str | None = None):
    """output_tensor_list[i] becomes what the i-th rank has for this one, in its input_tensor_list. Sizes may differ."""
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
    """The same with one array each, cut along its first dimension: into equal parts, or into those given, in rows."""
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
            raise ArgumentError(f"{name} has {rows} rows, which {group.size()} ranks do not divide; give {name}_split_sizes")
        sizes = [rows // group.size()] * group.size()
    if len(sizes) != group.size() or sum(sizes) != rows or min(sizes) < 0:
        raise ArgumentError(f"{name}_split_sizes {list(sizes)} are not {group.size()} parts of {rows} rows")
    return [int(size) * (data.count // rows if rows else 0) for size in sizes]


def barrier(group=None, async_op: bool = False):
    """Returns when all ranks of the group have called it."""
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
    """The algorithm that a call takes by default, for the group, its hosts and the size: of all_gather and gather with this rank's
    array, of reduce_scatter and scatter with a part, of the others with the buffer. Rank by rank the same."""
    target, call = _sized(kind, tensor, group, root)
    if target is None:
        return ""
    with target.errors():
        return target.handle.algorithm(*call)


def sent_bytes(kind: str, tensor, group=None, root: int = 0, algorithm: str | None = None) -> dict[int, int]:
    """The bytes that this rank sends in such a call, by rank of the job; of `all_to_all` with this array for each. Calls count no more
    than data: beside it go a head a message of TCP, and what ranks tell each other before data moves."""
    target, call = _sized(kind, tensor, group, root)
    if target is None:
        return {}
    with target.errors():
        return {rank: count for rank, count in zip(target.ranks, target.handle.sent_bytes(*call, algorithm)) if count}


def _sized(kind: str, tensor, group, root: int):
    """The group, and what its calls take: kind, type, root, and the elements of each rank."""
    target, data = member(group), buffer("tensor", tensor, writable=False)
    if target is None:
        return None, ()
    whole = kind in ("all_reduce", "reduce", "broadcast")
    counts = [data.count] * (1 if whole else target.size())
    return target, (kind, data.type, root, counts, counts if kind == "all_to_all" else [])
