# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Derivatives that a PyTorch module defines itself, which torch.export does not keep: functions with a backward, hooks."""

from __future__ import annotations

import contextlib
import inspect
from unittest import mock

import torch


@contextlib.contextmanager
def noticed():
    """Context manager: what defines a derivative of its own meanwhile, in order, as keys."""
    found: dict[str, None] = {}
    apply, hook = inspect.getattr_static(torch.autograd.Function, "apply"), torch.Tensor.register_hook  # a descriptor of Python or of C

    def noticed_apply(cls, *args, **kwargs):
        if cls.__module__.split(".")[0] != "torch":
            found[f"the backward of torch.autograd.Function '{cls.__name__}'"] = None
        return apply.__get__(None, cls)(*args, **kwargs)

    def noticed_hook(self, *args, **kwargs):
        found["a hook of a gradient (register_hook)"] = None
        return hook(self, *args, **kwargs)
    with mock.patch.object(torch.autograd.Function, "apply", classmethod(noticed_apply)), \
            mock.patch.object(torch.Tensor, "register_hook", noticed_hook):
        yield found
