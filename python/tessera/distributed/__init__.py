# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Process groups: collectives and messages between the processes of a job (docs/distributed.md).

The functions are those of torch.distributed, for NumPy arrays, PyTorch tensors, and objects with the buffer protocol,
DLPack or the CUDA array interface. All ranks of a group make the same calls in the same order; a call that differs
between ranks fails on all of them.
"""

from ..source import misspelt
from .collectives import (ReduceOp, all_gather, all_gather_into_tensor, all_reduce, all_to_all, all_to_all_single, barrier, broadcast,
                          gather, reduce, reduce_scatter, reduce_scatter_tensor, scatter, sent_bytes, which_algorithm)
from .group import (NON_GROUP_MEMBER, DistributedError, ProcessGroup, backends, destroy_process_group, get_backend, get_host,
                    get_local_rank, get_process_group_ranks, get_rank, get_world_size, init_process_group, is_initialized, load_backend, new_group)
from .messages import P2POp, batch_isend_irecv, irecv, isend, recv, send
from .objects import all_gather_object, broadcast_object_list, gather_object, scatter_object_list
from .group_ranks import get_global_rank, get_group_rank, is_available
from .processes import SpawnError, spawn
from .work import Work

__all__ = ["NON_GROUP_MEMBER", "DistributedError", "P2POp", "ProcessGroup", "ReduceOp", "SpawnError", "Work", "all_gather",
           "all_gather_into_tensor", "all_gather_object", "all_reduce", "all_to_all", "all_to_all_single", "backends", "barrier",
           "batch_isend_irecv", "broadcast", "broadcast_object_list", "destroy_process_group", "gather", "gather_object",
           "get_backend", "get_global_rank", "get_group_rank", "get_host", "get_local_rank", "get_process_group_ranks", "get_rank", "get_world_size", "init_process_group", "irecv",
           "is_available", "is_initialized", "isend", "load_backend", "new_group", "recv", "reduce", "reduce_scatter", "reduce_scatter_tensor", "scatter", "scatter_object_list",
           "send", "sent_bytes", "spawn", "which_algorithm"]
__getattr__ = misspelt(__name__, __all__)
