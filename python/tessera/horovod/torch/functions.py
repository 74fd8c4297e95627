# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Broadcast of the state of a PyTorch optimizer."""

from __future__ import annotations

import torch

from ...errors import ArgumentError
from ..functions import broadcast_object


def broadcast_optimizer_state(optimizer: torch.optim.Optimizer, root_rank: int = 0, model=None) -> None:
    """Broadcast an optimizer's parameter groups and state from a rank, also to ranks without a state yet.

    Raises ArgumentError.
    """
    if not isinstance(optimizer, torch.optim.Optimizer):
        raise ArgumentError(f"optimizer {type(optimizer).__name__} is not one of torch.optim")
    if isinstance(optimizer, torch.optim.LBFGS):
        raise ArgumentError("LBFGS is not supported: its steps evaluate the model themselves")
    optimizer.load_state_dict(broadcast_object(optimizer.state_dict(), root_rank, "optimizer_state"))
