# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`from_torch`: a module of PyTorch, exported to core ATen, as a module of Tessera."""

from __future__ import annotations

import operator
import os
import re
from typing import Any

import numpy as np

from .. import source
from ..errors import ArgumentError, DTypeError, Error, ShapeError
from ..ir import Location
from ..nn.module import Module
from ..ops.base import tensor_of
from ..source import refuse
from ..tensor import Tensor, asarray
from . import elementwise, indexing, layers, reductions, shapes, windows  # noqa: F401  their rules
from .registry import RULES, dtype_of


class TorchModule(Module):
    """A module whose forward is a graph of PyTorch. `weights` are its parameters, `constants` its buffers, by PyTorch's names."""

    def __init__(self, program, name: str):
        super().__init__()
        signature, state = program.graph_signature, program.state_dict
        self.name, self.weights = name, {}
        self._plan = _Plan(program.graph, program.call_spec.out_spec)
        constants: dict[str, Tensor] = {}
        names: dict[tuple, str] = {}  # of shared parameters the first name
        inputs: list[tuple[str, str, str]] = []
        for spec in signature.input_specs:
            kind, argument, target = spec.kind.name, spec.arg.name, spec.target
            if kind == "PARAMETER":
                target = first = names.setdefault(_storage(state[target]), target)
                if first not in self.weights:
                    self.weights[first] = _tensor(state[first])
            elif kind in ("BUFFER", "CONSTANT_TENSOR"):
                constants[target] = _tensor(state[target] if target in state else program.constants[target])
            elif kind != "USER_INPUT":
                raise refuse(ArgumentError, f"'{name}' takes '{argument}' of kind {kind.lower()}; there are tensors, parameters and buffers")
            inputs.append((kind, argument, target))
        self._inputs = tuple(inputs)
        for spec in signature.output_specs:
            if spec.kind.name not in ("USER_OUTPUT", "BUFFER_MUTATION"):
                raise refuse(ArgumentError, f"'{name}' has a result of kind {spec.kind.name.lower()}; export it in evaluation mode")
        self._outputs = tuple((spec.kind.name, spec.target) for spec in signature.output_specs)
        object.__setattr__(self, "_buffers", ("constants",))
        self.constants = constants

    def forward(self, *args):
        wanted = sum(kind == "USER_INPUT" for kind, *_ in self._inputs)
        if len(args) != wanted:
            raise refuse(ArgumentError, f"'{self.name}' was exported with {wanted} inputs, not {len(args)}")
        wanted = [self._plan.described.get(argument) for kind, argument, _ in self._inputs if kind == "USER_INPUT"]
        for i, (value, like) in enumerate(zip(args, wanted)):
            if like is not None:
                value = tensor_of(value, f"input {i} of '{self.name}'")
                if value.shape != tuple(like.shape):
                    raise refuse(ShapeError, f"input {i} of '{self.name}' has shape {value.shape}; it was exported for {tuple(like.shape)}")
                if value.dtype is not dtype_of(like.dtype):
                    raise refuse(DTypeError, f"input {i} of '{self.name}' is of {value.dtype}; it was exported for {dtype_of(like.dtype)}")
        given = iter(args)
        values: dict[str, Any] = {}
        for kind, argument, target in self._inputs:
            values[argument] = next(given) if kind == "USER_INPUT" else self.weights[target] if kind == "PARAMETER" else self.constants[target]
        results = self._plan.run(values)
        returned = []
        for (kind, target), value in zip(self._outputs, results):
            if kind == "BUFFER_MUTATION":
                self.constants[target] = value
            else:
                returned.append(value)
        import torch.utils._pytree as pytree
        return pytree.tree_unflatten(returned, self._plan.structure)


class _Plan:
    """The nodes of a graph and the structure of its results. A setting of its module: equal to itself alone."""

    def __init__(self, graph, structure):
        self.graph, self.structure = graph, structure
        # Shapes and types of inputs; other inputs (numbers) are not tensors.
        found = {node.name: node.meta.get("val") for node in graph.nodes if node.op == "placeholder"}
        self.described = {name: value for name, value in found.items() if hasattr(value, "shape") and all(isinstance(n, int) for n in value.shape)}

    def run(self, values: dict[str, Any]) -> list:
        def read(argument):
            if hasattr(argument, "op"):
                return values[argument.name]
            if isinstance(argument, (list, tuple)):
                return [read(a) for a in argument]
            return argument
        for node in self.graph.nodes:
            if node.op == "output":
                return [v if isinstance(v, Tensor) or v is None else tensor_of(v, "output") for v in map(read, node.args[0])]
            if node.op == "placeholder":
                continue
            args, kwargs = [read(a) for a in node.args], {k: read(v) for k, v in node.kwargs.items()}
            with source.standing_at(_location(node)):
                values[node.name] = args[0][args[1]] if node.target is operator.getitem else _result(node, RULES[_name(node)](*args, **kwargs))
        raise AssertionError("a graph ends with its output")


