# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Horovod's interface over tessera.distributed (docs/horovod.md): a script changes only its import.

    import tessera.horovod as hvd          # NumPy arrays, tensors and optimizers of tessera
    import tessera.horovod.torch as hvd    # PyTorch tensors and optimizers
"""

from . import elastic
from .basics import (ccl_built, cross_rank, cross_size, cuda_built, ddl_built, gloo_built, gloo_enabled, init, is_homogeneous,
                     is_initialized, local_rank, local_size, mpi_built, mpi_enabled, mpi_threads_supported, nccl_built, rank, rocm_built,
                     shutdown, size)
from .calls import Handle
from .collectives import (allgather, allgather_async, allreduce, allreduce_, allreduce_async, allreduce_async_, alltoall, alltoall_async,
                          barrier, broadcast, broadcast_, broadcast_async, broadcast_async_, grouped_allgather, grouped_allgather_async,
                          grouped_allreduce, grouped_allreduce_, grouped_allreduce_async, grouped_allreduce_async_,
                          grouped_reducescatter, grouped_reducescatter_async, join, poll, reducescatter, reducescatter_async,
                          synchronize)
from .compression import Compression
from .exceptions import CallError, HorovodInternalError, HostsUpdatedInterrupt, NotInitializedError
from .functions import allgather_object, broadcast_object, broadcast_optimizer_state, broadcast_parameters
from .optimizer import DistributedOptimizer, DistributedTrainer, Trainer
from .process_sets import ProcessSet, add_process_set, global_process_set, remove_process_set
from .reductions import Adasum, Average, Max, Min, Product, ReduceOp, Sum
from .run import run
from .timeline import start_timeline, stop_timeline

__all__ = ["Adasum", "Average", "CallError", "Compression", "DistributedOptimizer", "DistributedTrainer", "Handle", "HorovodInternalError",
           "HostsUpdatedInterrupt", "Max", "Min", "NotInitializedError", "ProcessSet", "Product", "ReduceOp", "Sum", "Trainer",
           "add_process_set", "allgather", "allgather_async", "allgather_object", "allreduce", "allreduce_", "allreduce_async",
           "allreduce_async_", "alltoall", "alltoall_async", "barrier", "broadcast", "broadcast_", "broadcast_async", "broadcast_async_",
           "broadcast_object", "broadcast_optimizer_state", "broadcast_parameters", "ccl_built", "cross_rank", "cross_size", "cuda_built",
           "ddl_built", "elastic", "global_process_set", "gloo_built", "gloo_enabled", "grouped_allgather", "grouped_allgather_async",
           "grouped_allreduce", "grouped_allreduce_", "grouped_allreduce_async", "grouped_allreduce_async_", "grouped_reducescatter",
           "grouped_reducescatter_async", "init", "is_homogeneous", "is_initialized", "join", "local_rank", "local_size", "mpi_built",
           "mpi_enabled", "mpi_threads_supported", "nccl_built", "poll", "rank", "reducescatter", "reducescatter_async",
           "remove_process_set", "rocm_built", "run", "shutdown", "size", "start_timeline", "stop_timeline", "synchronize"]
