# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`from_torch`: a PyTorch module, exported to core ATen, as a Tessera module."""

from __future__ import annotations

import contextlib
import functools
import io
import logging
import operator
import os
import re
import sys
import types
from typing import Any

import numpy as np
import torch
import torch.utils._pytree as pytree

from .. import dtypes, random, source
from ..dtypes import bfloat16
from ..eager import run_whole
from ..errors import ArgumentError, DTypeError, Error, ShapeError, TraceError
from ..ir import Location
from ..nn.module import Module
from ..ops.base import tensor_of
from ..source import entry, refuse, warn
from ..tensor import Tensor, asarray, from_array
from ..trace import current
from ..tree import ParameterDict
from . import branches, elementwise, grids, indexing, kinks, layers, linalg, recurrent, reductions, scalars, shapes, special, windows  # noqa: F401  rules
from .complexes import COMPLEX, is_complex, of_last_axis, refuse_result, register_parts
from .constants import hidden_write, marked, seen_in_autocast, seen_in_inference_mode
from .custom_derivatives import noticed
from .exportable import exportable
from .foreach import of_lists
from .random import RANDOM, draws
from .registry import INSTEAD, RULES, dtype_of, python_name
from .selections import with_all_elements
from .transforms import differentiating, without_transforms

register_parts()


class _Shared:
    """A part of an imported module that its copies share, because graphs do not change. It cannot be pickled."""

    name: str

    def __deepcopy__(self, memo):
        return self

    def __reduce__(self):
        raise refuse(ArgumentError, f"'{self.name}' cannot be pickled: it has a graph of PyTorch; save its state_dict() and import the module again")


class _Form(_Shared):
    """The program of a module in one mode: the graph, the sources of its inputs, and PyTorch's tensors."""

    def __init__(self, program, name: str):
        signature, state = program.graph_signature, program.state_dict
        self.name, self.plan = name, _Plan(program.graph, program.call_spec.out_spec)
        self.weights, self.frozen, self.constants, self.buffers = {}, set(), {}, set()
        self.spec = program.call_spec.in_spec or pytree.tree_structure((tuple(None for _ in signature.user_inputs), {}))  # of both kinds of arguments
        self.keywords = tuple(self.spec.children()[1].context or ())
        names: dict[tuple, str] = {}  # storage -> first name of the parameter
        buffers: dict[tuple, str] = {}
        inputs: list[tuple[str, str, str]] = []
        for spec in signature.input_specs:
            kind, argument, target = spec.kind.name, spec.arg.name, spec.target
            if kind == "PARAMETER":
                value = state[target]
                target = first = names.setdefault(_storage(value), target)
                if first not in self.weights:
                    self.weights[first] = _tensor(state[first])
                    if not value.requires_grad:
                        self.frozen.add(first)
            elif kind in ("BUFFER", "CONSTANT_TENSOR"):
                value = state[target] if target in state else program.constants[target]
                # A list of the module's parameters or buffers has made a constant of one of them.
                if kind == "CONSTANT_TENSOR" and (known := names.get(_storage(value), buffers.get(_storage(value)))) is not None:
                    kind, target = "PARAMETER" if known in self.weights else "BUFFER", known
                else:
                    self.constants[target] = _tensor(value)
                if kind == "BUFFER":
                    self.buffers.add(target)
                    buffers.setdefault(_storage(value), target)
            elif kind not in ("USER_INPUT", "TOKEN"):
                raise refuse(ArgumentError, f"'{name}' takes '{argument}' of kind {kind.lower()}; supported are "
                                            "tensors, parameters and buffers")
            inputs.append((kind, argument, target))
        for spec in signature.output_specs:
            if spec.kind.name not in ("USER_OUTPUT", "BUFFER_MUTATION", "TOKEN"):
                raise refuse(ArgumentError, f"'{name}' has a result of kind {spec.kind.name.lower()}; export it in evaluation mode")
        self.inputs, self.outputs = tuple(inputs), tuple((spec.kind.name, spec.target) for spec in signature.output_specs)
        self.wanted = tuple(argument for kind, argument, _ in inputs if kind == "USER_INPUT")
        self.programs: dict = {}  # cached programs of calls outside jit
        self.names = {f"constants.{name}": () for name in self.constants}  # path -> names in PyTorch's state_dict
        for name, value in state.items():
            first = names.get(_storage(value))
            place = f"weights.{first}" if first is not None else f"constants.{name}"
            if first is not None or name in self.constants:
                self.names[place] = (*self.names.get(place, ()), name)


