# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Constants to derivatives in PyTorch graphs: `detach()`, and values under `torch.no_grad()` or `torch.inference_mode()`.

PyTorch's decompositions lose both: a detach becomes an alias, and a no_grad region is inlined. A custom operation,
which they keep, marks these values; its rule is stop_gradient. What is written in place to an alias of a differentiable
value, hidden from its derivative, has no such form and is refused.
"""

from __future__ import annotations

import contextlib
import functools
from unittest import mock

import torch

from .. import ops
from .registry import rule

rule("tessera.stop_gradient.default")(ops.stop_gradient)


@functools.cache
def _operation():
    torch.library.define("tessera::stop_gradient", "(Tensor x) -> Tensor")
    torch.library.impl("tessera::stop_gradient", "CompositeExplicitAutograd")(lambda x: x.clone())
    torch.library.register_fake("tessera::stop_gradient")(lambda x: torch.empty_like(x))
    return torch.ops.tessera.stop_gradient.default


class _HiddenInAutocast(torch.overrides.TorchFunctionMode):
    """Marks what an export computes under no_grad inside of autocast: torch.export forgets that it is under no_grad."""

    depth = 0  # of autocast contexts

    def __torch_function__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        if self.depth == 0 or torch.is_grad_enabled():
            return result
        given = {id(each) for each in torch.utils._pytree.tree_leaves((args, kwargs))}  # is returned by what writes in place
        with torch._C.DisableTorchFunction():
            return torch.utils._pytree.tree_map_only(
                torch.Tensor, lambda x: x if id(x) in given or not x.is_floating_point() else _operation()(x), result)


@contextlib.contextmanager
def seen_in_autocast():
    """Context manager: exports in it keep that values inside of autocast are constants to derivatives."""
    autocast, mode = torch.amp.autocast_mode.autocast, _HiddenInAutocast()
    enter, leave = autocast.__enter__, autocast.__exit__

    def entered(context):
        mode.depth += 1
        return enter(context)

    def left(context, *error):
        mode.depth -= 1
        return leave(context, *error)
    autocast.__enter__, autocast.__exit__ = entered, left
    try:
        with mode:
            yield
    finally:
        autocast.__enter__, autocast.__exit__ = enter, leave


@contextlib.contextmanager
def seen_in_inference_mode():
    """Context manager: inference_mode is no_grad in it, which torch.export keeps, while it forgets inference_mode."""
    def entered(context):
        context._inference_mode_context = torch.set_grad_enabled(not context.mode)

    def left(context, *error):
        context._inference_mode_context.__exit__(*error)
    with mock.patch.multiple(torch.inference_mode, __enter__=entered, __exit__=left):
        yield


@contextlib.contextmanager
def marked(program):
    """Context manager: the program with its constants marked; the marks are removed at the end."""
    undo: list = []
    try:
        _mark(program.graph_module, undo)
        yield program
    finally:
        for step in reversed(undo):
            step()


def _mark(module, undo, constant=False):
    """Marks each detach in a graph and its nested graphs, and the results if `constant`.

    Appends the undo steps to `undo`.
    """
    for node in list(module.graph.nodes):
        if node.op == "call_function" and node.target is torch.ops.aten.detach.default and _is_float(node):
            node.target = _operation()
            undo.append(functools.partial(setattr, node, "target", torch.ops.aten.detach.default))
        elif node.op == "call_function":
            for inner, _ in _nested(module, node):
                _mark(inner, undo, _hides(node))
        elif node.op == "output" and constant:
            before, marks = node.args, {}
            for result in node.all_input_nodes:
                if _is_float(result):
                    with module.graph.inserting_before(node):
                        marks[result] = module.graph.call_function(_operation(), (result,))
                    marks[result].meta = dict(result.meta)
                    node.replace_input_with(result, marks[result])
            undo += [functools.partial(module.graph.erase_node, mark) for mark in marks.values()]
            undo.append(functools.partial(setattr, node, "args", before))


def _nested(module, node):
    """(graph module, values of its placeholders) of each graph that a node of `module` runs: under autocast or no_grad, a branch, a body."""
    operands = list(torch.utils._pytree.tree_leaves((node.args, node.kwargs)))
    for each in operands:
        if isinstance(each, torch.fx.Node) and each.op == "get_attr" and isinstance(inner := _attribute(module, each.target), torch.fx.GraphModule):
            count = sum(place.op == "placeholder" for place in inner.graph.nodes)
            yield inner, operands[len(operands) - count:]


def _attribute(module, path):
    return functools.reduce(lambda owner, name: getattr(owner, name, None), path.split("."), module)


def _sets_gradients(node) -> bool:
    return node.target is torch.ops.higher_order.wrap_with_set_grad_enabled


def _hides(node) -> bool:
    """Whether the values of a node's graph are computed under no_grad."""
    return _sets_gradients(node) and not node.args[0]


def hidden_write(program):
    """The first operation that writes to a differentiable value through detach() or under no_grad; None if there is none."""
    kinds = {spec.arg.name: spec.kind.name for spec in program.graph_signature.input_specs if hasattr(spec.arg, "name")}
    differentiable = {node for node in program.graph.nodes if node.op == "placeholder" and _is_float(node)
                      and kinds.get(node.name) in ("PARAMETER", "USER_INPUT")}
    return _hidden_write(program.graph_module, differentiable, False)


def _hidden_write(module, differentiable, constant):
    """`differentiable`: nodes of the graph whose values have derivatives; `constant`: the graph runs under no_grad."""
    roots: dict = {}  # of a view: the node whose memory it shares, and whether a detach is between
    for node in module.graph.nodes:
        if node.op != "call_function":
            continue
        for inner, values in _nested(module, node):
            places = [each for each in inner.graph.nodes if each.op == "placeholder"]
            alive = {place for place, value in zip(places, values) if roots.get(value, (value, False))[0] in differentiable}
            if found := _hidden_write(inner, alive, _hides(node) or constant and not _sets_gradients(node)):
                return found
        if schema := getattr(node.target, "_schema", None):
            for argument, value in zip(schema.arguments, node.args):
                if argument.alias_info is None or not isinstance(value, torch.fx.Node):
                    continue
                root, detached = roots.get(value, (value, False))
                if not argument.alias_info.is_write:
                    roots[node] = root, detached or node.target is torch.ops.aten.detach.default
                elif (constant or detached) and root in differentiable:
                    return node
                else:
                    roots[node] = root, detached
        is_kept = node.target is not torch.ops.aten.detach.default
        if is_kept and _is_float(node) and not constant and any(each in differentiable for each in node.all_input_nodes):
            differentiable.add(node)
    return None


def _is_float(node) -> bool:
    value = node.meta.get("val")
    return hasattr(value, "is_floating_point") and value.is_floating_point()