def _tensor(value) -> Tensor:
    """A parameter without a copy."""
    value = value.detach()
    if str(value.dtype) == "torch.bfloat16":
        import torch
        bits = value.view(torch.int16).numpy().view(np.uint16)
        from ..dtypes import bfloat16
        from ..tensor import from_array
        return from_array(bits.view(bfloat16.numpy), bfloat16)
    return asarray(value.numpy())


def _name(node) -> str:
    return str(node.target).removeprefix("aten.")


def _storage(tensor) -> tuple:
    """What parameters that are one have in common."""
    return tensor.data_ptr(), tuple(tensor.shape), tensor.stride()


def _result(node, value):
    """Element types are PyTorch's where its rules of promotion are others than ours."""
    described = node.meta.get("val")
    if isinstance(value, Tensor) and hasattr(described, "dtype"):
        wanted = dtype_of(described.dtype)
        return value if value.dtype is wanted else value.astype(wanted)
    return value


def _location(node) -> Location | None:
    """The line of the user's module that a node comes from; one of PyTorch where that alone calls it."""
    found = re.findall(r'File "([^"]+)", line (\d+)', node.meta.get("stack_trace") or "")
    import torch
    folder = os.path.dirname(torch.__file__) + os.sep
    found = [f for f in found if not f[0].startswith(folder)] or found
    return Location(found[-1][0], int(found[-1][1])) if found else None


def check_operations(graph, name: str) -> None:
    """Raises one error that names every operation without a rule, with its line."""
    unknown: dict[str, Location | None] = {}
    for node in graph.nodes:
        if node.op == "call_function" and node.target is not operator.getitem and _name(node) not in RULES:
            unknown.setdefault(_name(node), _location(node))
        elif node.op not in ("call_function", "placeholder", "output"):
            unknown.setdefault(f"{node.op} {node.target}", _location(node))
    if unknown:
        (first, at), *others = unknown.items()
        more = "".join(f"; also 'aten.{other}'" + (f" at {place.file}:{place.line}" if place else "") for other, place in others)
        hint = "; call eval() before it is exported" if any("dropout" in other for other in unknown) else ""
        raise refuse(Error, f"operation 'aten.{first}' of '{name}' is not supported{more}{hint}", at)


def from_torch(module, args: tuple = ()) -> TorchModule:
    """A module of PyTorch, or a torch.export.ExportedProgram, as a module of Tessera: forward of its core-ATen graph.

    args: example inputs (of PyTorch or NumPy), which fix shapes and types; not needed for an ExportedProgram. Parameters share their memory with PyTorch's.
    The result is differentiated, sharded and trained as other modules: place its weights by `optim.shard_parameters`.

    Raises tessera.Error, which names the user's line, for what there is no rule for, all at once; ImportError without torch.
    """
    try:
        import torch
    except ModuleNotFoundError as error:
        raise ImportError(f"tessera.from_torch needs the package '{error.name}': pip install torch", name=error.name) from None
    name = type(module).__name__
    if isinstance(module, torch.nn.Module):
        args = (args,) if hasattr(args, "shape") else tuple(args)
        if not args:
            raise refuse(ArgumentError, f"from_torch({name}) takes example inputs: from_torch(module, (x,))")
        args = tuple(torch.as_tensor(a) if isinstance(a, np.ndarray) else a for a in args)
        try:
            module = torch.export.export(module, args)
        except Exception as error:  # PyTorch's own, of many kinds
            reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
            raise refuse(Error, f"torch.export refuses '{name}': {reason}") from error
    elif not isinstance(module, torch.export.ExportedProgram):
        raise refuse(ArgumentError, f"from_torch takes a torch.nn.Module or an ExportedProgram, not {name}")
    program = module.run_decompositions()
    check_operations(program.graph, name)
    return TorchModule(program, name)
