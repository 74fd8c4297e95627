# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The base class of all stores: keys, and the checks of pushed and pulled values."""

from __future__ import annotations

import dataclasses

import numpy as np

from ..errors import ArgumentError, DTypeError, ShapeError
from . import compression, updates

Sum, Max, Min = "sum", "max", "min"
OPS = (Sum, Max, Min)
TYPES = ("float64", "float32", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint64", "uint32", "uint16", "uint8")


class StoreError(ArgumentError):
    """An invalid key or value of a store."""


@dataclasses.dataclass(frozen=True)
class Entry:
    """The properties of a key. With `param_only`, neither an optimizer nor compression applies to it."""

    shape: tuple[int, ...]
    dtype: np.dtype
    param_only: bool

    @property
    def count(self) -> int:
        """The number of elements."""
        return int(np.prod(self.shape, dtype=np.int64))

    def __str__(self):
        return f"{self.dtype} of shape {list(self.shape)}" + (" with param_only" if self.param_only else "")


def array(name: str, value) -> np.ndarray:
    """A value as a contiguous array: a NumPy array, Tensor, PyTorch tensor, list or number. Raises DTypeError.

    name: how messages call the value.
    """
    if hasattr(value, "detach"):
        value = value.detach().cpu().numpy()
    found = np.asarray(value)
    if found.dtype.name not in TYPES or found.dtype.byteorder == ">":
        raise DTypeError(f"{name} has dtype {found.dtype}; expected one of {', '.join(TYPES)}")
    return np.ascontiguousarray(found).reshape(found.shape)


def combine(op: str, arrays) -> np.ndarray:
    """Combine contributions in their order.

    16-bit floats are added in float32 and rounded once; max and min propagate NaN.
    """
    if len(arrays) == 1:
        return arrays[0]
    if op != Sum:
        function, total = (np.maximum if op == Max else np.minimum), arrays[0]
        for each in arrays[1:]:
            total = function(total, each)
        return total
    total = arrays[0].astype(updates.wide(arrays[0].dtype))
    for each in arrays[1:]:
        total += each
    return total.astype(arrays[0].dtype)


class KVStore:
    """Arrays under keys, which the workers of a job push to and pull from; created by `kvstore.create`.

    A key is a string or an integer; all methods also take lists of keys, with lists of values. A value may be a list of
    arrays, one per device of this worker, which are combined first.
    """

    type = ""
    rank, num_workers, local_rank = 0, 1, 0

    def __init__(self):
        self._entries: dict[int | str, Entry] = {}
        self._limit: float | None = None
        self._residuals: dict[int | str, np.ndarray] = {}

    # Implemented by subclasses.

    def _init(self, key, value: np.ndarray, entry: Entry) -> None:
        raise NotImplementedError

    def _push(self, key, value: np.ndarray, op: str, entry: Entry) -> None:
        raise NotImplementedError

    def _pull(self, key, entry: Entry) -> np.ndarray:
        raise NotImplementedError

    def _optimizer(self, description: dict) -> None:
        raise NotImplementedError

    def barrier(self) -> None:
        """Wait until all workers have called it."""

    def close(self) -> None:
        """Leave the job; called automatically when the process exits."""

    # Public methods.

    def init(self, key, value, param_only: bool = False) -> None:
        """Create a key with the value of the lowest rank.

        With `param_only`, pushes replace the value; no optimizer applies.

        Raises StoreError if the key exists or workers disagree about it.
        """
        for one, each in self._pairs(key, value):
            if one in self._entries:
                raise StoreError(f"key {one!r} is already initialized; push to it, or use another key")
            found = array(f"the value of key {one!r}", each[0] if isinstance(each, (list, tuple)) and each and hasattr(each[0], "shape") else each)
            entry = Entry(found.shape, found.dtype, bool(param_only))
            self._init(one, found, entry)
            self._entries[one] = entry

    def push(self, key, value, op: str = Sum, priority: int = 0) -> None:
        """Contribute to a key, without waiting for other workers.

        The sum, maximum or minimum of all workers' values becomes the key's value or, with an optimizer, the gradient
        of a step. `priority` has no effect. Raises StoreError, DTypeError or ShapeError.
        """
        if op not in OPS:
            raise StoreError(f"unknown op {op!r} of push; expected one of {', '.join(OPS)}")
        for one, each in self._pairs(key, value):
            entry = self._entry("push", one)
            parts = each if isinstance(each, (list, tuple)) and each and hasattr(each[0], "shape") else [each]
            found = combine(op, [self._checked(one, array(f"the value pushed to key {one!r}", part), entry) for part in parts])
            if op != Sum and self._steps(entry):
                raise StoreError(f"push to key {one!r} with {op}: the optimizer takes sums only; initialize the key with param_only=True")
            self._push(one, found, op, entry)

    def pull(self, key, out=None, priority: int = 0):
        """The value of a key, which includes this worker's last push to it.

        Writes it to `out`, an array or list of arrays, and returns None if `out` is given.
        """
        keys = list(key) if isinstance(key, (list, tuple)) else [key]
        if out is not None and isinstance(key, (list, tuple)) and (not isinstance(out, (list, tuple)) or len(out) != len(keys)):
            raise StoreError(f"{len(keys)} keys and out {type(out).__name__}; give a list of as many arrays")
        outs = [None] * len(keys) if out is None else list(out) if isinstance(key, (list, tuple)) else [out]
        entries = [self._entry("pull", one) for one in keys]
        targets = [[_target(one, each, entry) for each in (place if isinstance(place, (list, tuple)) else [place]) if each is not None]
                   for one, place, entry in zip(keys, outs, entries)]
        found = []
        for one, entry, places in zip(keys, entries, targets):
            value = self._pull(one, entry)
            for place in places:
                place[...] = value
            found.append(value)
        return None if out is not None else found if isinstance(key, (list, tuple)) else found[0]

    def pushpull(self, key, value, out=None, op: str = Sum, priority: int = 0):
        """Push, then pull; `out` may be the pushed arrays."""
        self.push(key, value, op, priority)
        return self.pull(key, out, priority)

    def broadcast(self, key, value, out=None, priority: int = 0):
        """Initialize a key, then pull it: all workers get the value of the lowest rank."""
        self.init(key, value)
        return self.pull(key, out, priority)

    def set_gradient_compression(self, parameters) -> None:
        """Compress pushes, with {"type": "2bit", "threshold": t} or {"type": "none"}.

        Sums of floats are pushed as +t, 0 or -t; the difference is added to the next push.
        """
        self._limit, self._residuals = compression.threshold(parameters), {}

    def set_optimizer(self, optimizer, scale: float = 1.0) -> None:
        """Apply an optimizer step per round of pushes (dist_async: per push), instead of storing the sum.

        All workers call it.

        optimizer: SGD, Adam or AdamW of tessera.optim; scale: factor of gradients, for example 1 / num_workers.
        """
        self._optimizer(updates.describe(optimizer, scale))

    def set_updater(self, updater) -> None:
        """Let updater(key, pushed, stored) update `stored` in place at each push.

        Raises StoreError for stores with servers.
        """
        raise StoreError(f"store '{self.type}' takes no updater: servers do not execute code that is sent to them; call set_optimizer")

    def save_optimizer_states(self, fname) -> None:
        """Write the optimizer's states, equal on all workers, to an .npz file.

        Raises StoreError for stores with servers.
        """
        raise StoreError(f"store '{self.type}' keeps its states, and their replicas, on servers; only 'local' and 'dist_sync_device' save "
                         "states")

    def load_optimizer_states(self, fname) -> None:
        """Read a file of save_optimizer_states. The keys and the optimizer must be set before. Raises StoreError."""
        self.save_optimizer_states(fname)

    def _set_updater(self, updater) -> None:
        """MXNet's name of set_updater."""
        self.set_updater(updater)

    def _pairs(self, key, value) -> list:
        if not isinstance(key, (list, tuple)):
            return [(_key(key), value)]
        if not isinstance(value, (list, tuple)) or len(value) != len(key):
            raise StoreError(f"{len(key)} keys and {len(value) if isinstance(value, (list, tuple)) else type(value).__name__} values; give one "
                             "value per key")
        return [(_key(one), each) for one, each in zip(key, value)]

    def _entry(self, what: str, key) -> Entry:
        if _key(key) not in self._entries:
            raise StoreError(f"{what} of key {key!r} before init; initialize it on all workers")
        return self._entries[key]

    def _checked(self, key, value: np.ndarray, entry: Entry) -> np.ndarray:
        if value.dtype != entry.dtype:
            raise DTypeError(f"key {key!r} has dtype {entry.dtype} and {value.dtype} is pushed; convert the value with astype")
        if value.shape != entry.shape:
            raise ShapeError(f"key {key!r} has shape {list(entry.shape)} and {list(value.shape)} is pushed")
        return value

    def _steps(self, entry: Entry) -> bool:
        """Whether an optimizer or updater changes the key's value."""
        return False

    def _codes(self, key, value: np.ndarray, op: str, entry: Entry) -> np.ndarray | None:
        """The compressed value. Returns None if compression does not apply to it."""
        if self._limit is None or op != Sum or entry.param_only or entry.dtype.name not in TYPES[:4]:
            return None
        if key not in self._residuals:
            self._residuals[key] = np.zeros(entry.count, updates.wide(entry.dtype))
        return compression.encode(value.reshape(-1), self._residuals[key], self._limit)


def _key(key):
    if isinstance(key, bool) or not isinstance(key, (int, str)) or len(str(key)) > 200:
        raise StoreError(f"key {key!r} is neither a string of at most 200 characters nor a whole number")
    return key


def _target(key, out, entry: Entry) -> np.ndarray:
    place = out.detach().numpy() if hasattr(out, "detach") else out
    if not isinstance(place, np.ndarray) or not place.flags.writeable:
        raise StoreError(f"out of key {key!r} is not a writable array; give a NumPy array or a PyTorch tensor on the CPU")
    if place.dtype != entry.dtype:
        raise DTypeError(f"key {key!r} has dtype {entry.dtype} and out has {place.dtype}")
    if place.shape != entry.shape:
        raise ShapeError(f"key {key!r} has shape {list(entry.shape)} and out has {list(place.shape)}")
    return place