class _Origin(_Shared):
    """The imported PyTorch module, and its program in each mode used so far."""

    def __init__(self, module, args, kwargs):
        self.name, self.module, self.forms = type(module).__name__, module, {}
        self.args, self.kwargs = _distinct(module, (args, kwargs))

    def form(self, mode: bool | None) -> _Form:
        """The program in training (True), in evaluation (False), or with mixed modes as they are (None)."""
        if mode not in self.forms:
            modes = [(part, part.training) for part in self.module.modules()]
            if mode is not None:
                self.module.train(mode)
            try:
                self.forms[mode] = _form(_exported(self.module, self.args, self.kwargs), type(self.module).__name__)
            finally:
                for part, training in modes:
                    part.training = training
        return self.forms[mode]


class TorchModule(Module):
    """A module whose forward is a PyTorch graph.

    `weights` are its parameters and `constants` its buffers, by PyTorch's names.

    Parameters with requires_grad=False are frozen. state_dict and checkpoints use the names of PyTorch's state_dict:
    tied parameters under each name, without constants and non-persistent buffers.

    train() and eval() import PyTorch's module again in that mode and keep this module's values. They raise
    ArgumentError for a module imported from an ExportedProgram, which has one mode.

    Operations that draw, as dropout does, have keys of the seed of torch.manual_seed at the import and of `counter`, a
    buffer that increases with each call and is not in state_dict.
    """

    def __init__(self, form: _Form, origin: _Origin | None = None, mode: bool | None = None):
        super().__init__()
        if origin is not None:
            object.__setattr__(self, "training", origin.module.training)
        self.name, self._origin, self._mode, self._form = form.name, origin, mode, form
        self.weights = ParameterDict(form.weights, form.frozen)
        object.__setattr__(self, "_buffers", ("constants",))
        self.constants, self.seed = dict(form.constants), torch.initial_seed()
        self._count()

    def _count(self):
        """Adds the counter of draws, once the program draws."""
        if self._form.plan.draws and not hasattr(self, "counter"):
            self.register_buffer("counter", np.int32(0))

    def __state_names__(self):
        return {**self._form.names, "counter": ()}

    def _set_training(self, mode):
        mode = bool(mode)
        if mode == self._mode:
            return
        what = "train()" if mode else "eval()"
        if self._origin is None:
            raise refuse(ArgumentError, f"{what} of '{self.name}': it was imported from an ExportedProgram, which has one mode; export the module "
                                        f"after {what} and import that")
        form = self._origin.form(mode)
        self.weights = ParameterDict({**form.weights, **self.weights}, form.frozen)
        self.constants = {**form.constants, **{name: value for name, value in self.constants.items() if name in form.buffers | self._form.buffers}}
        self._form, self._mode = form, mode
        self._count()
        object.__setattr__(self, "training", mode)

    @entry
    def forward(self, *args, **kwargs):
        """Runs the graph; outside `jit` as one program, compiled per structure, shapes and types of the arguments.

        If an operation needs the value of a tensor it runs operation by operation.
        """
        if current() is None:
            try:
                return run_whole(self._form.programs, _forward, (self, *args), kwargs)
            except TraceError:
                pass
        return self._forward(*args, **kwargs)

    def _forward(self, *args, **kwargs):
        form = self._form
        if set(kwargs) != set(form.keywords):
            given, known = ", ".join(sorted(kwargs)) or "none", ", ".join(form.keywords) or "none"
            raise refuse(ArgumentError, f"'{self.name}' was exported with the keyword arguments {known}, got {given}")
        try:
            args = form.spec.flatten_up_to((args, kwargs))
        except ValueError as error:
            count = len(pytree.tree_leaves((args, kwargs)))
            raise refuse(ArgumentError, f"'{self.name}' was exported with {len(form.wanted)} inputs, not {count}" if count != len(form.wanted) else
                         f"'{self.name}' was exported with inputs of another structure: {_reason(error)}") from None
        for i, (value, argument) in enumerate(zip(args, form.wanted)):
            like = form.plan.described.get(argument)
            if like is not None:
                value = args[i] = tensor_of(value, f"input {i} of '{self.name}'")
                if value.shape != tuple(like.shape):
                    raise refuse(ShapeError, f"input {i} of '{self.name}' has shape {value.shape}; it was exported for {tuple(like.shape)}")
                if value.dtype is not dtype_of(like.dtype):
                    raise refuse(DTypeError, f"input {i} of '{self.name}' is of {value.dtype}; it was exported for {dtype_of(like.dtype)}")
        given = iter(args)
        values: dict[str, Any] = {}
        for kind, argument, target in form.inputs:
            values[argument] = (next(given) if kind == "USER_INPUT" else self.weights[target] if kind == "PARAMETER" else
                                None if kind == "TOKEN" else self.constants[target])
        keys = []
        if form.plan.draws:
            keys = [random.key(self.seed, self.counter * form.plan.draws + i) for i in range(form.plan.draws)]
            self.counter = self.counter + 1
        results = form.plan.run(values, iter(keys))
        returned = []
        for (kind, target), value in zip(form.outputs, results):
            if kind == "BUFFER_MUTATION":
                self.constants[target] = value
            elif kind != "TOKEN":
                returned.append(value)
        return pytree.tree_unflatten(returned, form.plan.structure)


