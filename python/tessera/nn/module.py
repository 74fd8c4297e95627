# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Modules: objects whose tensors are parameters and buffers.

A module is a tree, accepted by `jit`, `grad` and optimizers.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator

import numpy as np

from .. import tree
from ..compiled import infer_predict_layout
from ..errors import ArgumentError, ShapeError, TraceError
from ..layout import Placed
from ..source import did_you_mean, refuse
from ..strategy import shard
from ..tensor import Tensor, asarray, from_array

_lazy = threading.local()


class Module:
    """Base class of layers.

    Attributes that are tensors, modules or containers of them form the tree; other attributes are settings, which are
    part of a compiled program. A subclass assigns its parts in __init__ and defines `forward`.
    """

    def __init__(self):
        object.__setattr__(self, "training", True)

    def register_buffer(self, name: str, value) -> None:
        """Sets an attribute to a tensor that is not a parameter: it is not trained."""
        object.__setattr__(self, "_buffers", (*self.__dict__.get("_buffers", ()), name))
        setattr(self, name, asarray(value))

    def forward(self, *args, **kwargs):
        """The computation of a call. Subclasses define it."""
        raise NotImplementedError(f"{type(self).__name__} has no forward")

    def __call__(self, *args, **kwargs):
        return self.forward(*args, **kwargs)

    __tree_fields__ = tree.attributes

    # Contents.

    def named_parameters(self) -> Iterator[tuple[str, Tensor]]:
        """(path, tensor) of each parameter, such as "layers.0.weight"; includes frozen ones."""
        return ((leaf.path, leaf.value) for leaf in tree.flatten(self)[0] if leaf.parameter)

    def parameters(self) -> list[Tensor]:
        """The parameters in the order of named_parameters; includes frozen ones."""
        return [value for _, value in self.named_parameters()]

    def named_buffers(self) -> Iterator[tuple[str, Tensor]]:
        """(path, tensor) of each buffer, as for named_parameters."""
        return ((leaf.path, leaf.value) for leaf in tree.flatten(self)[0] if not leaf.parameter)

    def modules(self) -> Iterator[Module]:
        """This module and all nested modules."""
        def visit(value):
            if isinstance(value, Module):
                yield value
            for _, child in (tree.children(value) or (None, None, (), ()))[2]:
                yield from visit(child)
        return visit(self)

    def train(self, mode: bool = True) -> Module:
        """Sets `training` on this and all nested modules; used by dropout and batch normalization."""
        for module in self.modules():
            module._set_training(mode)
        return self

    def _set_training(self, mode: bool) -> None:
        """Sets the mode of this module alone."""
        object.__setattr__(self, "training", mode)

    def eval(self) -> Module:
        """train(False): dropout passes values on, batch normalization uses its running statistics."""
        return self.train(False)

    def apply_to_tensors(self, function: Callable[[str, Tensor], Tensor]) -> Module:
        """Replaces each parameter and buffer by function(path, tensor)."""
        leaves, _ = tree.flatten(self)
        tree.assign(self, [function(leaf.path, leaf.value) for leaf in leaves])
        return self

    def astype(self, dtype) -> Module:
        """A copy with floating-point tensors converted to dtype."""
        leaves, _ = tree.flatten(self)
        return tree.rebuild(self, [leaf.value.astype(dtype) if leaf.value.dtype.kind == "float" else leaf.value for leaf in leaves])

    def state_dict(self) -> dict[str, np.ndarray]:
        """Parameters and buffers as arrays, by path; for an imported module by the names in PyTorch's state_dict."""
        return {name: array for leaf in tree.state_leaves(self) for array in [leaf.value.numpy()] for name in leaf.names}

    def load_state_dict(self, state: dict) -> Module:
        """Loads values by the names of state_dict, or by path; placements are kept.

        Raises ArgumentError for missing and unknown names, ShapeError for different shapes.
        """
        leaves = tree.state_leaves(self)
        known = {name for leaf in leaves for name in leaf.known}
        found = [next((name for name in leaf.known if name in state), None) for leaf in leaves]
        for leaf, name in zip(leaves, found):
            if name is None and leaf.names:
                raise refuse(ArgumentError, f"the state has no '{leaf.names[0]}', which the module has"
                                            f"{did_you_mean(leaf.names[0], [n for n in state if n not in known], 'is it')}")
        for name in state:
            if name not in known:
                raise refuse(ArgumentError, f"the module has no '{name}', which the state has{did_you_mean(name, known)}")
        values = []
        for leaf, name in zip(leaves, found):
            if name is None:
                values.append(leaf.value)
                continue
            old, new = leaf.value, asarray(state[name], leaf.value.dtype)
            if old.shape != new.shape:
                raise refuse(ShapeError, f"'{name}' has shape {old.shape}, the state's is {new.shape}")
            values.append(from_array(new._concrete("load_state_dict"), old.dtype, old.sharding))
        tree.assign(self, values)
        return self

    def shard(self, in_strategy, out_strategy=None, **options) -> Callable:
        """This module with its inputs (and results) split by strategies (tessera.shard)."""
        return shard(self, in_strategy, out_strategy, **options)

    def infer_predict_layout(self, *inputs) -> dict[str, Placed]:
        """The placement of each parameter and buffer for such inputs, by name; compiles and runs nothing.

        Values are texts with the Sharding in `.sharding`.
        """
        return infer_predict_layout(self, *inputs)

    def initialize(self) -> Module:
        """Gives parameters made under LazyGuard their values."""
        return self.apply_to_tensors(lambda _, tensor: tensor.initialize() if isinstance(tensor, Parameter) else tensor)

    def __repr__(self):
        parts = []
        for key, value in self.__dict__.items():
            if isinstance(value, Tensor):
                parts.append(f"{key}: {value.dtype}{list(value.shape)}" + (f" {list(value.placements)}" if value.placements else ""))
            elif isinstance(value, Module) or isinstance(value, (list, dict)) and value:
                parts.append(f"{key}: {value!r}")
        return f"{type(self).__name__}({', '.join(parts)})"


