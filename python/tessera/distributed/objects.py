# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Collectives of objects, sent as JSON: nothing that a peer sends is executed.

An object is None, a bool, int, float, str or bytes, or a list or dict of objects; dict keys are str. Tuples arrive as
lists.
"""

from __future__ import annotations

import base64
import json

import numpy as np

from ..errors import ArgumentError
from .collectives import all_gather, all_gather_into_tensor, broadcast, gather, refuse, scatter
from .group import DistributedError, member

_BYTES = "__bytes__"


def _plain(value):
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (bytes, bytearray)):
        return {_BYTES: base64.b64encode(value).decode()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    if isinstance(value, dict) and all(isinstance(key, str) for key in value) and _BYTES not in value:
        return {key: _plain(each) for key, each in value.items()}
    raise ArgumentError(f"an object of type {type(value).__name__} cannot be sent; expected None, bool, int, float, str, bytes, or lists "
                        "and dicts (with str keys) of these")


def _encode(value) -> np.ndarray:
    return np.frombuffer(json.dumps(_plain(value)).encode(), np.uint8)


def _restore(value: dict):
    return base64.b64decode(value[_BYTES]) if list(value) == [_BYTES] else value


def _decode(data: np.ndarray):
    try:
        return json.loads(data.tobytes(), object_hook=_restore)
    except (ValueError, TypeError) as error:
        raise DistributedError(f"a rank has sent an invalid object: {error}") from None


def all_gather_object(object_list: list, obj, group=None) -> None:
    """Set object_list[i] to the object of the i-th rank of the group."""
    target = member(group)
    if target is None:
        return
    try:
        if len(object_list) != target.size():
            raise ArgumentError(f"object_list has length {len(object_list)}, and the group has {target.size()} ranks")
        data = _encode(obj)
    except ArgumentError as error:
        refuse(target, "all_gather_object", error).wait()
    sizes = np.zeros(target.size(), np.int64)
    with target.own_arrays():
        all_gather_into_tensor(sizes, np.array([data.size]), group=target)
        parts = [np.empty(size, np.uint8) for size in sizes]
        all_gather(parts, data, group=target)
    object_list[:] = [_decode(part) for part in parts]


def broadcast_object_list(object_list: list, src: int, group=None) -> None:
    """Set the elements of object_list to those of rank src. The lists have the same length on all ranks."""
    target = member(group)
    if target is None:
        return
    is_source, data = target.global_rank == src, np.empty(0, np.uint8)
    try:
        if is_source:
            data = _encode(list(object_list))
    except ArgumentError as error:
        refuse(target, "broadcast_object_list", error).wait()
    size = np.array([data.size])
    with target.own_arrays():
        broadcast(size, src, group=target)
        data = data.copy() if is_source else np.empty(size[0], np.uint8)
        broadcast(data, src, group=target)
    objects = _decode(data)
    if len(objects) != len(object_list):
        raise DistributedError(f"rank {src} sends {len(objects)} objects, and this rank has a list of {len(object_list)}")
    object_list[:] = objects


def gather_object(obj, object_gather_list: list | None = None, dst: int = 0, group=None) -> None:
    """Set object_gather_list[i] on rank dst to the object of the i-th rank of the group; other ranks pass None."""
    target = member(group)
    if target is None:
        return
    try:
        if target.global_rank == dst and (not isinstance(object_gather_list, list) or len(object_gather_list) != target.size()):
            raise ArgumentError(f"object_gather_list of rank {dst} must be a list of length {target.size()}, the number of ranks")
        if target.global_rank != dst and object_gather_list:
            raise ArgumentError(f"object_gather_list is given on rank {target.global_rank}, and dst is {dst}")
        data = _encode(obj)
    except ArgumentError as error:
        refuse(target, "gather_object", error).wait()
    sizes = np.zeros(target.size(), np.int64)
    all_gather_into_tensor(sizes, np.array([data.size]), group=target)
    parts = [np.empty(size, np.uint8) for size in sizes] if target.global_rank == dst else None
    gather(data, parts, dst, group=target, counts=sizes.tolist())
    if parts is not None:
        object_gather_list[:] = [_decode(part) for part in parts]


def scatter_object_list(scatter_object_output_list: list, scatter_object_input_list: list | None = None, src: int = 0, group=None) -> None:
    """Set scatter_object_output_list[0] of the i-th rank to object i of rank src; other ranks pass no input."""
    target = member(group)
    if target is None:
        return
    is_source, parts = target.global_rank == src, None
    try:
        if not isinstance(scatter_object_output_list, list) or not scatter_object_output_list:
            raise ArgumentError("scatter_object_output_list must be a list of at least one element, which receives the object")
        if is_source and (not isinstance(scatter_object_input_list, (list, tuple)) or len(scatter_object_input_list) != target.size()):
            raise ArgumentError(f"scatter_object_input_list of rank {src} must be a list of {target.size()} objects, one for each rank")
        parts = [_encode(each) for each in scatter_object_input_list] if is_source else None
    except ArgumentError as error:
        refuse(target, "scatter_object_list", error).wait()
    sizes = np.array([part.size for part in parts] if is_source else [0] * target.size(), np.int64)
    broadcast(sizes, src, group=target)
    data = np.empty(sizes[target.rank()], np.uint8)
    scatter(data, parts, src, group=target, counts=sizes.tolist())
    scatter_object_output_list[0] = _decode(data)