def _distinct(module, inputs):
    """The inputs, with copies of tensors that occur twice or are the module's: torch.export takes equal objects for one value."""
    seen = {id(t) for t in (*module.parameters(), *module.buffers())}

    def of(leaf):
        if not isinstance(leaf, torch.Tensor):
            return leaf
        if id(leaf) in seen:
            leaf = leaf.detach().clone().requires_grad_(leaf.requires_grad)
        seen.add(id(leaf))
        return leaf
    return pytree.tree_map(of, inputs)


def _forward(module: TorchModule, *args, **kwargs):
    return module._forward(*args, **kwargs)


class _Plan:
    """The nodes of a graph and the structure of its results; a setting of its module, equal only to itself."""

    def __init__(self, graph, structure):
        self.graph, self.structure = graph, structure
        # Shapes and types of the tensor inputs; other inputs are numbers.
        found = {node.name: node.meta.get("val") for node in graph.nodes if node.op == "placeholder"}
        self.draws = sum(draws(node, _name(node)) for node in graph.nodes)
        self.branches = {target: functools.partial(_branch, _Plan(branch, None)) for target, branch in _branches(graph).items()}
        self.described = {name: value for name, value in found.items() if hasattr(value, "shape") and all(isinstance(n, int) for n in value.shape)}

    def run(self, values: dict[str, Any], keys) -> list:
        """keys: of the nodes that draw."""
        def read(argument):
            if hasattr(argument, "op"):
                return values[argument.name]
            if isinstance(argument, (list, tuple)):
                return [read(a) for a in argument]
            return argument
        for node in self.graph.nodes:
            if node.op == "output":
                results = node.args[0] if isinstance(node.args[0], (tuple, list)) else node.args  # the graph of a condition returns one value
                return [v if isinstance(v, Tensor) or v is None else tensor_of(refuse_result(v), "output") for v in map(read, results)]
            if node.op == "placeholder":
                if is_complex(node):
                    values[node.name] = of_last_axis(values[node.name])
                continue
            if node.op == "get_attr":
                values[node.name] = self.branches[node.target]
                continue
            args, kwargs = [read(a) for a in _arguments(node)], {k: read(v) for k, v in node.kwargs.items()}
            if _name(node) in ("as_strided.default", "as_strided_copy.default"):  # the only operations that depend on the strides of their operand
                viewed = node.args[0].meta["val"]
                kwargs["layout"] = viewed.stride(), viewed.storage_offset()
            if (count := _equal_bags(node)) is not None:
                args[2] = count
            with source.standing_at(_location(node), _name(node).split(".")[0]):
                if node.target is not operator.getitem:
                    values[node.name] = _result(node, RANDOM[_name(node)](next(keys), *args, **kwargs) if draws(node, _name(node))
                                                else _rules(node)[_name(node)](*args, **kwargs))
                    if _has_token(node):
                        results = values[node.name]
                        values[node.name] = None, *(results if isinstance(results, (tuple, list)) else [results])
                    continue
                values[node.name] = args[0][args[1]] if node.users else None
                token = _has_token(node.args[0]) and args[1] == 0
                if values[node.name] is None and node.users and hasattr(node.meta.get("val"), "shape") and not token:
                    raise refuse(Error, f"result {args[1]} of 'aten.{_name(node.args[0])}' is not supported")
        raise AssertionError("a graph ends with its output")


