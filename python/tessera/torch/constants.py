# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Constants to derivatives in PyTorch graphs: `detach()`, and values computed under `torch.no_grad()`.

PyTorch's decompositions lose both: a detach becomes an alias, and a no_grad region is inlined. A custom operation,
which they keep, marks these values; its rule is stop_gradient. What is written in place to an alias of a differentiable
value, hidden from its derivative, has no such form and is refused.
"""

from __future__ import annotations

import contextlib
import functools

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
        elif node.op == "call_function" and node.target is torch.ops.higher_order.wrap_with_set_grad_enabled:
            enabled, inner = node.args[:2]
            _mark(getattr(module, inner.target), undo, not enabled)
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
        if node.target is torch.ops.higher_order.wrap_with_set_grad_enabled:
            enabled, inner, *values = node.args
            nested = getattr(module, inner.target)
            places = [each for each in nested.graph.nodes if each.op == "placeholder"]
            alive = {place for place, value in zip(places, values) if roots.get(value, (value, False))[0] in differentiable}
            if found := _hidden_write(nested, alive, not enabled):
                return found
        elif schema := getattr(node.target, "_schema", None):
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
