# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PyTorch: the importer of its modules, and data parallelism of modules run by autograd.

Needs torch; nothing else in `tessera` does.
"""

from .importer import TorchModule, from_torch
from .normalization import SyncBatchNorm
from .parallel import DistributedDataParallel, GradientError

__all__ = ["DistributedDataParallel", "GradientError", "SyncBatchNorm", "TorchModule", "from_torch"]