def _equal_bags(node) -> int | None:
    """The number of bags of an EmbeddingBag, if they have one length: their offsets are a range."""
    if not _name(node).startswith("_embedding_bag"):
        return None
    indices, offsets, *others = _arguments(node)[1:]
    if not isinstance(offsets, torch.fx.Node) or _name(offsets).split(".")[0] != "arange" or (len(others) > 4 and others[4]):
        return None
    steps = range(*_arguments(offsets))
    return len(steps) if steps and steps.start == 0 and steps.step * len(steps) == indices.meta["val"].shape[0] else None


def _branches(graph) -> dict:
    """The graphs that operations of a graph run, by the name under which its module has them."""
    found = {node.target: getattr(graph.owning_module, node.target, None) for node in graph.nodes if node.op == "get_attr"}
    return {target: value.graph for target, value in found.items() if isinstance(value, torch.fx.GraphModule)}


def _branch(plan: _Plan, *operands) -> list:
    """The results of a graph in a graph."""
    places = [node.name for node in plan.graph.nodes if node.op == "placeholder"]
    return plan.run(dict(zip(places, operands)), iter(()))


def _tensor(value) -> Tensor:
    """A PyTorch tensor as a Tensor that shares its memory; real and imaginary parts are along a last axis."""
    value = value.detach()
    if value.is_complex():
        value = torch.view_as_real(value.resolve_conj())
    if str(value.dtype) == "torch.bfloat16":
        bits = value.view(torch.int16).numpy().view(np.uint16)
        return from_array(bits.view(bfloat16.numpy), bfloat16)
    return asarray(value.numpy())


def _rules(node) -> dict:
    return COMPLEX if is_complex(node) else RULES


def _has_token(node) -> bool:
    """Whether it calls an operation with effects, as a check is: it takes and returns a token, which stands for their order."""
    return str(node.target) == "with_effects"


def _arguments(node):
    return node.args[2:] if _has_token(node) else node.args


def _name(node) -> str:
    if isinstance(node.target, (types.BuiltinFunctionType, types.FunctionType)):
        return python_name(node.target)
    return str(node.args[1] if _has_token(node) else node.target).removeprefix("aten.")


def _storage(tensor) -> tuple:
    """A key that is equal for tied parameters."""
    return tensor.data_ptr(), tuple(tensor.shape), tensor.stride()


def _result(node, value):
    """The value in PyTorch's element type, if its promotion rules differ from ours."""
    described = node.meta.get("val")
    if isinstance(value, Tensor) and hasattr(described, "dtype"):
        wanted = dtype_of(described.dtype)
        return value if value.dtype is wanted else value.astype(wanted)
    return value


def _location(node) -> Location | None:
    """The line of the user's module that a node comes from; a line of PyTorch if only that calls it."""
    return _of_user(re.findall(r'File "([^"]+)", line (\d+)', node.meta.get("stack_trace") or ""))


def _of_user(found) -> Location | None:
    """The innermost (file, line) outside PyTorch, the code that it generates and this package, else the innermost of all."""
    folder = os.path.dirname(torch.__file__) + os.sep
    found = [f for f in found if not source.is_of_package(f[0])] or found
    found = [f for f in found if not f[0].startswith((folder, "<"))] or [f for f in found if not f[0].startswith(folder)] or found
    return Location(found[-1][0], int(found[-1][1])) if found else None


def _is_sized(node) -> bool:
    """Whether the extents of all tensors of a node are numbers."""
    shapes = [value.shape for value in pytree.tree_leaves(node.meta.get("val")) if hasattr(value, "shape")]
    return not any(isinstance(extent, torch.SymInt) for shape in shapes for extent in shape)


