# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""States of elastic training with PyTorch modules and optimizers."""

from __future__ import annotations

import copy
import math

import torch

from ...errors import ArgumentError
from ..basics import rank, size
from ..elastic import ObjectState, State, run
from ..functions import allgather_object, broadcast_object


class TorchState(ObjectState):
    """A state with `model`, `optimizer` and other attributes, saved by their state_dict if they have one."""

    def __init__(self, model=None, optimizer=None, **kwargs):
        given = {name: value for name, value in {"model": model, "optimizer": optimizer, **kwargs}.items()
                 if value is not None or name not in ("model", "optimizer")}
        self._held = {name: value for name, value in given.items() if hasattr(value, "state_dict") and hasattr(value, "load_state_dict")}
        super().__init__(**{name: value for name, value in given.items() if name not in self._held})
        for name, value in self._held.items():
            setattr(self, name, value)
        self._saved_held = {}
        self.save()

    def save(self) -> None:
        super().save()
        self._saved_held = {name: copy.deepcopy(held.state_dict()) for name, held in self._held.items()}

    def restore(self) -> None:
        super().restore()
        for name, held in self._held.items():
            held.load_state_dict(copy.deepcopy(self._saved_held[name]))

    def sync(self) -> None:
        for name, held in self._held.items():
            if isinstance(held, ElasticSampler):  # merges the indices that each rank has processed
                held.load_state_dict(held.joined(allgather_object(held.state_dict(), f"sampler {name}")))
        self.set_values(broadcast_object(self.values(), 0, "state"))
        self.save()

    def values(self):
        return {**super().values(), **{name: held.state_dict() for name, held in self._held.items()}}

    def set_values(self, values) -> None:
        for name, held in self._held.items():
            held.load_state_dict(values[name])
        super().set_values({name: value for name, value in values.items() if name not in self._held})


class ElasticSampler(torch.utils.data.Sampler):
    """Samples this rank's part of the indices that remain in an epoch; record_batch records processed ones."""

    def __init__(self, dataset, shuffle: bool = True, seed: int = 0):
        if len(dataset) == 0:
            raise ArgumentError("the dataset is empty")
        self.dataset, self.shuffle, self.seed, self.epoch, self.processed_indices = dataset, shuffle, seed, 0, set()
        self.reset()

    def set_epoch(self, epoch: int) -> None:
        """Start an epoch, with no index processed."""
        self.epoch, self.processed_indices = epoch, set()
        self.reset()

    def record_batch(self, batch_idx: int, batch_size: int) -> None:
        """Record the indices of this rank's batch number `batch_idx` as processed."""
        self.record_indices(self.indices[batch_idx * batch_size:(batch_idx + 1) * batch_size])

    def record_indices(self, indices) -> None:
        """Mark indices as processed; the rest of the epoch leaves them out."""
        self.processed_indices.update(int(index) for index in indices)

    def state_dict(self) -> dict:
        """The epoch and the processed indices of this rank."""
        return {"epoch": self.epoch, "processed_indices": sorted(self.processed_indices)}

    def load_state_dict(self, state: dict) -> None:
        """Continue from such a state: the indices that are left are divided among the ranks again."""
        self.epoch, self.processed_indices = state["epoch"], set(state["processed_indices"])
        self.reset()

    @staticmethod
    def joined(states: list[dict]) -> dict:
        """The state of rank 0, with the indices of its epoch that any rank has processed."""
        epoch = states[0]["epoch"]
        return {"epoch": epoch, "processed_indices": sorted({i for state in states if state["epoch"] == epoch for i in state["processed_indices"]})}

    def reset(self) -> None:
        """Distribute the remaining indices over the ranks."""
        left = [index for index in range(len(self.dataset)) if index not in self.processed_indices]
        if self.shuffle:
            generator = torch.Generator().manual_seed(self.seed + self.epoch)
            left = [left[i] for i in torch.randperm(len(left), generator=generator).tolist()]
        self.num_samples = math.ceil(len(left) / size())
        left += (left * size())[:self.num_samples * size() - len(left)]  # pads, so that all ranks have equally many
        self.indices = left[rank()::size()]

    def __iter__(self):
        return iter(list(self.indices))

    def __len__(self):
        return self.num_samples


__all__ = ["ElasticSampler", "ObjectState", "State", "TorchState", "run"]
