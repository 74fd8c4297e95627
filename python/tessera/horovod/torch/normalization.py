# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Horovod's SyncBatchNorm."""

from __future__ import annotations

from ...errors import ArgumentError
from ...torch import normalization
from ..collectives import allreduce
from ..process_sets import ProcessSet, global_process_set
from ..reductions import Sum


class SyncBatchNorm(normalization.SyncBatchNorm):
    """Batch normalization with the statistics of all ranks of process_set, reduced with Horovod's allreduce."""

    def __init__(self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True,
                 track_running_stats: bool = True, process_set: ProcessSet = global_process_set):
        super().__init__(num_features, eps, momentum, affine, track_running_stats)
        if not isinstance(process_set, ProcessSet):
            raise ArgumentError(f"process_set {process_set!r} is not a ProcessSet")
        self.process_set = process_set

    def _sum(self, values, what):
        return allreduce(values, op=Sum, process_set=self.process_set)