def check_operations(graph, name: str) -> None:
    """Raises one Error that names every operation without a rule, with its line, or the first whose size is not known."""
    for node in graph.nodes:
        if node.op == "call_function" and not _is_sized(node) and all(map(_is_sized, node.all_input_nodes)):
            instead = INSTEAD.get(_name(node).split(".")[0], "make it of numbers that no tensor determines, or compute with all elements and a mask")
            raise refuse(Error, f"the result of operation 'aten.{_name(node)}' of '{name}' has a size known only at run time; programs have "
                                f"fixed shapes: {instead}", _location(node))
    unknown: dict[str, Location | None] = {}
    branches = _branches(graph)
    for branch in branches.values():
        check_operations(branch, name)
        if drawing := next((node for node in branch.nodes if draws(node, _name(node))), None):
            raise refuse(Error, f"operation 'aten.{_name(drawing)}' draws random numbers in a branch of torch.cond of '{name}'; draw before the branch",
                         _location(drawing))
    for node in graph.nodes:
        if node.op == "get_attr" and node.target in branches:
            continue
        if node.op == "call_function" and node.target is not operator.getitem and _name(node) not in _rules(node):
            unknown.setdefault(_name(node) + (" of complex tensors" if is_complex(node) else ""), _location(node))
        elif node.op not in ("call_function", "placeholder", "output"):
            unknown.setdefault(f"{node.op} {node.target}", _location(node))
    if unknown:
        (first, at), *others = unknown.items()
        more = "".join(f"; also 'aten.{other}'" + (f" at {place.file}:{place.line}" if place else "") for other, place in others)
        raise refuse(Error, f"operation 'aten.{first}' of '{name}' is not supported{more}", at)


def check_types(program, name: str) -> None:
    """Raises DTypeError for the first parameter, buffer, argument or result of an operation whose element type programs do not have."""
    inputs = program.graph_signature.input_specs
    known = {spec.arg.name: f"{spec.kind.name.lower().replace('_', ' ')} '{spec.target}'" for spec in inputs if spec.target}
    for node in program.graph.nodes:
        for value in pytree.tree_leaves(node.meta.get("val")):
            found = getattr(value, "dtype", None)
            if isinstance(found, torch.dtype) and not found.is_complex and str(found).removeprefix("torch.") not in map(str, dtypes.ALL):
                what = known.get(node.name, f"input '{node.name}'") if node.op == "placeholder" else f"the result of operation 'aten.{_name(node)}'"
                raise refuse(DTypeError, f"{what} of '{name}' is of {str(found).removeprefix('torch.')}; programs have the element types "
                                         f"{', '.join(map(str, dtypes.ALL))}: convert it to one of these, as by .bfloat16()", _location(node))


def _reason(error: Exception) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


@contextlib.contextmanager
def _quiet():
    """Context manager: what PyTorch prints to standard error beside its exception (its whole graph) is dropped."""
    level, printed = _SHAPES.level, io.StringIO()
    _SHAPES.setLevel(logging.ERROR)
    try:
        with contextlib.redirect_stderr(printed):
            yield
        sys.stderr.write(printed.getvalue())
    finally:
        _SHAPES.setLevel(level)


def _check_attributes(module) -> None:
    """Refuses a detached parameter that the module keeps beside the parameter: a graph has one input for both."""
    trained = {_storage(p): name for name, p in module.named_parameters() if p.requires_grad and p.numel()}
    for part in module.modules():
        for attribute, value in vars(part).items():
            for leaf in pytree.tree_leaves(value) if not attribute.startswith("_") else ():
                if isinstance(leaf, torch.Tensor) and not leaf.requires_grad and leaf.layout is torch.strided and (
                        name := trained.get(_storage(leaf))) is not None:
                    raise refuse(ArgumentError, f"'{attribute}' of '{type(part).__name__}' keeps a detached '{name}'; write {name}.detach() in forward")


def _exported(module, args, kwargs):
    """The module as a graph. Raises Error with PyTorch's reason."""
    if isinstance(module, torch.nn.Module):
        _check_attributes(module)
    try:
        # torch.export fails in inference mode, which says nothing about the module.
        with torch.inference_mode(False), noticed() as derivatives, exportable(), _quiet(), seen_in_autocast(), seen_in_inference_mode(), \
                differentiating() as transforms:
            try:
                exported = torch.export.export(module, args, kwargs)
            except Exception:
                if not transforms:
                    raise
            if transforms:  # if the export does not fail, its graph may have wrapped tensors as constants
                exported = torch.export.export(without_transforms(module, args, kwargs), args, kwargs)
    except Error:
        raise
    except Exception as error:  # PyTorch raises many kinds
        other = re.search(r"Found <class '([^']+)'> in output", str(error))
        if other:
            reason = f"a result is of {other[1]}; return tensors or trees of them (for a model of transformers pass use_cache=False)"
        elif isinstance(module, torch.nn.Module) and any(p.is_inference() for p in module.parameters()):
            reason = "its parameters were made in torch.inference_mode(); make the module outside of it"
        elif type(error).__name__ == "GuardOnDataDependentSymNode":
            reason = "its Python code depends on the value of a tensor, which is known only at run time; use torch.where, or torch.cond"
        else:
            reason = _reason(error)
        raise refuse(Error, f"torch.export refuses '{type(module).__name__}': {reason}", _user_line(error)) from error
    for what in derivatives:
        warn(f"{what} in '{type(module).__name__}' is not imported: gradients are those of the forward pass")
    return exported


