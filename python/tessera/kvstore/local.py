# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Stores without servers: in one process, and over the collectives of a process group."""

from __future__ import annotations

import json

import numpy as np

from .. import distributed, ranks
from ..errors import ArgumentError
from . import compression, updates
from .store import Entry, KVStore, StoreError, combine


class LocalStore(KVStore):
    """A store in this process."""

    type = "local"

    def __init__(self):
        super().__init__()
        self._values: dict[int | str, np.ndarray] = {}
        self._states: dict[int | str, tuple[int, dict]] = {}
        self._description: dict | None = None
        self._updater = None

    def _init(self, key, value, entry):
        self._values[key] = value.copy()

    def _push(self, key, value, op, entry):
        codes = self._codes(key, value, op, entry)
        total = self._total(value, codes, op, entry)
        if entry.param_only or not self._steps(entry):
            self._values[key] = total.copy()
        elif self._updater is not None:
            self._updater(key, total, self._values[key])
        else:
            count, state = self._states.get(key, (0, {}))
            self._values[key] = updates.apply(self._description, self._values[key], total, state, count + 1)
            self._states[key] = count + 1, state

    def _total(self, value, codes, op: str, entry: Entry) -> np.ndarray:
        return value if codes is None else compression.decode(codes, entry.count, entry.dtype, self._limit).reshape(entry.shape)

    def _pull(self, key, entry):
        return self._values[key].copy()

    def _steps(self, entry):
        return not entry.param_only and (self._description is not None or self._updater is not None)

    def _optimizer(self, description):
        self._description, self._updater = description, None

    def save_optimizer_states(self, fname):
        """Write the state of each key (step count, slots) to an .npz file. Raises StoreError without an optimizer."""
        if self._description is None:
            raise StoreError("there is no optimizer whose states could be saved; call set_optimizer first")
        keys = sorted(self._states, key=repr)
        arrays = {f"{place}/{slot}": value for place, key in enumerate(keys) for slot, value in self._states[key][1].items()}
        with open(fname, "wb") as file:
            np.savez(file, keys=json.dumps([[key, self._states[key][0]] for key in keys]), kind=self._description["kind"], **arrays)

    def load_optimizer_states(self, fname):
        """Read such a file. Raises StoreError without an optimizer, or if the file is of another one."""
        if self._description is None:
            raise StoreError("there is no optimizer for the states; call set_optimizer before load_optimizer_states")
        slots = updates.slots(self._description)
        try:
            with np.load(fname, allow_pickle=False) as file:
                kind, keys = str(file["kind"]), json.loads(str(file["keys"]))
                found = {key: (count, {slot: file[f"{place}/{slot}"] for slot in slots if f"{place}/{slot}" in file})
                         for place, (key, count) in enumerate(keys)}
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise StoreError(f"{fname}: not a file of optimizer states: {error}") from None
        if kind != self._description["kind"]:
            raise StoreError(f"{fname}: the states are of {kind}, and the optimizer is {self._description['kind']}")
        for key, (_, state) in found.items():
            entry = self._entry("load_optimizer_states", key)
            for slot, value in state.items():
                if value.shape != entry.shape or value.dtype != updates.wide(entry.dtype):
                    raise StoreError(f"{fname}: '{slot}' of key {key!r} is {value.dtype} of shape {list(value.shape)}, and the key is {entry}")
        self._states = found

    def set_updater(self, updater):
        """Call updater(key, pushed, stored) for each push, in place of an optimizer. Raises StoreError if it is not callable."""
        if not callable(updater):
            raise StoreError(f"updater {updater!r} is not a function of (key, pushed, stored)")
        self._updater, self._description = updater, None


class DeviceStore(LocalStore):
    """A store without servers: each worker has all values, and a push is an all-reduce that adds in the order of ranks."""

    type = "dist_sync_device"

    def __init__(self):
        super().__init__()
        self._owns = not distributed.is_initialized()
        if self._owns:
            distributed.init_process_group()
        self.rank, self.num_workers = distributed.get_rank(), distributed.get_world_size()
        local = ranks.read().local_rank
        self.local_rank = distributed.get_local_rank() if local is None else local

    def _init(self, key, value, entry):
        mine = [repr(key), entry.dtype.name, list(entry.shape), entry.param_only]
        specs = [None] * self.num_workers
        distributed.all_gather_object(specs, mine)
        check_equal(specs)
        value = value.copy()
        distributed.broadcast(value, 0)
        super()._init(key, value, entry)

    def _total(self, value, codes, op, entry):
        if codes is None:
            total = value.copy()
            distributed.all_reduce(total, op)
            return total
        every = np.empty((self.num_workers, codes.size), np.uint8)
        distributed.all_gather_into_tensor(every, codes)
        return combine(op, [compression.decode(each, entry.count, entry.dtype, self._limit) for each in every]).reshape(entry.shape)

    def barrier(self):
        """Wait for all workers."""
        distributed.barrier()

    def close(self):
        """End the process group if the store has made it; may be called twice."""
        if self._owns and distributed.is_initialized():
            distributed.destroy_process_group()
        self._owns = False


def check_equal(specs: list) -> None:
    """Raise ArgumentError if workers initialize different keys. specs: [key, dtype, shape, param_only] by rank."""
    for rank, each in enumerate(specs):
        if each != specs[0]:
            raise ArgumentError(f"the workers initialize different keys: worker 0 {_text(specs[0])}, worker {rank} {_text(each)}")


def _text(spec) -> str:
    key, dtype, shape, param_only = spec
    return f"key {key} as {dtype} of shape {shape}" + (" with param_only" if param_only else "")