class Parameter(Tensor):
    """A parameter without a value, made under LazyGuard."""

    __slots__ = ("_make",)

    def __init__(self, shape, dtype, make: Callable[[], np.ndarray]):
        self._init(tuple(shape), dtype)
        self._make = make

    def __reduce__(self):
        return _uninitialised, (self.shape, self.dtype, self._make, self.sharding)

    def _placed(self, sharding) -> Parameter:
        return _uninitialised(self.shape, self.dtype, self._make, sharding)

    def initialize(self) -> Tensor:
        """The tensor with a value and the placements of this one.

        The value of one on a mesh is drawn when it is used: a program between processes places it on its devices and
        keeps no copy here.
        """
        self._used()
        if self.sharding is None:
            return from_array(self._make(), self.dtype)
        made = from_array(None, self.dtype, self.sharding, self.shape)
        made._source = Drawn(self._make)
        return made

    def _concrete(self, what, instead=""):
        raise refuse(TraceError, f"'{what}' needs the value of a parameter of shape {self.shape} that was made under LazyGuard; call initialize()")


class Drawn:
    """The value of an initialized parameter, drawn each time it is read, always the same."""

    __slots__ = ("read",)

    def __init__(self, make: Callable[[], np.ndarray]):
        self.read = make

    def feeds(self, recorded, argument: int) -> bool:
        """False: it is not the result of a program."""
        return False

    def is_drawn(self, home: str) -> bool:
        """True: every process draws its own part."""
        return True

    def part(self) -> None:
        """None: nothing is kept."""
        return None


def _uninitialised(shape, dtype, make, sharding) -> Parameter:
    made = Parameter(shape, dtype, make)
    made.sharding = sharding
    return made


class LazyGuard(contextlib.ContextDecorator):
    """Context manager or decorator: parameters made inside take no memory until `initialize()`.

    Placements may be set before. Parameters on a mesh take memory only on the devices of the program that uses them:
    with backends mpi and tcp a rank holds its parts, and temporarily one whole parameter while it splits it.
    """

    def __enter__(self):
        _lazy.depth = getattr(_lazy, "depth", 0) + 1
        return self

    def __exit__(self, *_):
        _lazy.depth -= 1


def parameter(shape, dtype, make: Callable[[], np.ndarray]) -> Tensor:
    """A parameter with the value make(), or a Parameter without a value under LazyGuard."""
    if getattr(_lazy, "depth", 0):
        return Parameter(shape, dtype, make)
    return from_array(make(), dtype)


@contextlib.contextmanager
def eval_mode(module: Module):
    """Context manager: sets `module` to evaluation mode and restores the modes afterwards."""
    modes = [(m, m.training) for m in module.modules()]
    module.eval()
    try:
        yield module
    finally:
        for inner, mode in modes:
            inner._set_training(mode)