_SHAPES = logging.getLogger("torch.fx.experimental.symbolic_shapes")
_aten = torch.ops.aten
_NOT_DECOMPOSED = (_aten.scaled_dot_product_attention.default, _aten._safe_softmax.default, _aten.upsample_bicubic2d.vec, _aten.sinc.default,
                   _aten.special_entr.default, _aten.special_log_ndtr.default, _aten.xlogy.Tensor, _aten.xlogy.Scalar_Other, _aten.xlogy.Scalar_Self,
                   _aten.special_xlog1py.default, _aten.special_xlog1py.other_scalar, _aten.special_xlog1py.self_scalar, _aten.log_sigmoid.default,
                   _aten.log_sigmoid_forward.default, _aten.softplus.default, _aten.mish.default, _aten.celu.default, _aten.selu.default,
                   _aten.logaddexp.default, _aten.logaddexp2.default, _aten.linalg_vector_norm.default, _aten.std.correction,
                   _aten.std_mean.correction, _aten.lstm.input, _aten.gru.input, _aten.rnn_tanh.input, _aten.rnn_relu.input)


def _form(program, name: str) -> _Form:
    """A core-ATen graph, except for operations whose decompositions cost more than their rules, or have other derivatives.

    Raises Error with PyTorch's reason, or for operations without a rule.
    """
    table = torch.export.default_decompositions()
    for kept in _NOT_DECOMPOSED:
        table.pop(kept, None)
    table.update(of_lists())
    if (writer := hidden_write(program)) is not None:
        raise refuse(Error, f"operation 'aten.{_name(writer)}' of '{name}' writes in place to a value that has a derivative, through detach() or "
                            "under torch.no_grad() (as max_norm of an embedding does), which hides the write from the derivative; compute a new "
                            "value, or freeze the parameter by requires_grad_(False)", _location(writer))
    try:
        with marked(program):
            program = program.run_decompositions(table)
    except Exception as error:
        raise refuse(Error, f"PyTorch's run_decompositions fails for '{name}': {_reason(error)}", _user_line(error)) from error
    with_all_elements(program.graph)
    check_types(program, name)
    check_operations(program.graph, name)
    return _Form(program, name)


def _user_line(error: Exception) -> Location | None:
    """The line of the module at which PyTorch failed, if its message has one."""
    found = re.findall(r'File "([^"]+)", line (\d+)', str(error))
    return _of_user(found)


@entry
def from_torch(module, args: tuple = (), kwargs: dict | None = None) -> TorchModule:
    """A torch.nn.Module or torch.export.ExportedProgram as a Tessera module, whose forward is its core-ATen graph.

    args, kwargs: example inputs (trees of PyTorch's or NumPy's arrays), which fix shapes and dtypes; not used for an ExportedProgram.
    Parameters share memory with PyTorch's; those with requires_grad=False are frozen. The result is differentiated,
    sharded and trained as any module; place its weights with `optim.shard_parameters`.

    Raises tessera.Error, at the user's line, naming all unsupported operations; ArgumentError for other arguments;
    ImportError without torch.
    """
    name = type(module).__name__
    if isinstance(module, torch.export.ExportedProgram):
        return TorchModule(_form(module, name))
    if not isinstance(module, torch.nn.Module):
        raise refuse(ArgumentError, f"from_torch takes a torch.nn.Module or an ExportedProgram, not {name}")
    args, kwargs = (args,) if hasattr(args, "shape") else tuple(args), dict(kwargs or {})
    if not args and not kwargs:
        raise refuse(ArgumentError, f"from_torch({name}) takes example inputs: from_torch(module, (x,))")
    origin = _Origin(module, *pytree.tree_map(lambda a: torch.as_tensor(a) if isinstance(a, np.ndarray) else a, (args, kwargs)))
    modes = {part.training for part in module.modules()}
    mode = modes.pop() if len(modes) == 1 else None
    return TorchModule(origin.form(mode), origin, mode)
