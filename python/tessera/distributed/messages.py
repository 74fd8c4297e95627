# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Messages between two ranks of a group."""

from __future__ import annotations

from collections.abc import Callable

from ..errors import ArgumentError
from .buffers import buffer
from .group import member
from .work import Work


def isend(tensor, dst: int, group=None, tag: int = 0) -> Work | None:
    """Start sending an array to a rank of the job. GPU arrays are copied through the host.

    The n-th send with a tag matches the n-th receive with that tag. Returns None if this rank is not in the group.
    """
    target, data = member(group), buffer("tensor", tensor, writable=False)
    if target is None:
        return None
    if dst == target.global_rank:
        raise ArgumentError(f"dst {dst} is this rank")
    arguments = _rank("dst", dst), _rank("tag", tag), data.address, data.bytes, data.text
    with target.errors():
        handle = target.handle.send(*arguments) if target.is_host(data) else target.handle.send_from_device(*arguments, data.stream)
    return Work(target, handle, (data,))


def irecv(tensor, src: int | None = None, group=None, tag: int = 0) -> Work | None:
    """Start receiving an array of this size and dtype from rank src, or from any rank if it is None.

    `source` of the result is the sender. Returns None if this rank is not in the group.
    """
    target, data = member(group), buffer("tensor", tensor)
    if target is None:
        return None
    if src == target.global_rank:
        raise ArgumentError(f"src {src} is this rank")
    arguments = -1 if src is None else _rank("src", src), _rank("tag", tag), data.address, data.bytes, data.text
    with target.errors():
        handle = target.handle.receive(*arguments) if target.is_host(data) else target.handle.receive_to_device(*arguments)
    return Work(target, handle, (data,))


def _rank(name: str, value) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1 << 62:
        raise ArgumentError(f"{name} {value!r} is not a whole number from 0")
    return value


def send(tensor, dst: int, group=None, tag: int = 0) -> None:
    """Send an array, and wait until it may be modified."""
    if work := isend(tensor, dst, group, tag):
        work.wait()


def recv(tensor, src: int | None = None, group=None, tag: int = 0) -> int:
    """Receive an array and wait for it. Returns the sender, or -1 if this rank is not in the group."""
    work = irecv(tensor, src, group, tag)
    if work is None:
        return -1
    work.wait()
    return work.source


class P2POp:
    """A message of batch_isend_irecv. op: isend or irecv."""

    def __init__(self, op: Callable, tensor, peer: int, group=None, tag: int = 0):
        if op not in (isend, irecv):
            raise ArgumentError(f"op {op!r} is neither isend nor irecv")
        self.op, self.tensor, self.peer, self.group, self.tag = op, tensor, peer, group, tag


def batch_isend_irecv(p2p_op_list) -> list[Work]:
    """Start all messages; none waits for another."""
    for each in p2p_op_list:
        if not isinstance(each, P2POp):
            raise ArgumentError(f"{each!r} is not a P2POp")
    works = [each.op(each.tensor, each.peer, each.group, each.tag) for each in p2p_op_list]
    return [work for work in works if work is not None]
