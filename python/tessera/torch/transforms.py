# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Modules whose forward differentiates (torch.func.grad, jacrev, hessian, ...), which torch.export refuses.

They are traced below torch.func first, to a graph of plain operations that include those of derivatives; a copy of the
module that runs this graph is exported.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import traceback
from unittest import mock

import torch
import torch.utils._pytree as pytree
from torch.fx.experimental.proxy_tensor import make_fx
from torch.overrides import TorchFunctionMode

try:
    from torch._functorch import eager_transforms  # not public, and torch.func has no public sign of its use
except ImportError:
    eager_transforms = None

from ..errors import Error
from ..ir import Location
from ..source import is_of_library, is_of_package, refuse

_LEVELS = ("grad_increment_nesting", "jvp_increment_nesting")  # context managers that all derivatives of torch.func enter


@contextlib.contextmanager
def differentiating():
    """Context manager: a list that is not empty once derivatives of torch.func are taken."""
    found: list[str] = []

    def noted(level):
        @functools.wraps(level)
        def enter(*args, **kwargs):
            found.append(level.__name__)
            return level(*args, **kwargs)
        return enter
    with contextlib.ExitStack() as stack:
        for name in _LEVELS:
            if hasattr(eager_transforms, name):
                stack.enter_context(mock.patch.object(eager_transforms, name, noted(getattr(eager_transforms, name))))
        yield found


class _NoGrad(TorchFunctionMode):
    """Refuses operations under torch.no_grad(): the graph has no place for it, and their derivatives would be taken."""

    def __init__(self, name: str):
        super().__init__()
        self.name = name

    def __torch_function__(self, function, types, args=(), kwargs=None):
        given = pytree.tree_leaves((args, kwargs))
        if not torch.is_grad_enabled() and any(isinstance(x, torch.Tensor) and x.requires_grad for x in given):
            raise refuse(Error, f"'{self.name}' uses torch.no_grad() beside derivatives of torch.func, which cannot be imported together; use detach()",
                         _line())
        return function(*args, **(kwargs or {}))


def _line() -> Location | None:
    """The running line outside of installed packages."""
    return _innermost([(frame.f_code.co_filename, line) for frame, line in traceback.walk_stack(None)])


def _of(error: Exception) -> Location | None:
    """The line outside of installed packages that raised an error."""
    return _innermost([(frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(error.__traceback__)][::-1])


def _innermost(lines) -> Location | None:
    return next((Location(file, line) for file, line in lines if not is_of_package(file) and not is_of_library(file)), None)


def without_transforms(module, args, kwargs):
    """A copy of the module with the graph of its operations, in place of transformations, as its forward.

    It shares parameters and buffers. Raises Error if PyTorch cannot trace it, and for a part under torch.no_grad().
    """
    names = [name for name, _ in (*module.named_parameters(), *module.named_buffers())]
    given, structure = pytree.tree_flatten((args, kwargs))
    structures = []

    def run(state, leaves):
        args, kwargs = pytree.tree_unflatten(leaves, structure)
        with torch.enable_grad(), _NoGrad(type(module).__name__):
            results, of_results = pytree.tree_flatten(torch.func.functional_call(module, dict(zip(names, state)), args, kwargs))
        structures.append(of_results)
        return results
    try:
        graph = make_fx(run, tracing_mode="fake", record_stack_traces=True, _allow_non_fake_inputs=True)(_state(module), given)
    except Error:
        raise
    except Exception as error:
        reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
        raise refuse(Error, f"PyTorch cannot trace the derivatives that '{type(module).__name__}' takes by torch.func: {reason}; use reverse mode "
                            "(torch.func.grad, jacrev), or import the module without them and use tessera.grad", _of(error)) from error

    def forward(*args, **kwargs):
        with torch.fx.traceback.preserve_node_meta():  # with the lines of the module
            return pytree.tree_unflatten(torch.fx.Interpreter(graph).run(_state(traced), pytree.tree_leaves((args, kwargs))), structures[-1])
    traced = copy.copy(module)
    traced.forward = functools.wraps(module.forward)(forward)
    return traced


def _state(module) -> list:
    return [*module.parameters(), *module.buffers()]
