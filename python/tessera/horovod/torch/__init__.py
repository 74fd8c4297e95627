# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Horovod's interface for PyTorch: differentiable calls of tessera.horovod, and distributed torch.optim optimizers."""

from .. import (Adasum, Average, CallError, Compression, Handle, HorovodInternalError, HostsUpdatedInterrupt, Max, Min, NotInitializedError,
                ProcessSet, Product, ReduceOp, Sum, add_process_set, allgather_async, allgather_object, allreduce_, allreduce_async,
                allreduce_async_, alltoall_async, barrier, broadcast_, broadcast_async, broadcast_async_, broadcast_object,
                broadcast_parameters, ccl_built, cross_rank, cross_size, cuda_built, ddl_built, global_process_set, gloo_built,
                gloo_enabled, grouped_allgather_async, grouped_allreduce_, grouped_allreduce_async, grouped_allreduce_async_,
                grouped_reducescatter_async, init, is_homogeneous, is_initialized, join, local_rank, local_size, mpi_built, mpi_enabled,
                mpi_threads_supported, nccl_built, poll, rank, reducescatter_async, remove_process_set, rocm_built, run, shutdown, size,
                start_timeline, stop_timeline, synchronize)
from . import elastic
from .collectives import (allgather, allreduce, alltoall, broadcast, grouped_allgather, grouped_allreduce, grouped_reducescatter,
                          reducescatter, sparse_allreduce_async)
from .functions import broadcast_optimizer_state
from .normalization import SyncBatchNorm
from .optimizer import DistributedOptimizer

__all__ = ["Adasum", "Average", "CallError", "Compression", "DistributedOptimizer", "Handle", "HorovodInternalError", "HostsUpdatedInterrupt",
           "Max", "Min", "NotInitializedError", "ProcessSet", "Product", "ReduceOp", "Sum", "SyncBatchNorm", "add_process_set", "allgather",
           "allgather_async", "allgather_object", "allreduce", "allreduce_", "allreduce_async", "allreduce_async_", "alltoall",
           "alltoall_async", "barrier", "broadcast", "broadcast_", "broadcast_async", "broadcast_async_", "broadcast_object",
           "broadcast_optimizer_state", "broadcast_parameters", "ccl_built", "cross_rank", "cross_size", "cuda_built", "ddl_built",
           "elastic", "global_process_set", "gloo_built", "gloo_enabled", "grouped_allgather", "grouped_allgather_async",
           "grouped_allreduce", "grouped_allreduce_", "grouped_allreduce_async", "grouped_allreduce_async_", "grouped_reducescatter",
           "grouped_reducescatter_async", "init", "is_homogeneous", "is_initialized", "join", "local_rank", "local_size", "mpi_built",
           "mpi_enabled", "mpi_threads_supported", "nccl_built", "poll", "rank", "reducescatter", "reducescatter_async",
           "remove_process_set", "rocm_built", "run", "shutdown", "size", "sparse_allreduce_async", "start_timeline", "stop_timeline", "synchronize"]
