# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The importer of PyTorch modules. Needs torch; nothing else of `tessera` does."""

from .importer import TorchModule, from_torch

__all__ = ["TorchModule", "from_torch"]
