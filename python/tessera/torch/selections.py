# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Selections by masks, `x[mask]`, whose number of elements a program does not know, as computations with all elements.

What is computed element by element, or along the dimensions behind the mask's, is computed of all elements; sums and
means count those of the mask, and `y[mask] = ...` writes them. Elements that the mask leaves out are replaced by the
first one that it selects, so that no NaN of functions of theirs reaches a derivative.
"""

from __future__ import annotations

import dataclasses
import math
import operator

import torch

_aten = torch.ops.aten
_POINTWISE = {_aten.log_sigmoid.default, _aten.softplus.default, _aten.mish.default, _aten.celu.default, _aten.selu.default,
              _aten._to_copy.default, _aten.clone.default, _aten.alias.default}  # without PyTorch's tag, or not with all of its overloads
_SUMS = (_aten.sum.default, _aten.mean.default, _aten.sum.dim_IntList, _aten.mean.dim)
_EXTREMES = {_aten.max.default: (_aten.amax.default, -1), _aten.amax.default: (_aten.amax.default, -1),
             _aten.min.default: (_aten.amin.default, 1), _aten.amin.default: (_aten.amin.default, 1)}
_OF_SIZES = (_aten._assert_scalar.default, _aten.sym_constrain_range_for_size.default, _aten.sym_size.int, operator.ge, operator.le, operator.eq,
             operator.lt, operator.gt)


@dataclasses.dataclass(frozen=True)
class _Selected:
    """`whole`: the node with all elements; `mask`: the node, of the first `rank` dimensions of `whole`, that selects them."""

    whole: torch.fx.Node
    mask: torch.fx.Node
    rank: int


def _val(node):
    return node.meta.get("val")


def _same(one, other, depth=8) -> bool:
    """Whether two values of a graph without side effects are computed alike."""
    if one is other or depth == 0:
        return one is other
    if isinstance(one, torch.fx.Node) and isinstance(other, torch.fx.Node):
        return one.op == other.op == "call_function" and one.target is other.target and torch.Tag.nondeterministic_seeded not in getattr(
            one.target, "tags", ()) and _same(one.args, other.args, depth) and one.kwargs == other.kwargs
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(_same(a, b, depth - 1) for a, b in zip(one, other))
    return type(one) is type(other) and one == other


def _is_mask(node) -> bool:
    return isinstance(node, torch.fx.Node) and _val(node).dtype is torch.bool


class _Rewriter:
    def __init__(self, graph):
        self.graph, self.selected, self.places = graph, {}, {}

    def run(self) -> None:
        for node in list(self.graph.nodes):
            if node.op != "call_function":
                continue
            if node.target is _aten.index.Tensor:
                self._select(node)
            elif node.target is _aten.index_put.default or any(each in self.selected for each in node.all_input_nodes):
                with self.graph.inserting_before(node):
                    self._compute(node)
        if self.selected:
            self._sweep()

    def _make(self, like, target, *args, **kwargs):
        """A node with the place of `like` in the user's program."""
        made = self.graph.call_function(target, args, kwargs)
        made.meta = {name: value for name, value in like.meta.items() if name != "val"}
        given = torch.fx.node.map_arg((args, kwargs), _val)
        mode = next((each.fake_mode for each in torch.utils._pytree.tree_leaves(given) if hasattr(each, "fake_mode")), self.mode)
        with mode:
            made.meta["val"] = target(*given[0], **given[1])
        return made

    def _select(self, node):
        source, indices = node.args
        if len(indices) != 1 or not _is_mask(indices[0]) or _val(source).dtype.is_complex or source in self.selected:
            return
        mask, = indices
        self.mode = _val(source).fake_mode
        with self.graph.inserting_before(node):
            self.selected[node] = _Selected(self._where(node, mask, source, self._first(node, source, mask)), mask, _val(mask).dim())

    def _first(self, like, source, mask):
        """What the mask selects first; the first element of all if it selects none."""
        at = next((place for known, place in self.places.items() if _same(known, mask)), None)
        if at is None:
            number = self._make(like, _aten._to_copy.default, self._make(like, _aten.view.default, mask, [_val(mask).numel()]), dtype=torch.int32)
            at = self.places[mask] = self._make(like, _aten.argmax.default, number)
        value = _val(source)
        lines = self._make(like, _aten.reshape.default, source, [_val(mask).numel(), *value.shape[_val(mask).dim():]])
        return self._make(like, _aten.index.Tensor, lines, [at])

    def _where(self, like, mask, chosen, other):
        """`chosen` where the mask is true, else `other`, a number or a node."""
        value = _val(chosen)
        shape = [*_val(mask).shape, *[1] * (value.dim() - _val(mask).dim())]
        mask = mask if len(shape) == _val(mask).dim() else self._make(like, _aten.view.default, mask, shape)
        if not isinstance(other, torch.fx.Node):
            other = self._make(like, _aten.full.default, [], other, dtype=value.dtype)
        return self._make(like, _aten.where.self, mask, chosen, other)

    def _compute(self, node):
        """Computes a node of selections with all elements, or leaves it, to be refused."""
        if node.target is _aten.index_put.default:
            self._put(node)
            return
        chosen = [self.selected[each] for each in node.all_input_nodes if each in self.selected]
        first = chosen[0]
        if any(each.rank != first.rank or not _same(each.mask, first.mask) for each in chosen):
            return
        if node.target in _SUMS or node.target in _EXTREMES:
            self._reduce(node, first)
        elif (args := self._arguments(node, first)) is not None and isinstance(_val(node), torch.Tensor):
            whole = self._make(node, node.target, *args, **node.kwargs)
            if _val(whole).shape == (*_val(first.mask).shape, *_val(node).shape[1:]):  # else broadcasting pairs what is selected
                self.selected[node] = _Selected(whole, first.mask, first.rank)

    def _arguments(self, node, first):
        """The arguments of an operation that treats what the mask selects alike, for all elements; None for other operations."""
        args = [self.selected[each].whole if isinstance(each, torch.fx.Node) and each in self.selected else each for each in node.args]
        rank, more = _val(first.whole).dim(), first.rank - 1  # `more` dimensions in place of one
        others = [each for each in node.all_input_nodes if each not in self.selected]
        if isinstance(_val(node), torch.Tensor) and (node.target in _POINTWISE or torch.Tag.pointwise in getattr(node.target, "tags", ())):
            lists = any(isinstance(each, (list, tuple)) for each in node.args)
            fits = not lists and all(isinstance(_val(each), torch.Tensor) and _val(each).dim() <= rank - first.rank for each in others)
            fits = fits and all(_val(each).dim() == _val(node).dim() for each in node.all_input_nodes if each in self.selected)
            return args if fits else None

        def behind(dim, extent=0):
            """A dimension that the mask does not have; None for its own."""
            dim %= _val(node.args[0]).dim() + extent
            return dim + more if dim else None
        if node.target in (_aten._log_softmax.default, _aten._softmax.default, _aten.gather.default, _aten.squeeze.dims, _aten.unsqueeze.default):
            dims = [behind(d, node.target is _aten.unsqueeze.default) for d in (node.args[1] if isinstance(node.args[1], (list, tuple)) else [node.args[1]])]
            if None in dims or others:
                return None
            return [args[0], dims if node.target is _aten.squeeze.dims else dims[0], *args[2:]]
        left = {_aten.mm.default: 0, _aten.addmm.default: 1}.get(node.target)
        return args if left is not None and rank == 2 and more == 0 and node.all_input_nodes.count(node.args[left]) == 1 \
            and node.args[left] in self.selected and len(others) == len(node.all_input_nodes) - 1 else None

    def _put(self, node):
        """y[mask] = values that the mask selects, or one value for each of them."""
        target, indices, value, *accumulate = node.args
        if target in self.selected or len(indices) != 1 or not _is_mask(indices[0]):
            return
        mask, known = indices[0], self.selected.get(value)
        if known is None and _val(value).dim() <= _val(target).dim() - _val(mask).dim():
            self.mode = _val(target).fake_mode
            whole = self._make(node, _aten.expand.default, value, list(_val(target).shape))
        elif known is not None and _same(known.mask, mask) and _val(known.whole).shape == _val(target).shape:
            whole = known.whole
        else:
            return
        if accumulate and accumulate[0]:
            made = self._make(node, _aten.add.Tensor, target, self._where(node, mask, whole, 0))
        else:
            made = self._where(node, mask, whole, target)
        node.replace_all_uses_with(made)
        self.graph.erase_node(node)

    def _reduce(self, node, first):
        """Reduces what the mask selects, among other dimensions."""
        dims, rank = node.args[1] if len(node.args) > 1 else None, _val(node.args[0]).dim()
        dims = sorted(d % rank for d in dims) if dims else list(range(rank))
        whole, value = first.whole, _val(first.whole)
        if dims[0] != 0 or (len(node.args) > 2 and node.args[2]) or node.kwargs.get("keepdim"):
            return
        if node.target in _EXTREMES and value.dtype is torch.bool:
            return
        over = [*range(first.rank), *[d + first.rank - 1 for d in dims[1:]]]
        if node.target in _EXTREMES:
            extreme, sign = _EXTREMES[node.target]
            limit = float("inf") if value.dtype.is_floating_point else torch.iinfo(value.dtype).max
            least = -limit if value.dtype.is_floating_point or sign > 0 else torch.iinfo(value.dtype).min
            made = self._make(node, extreme, self._where(node, first.mask, whole, limit if sign > 0 else least), over)
        else:
            options = {name: each for name, each in node.kwargs.items() if each is not None}
            is_mean = node.target in (_aten.mean.default, _aten.mean.dim)
            if is_mean and value.dtype in (torch.float16, torch.bfloat16):
                whole = self._make(node, _aten._to_copy.default, whole, dtype=torch.float32)
            made = self._make(node, _aten.sum.dim_IntList, self._where(node, first.mask, whole, 0), over, **options)
        if node.target in (_aten.mean.default, _aten.mean.dim):
            number = self._make(node, _aten.sum.default, first.mask)
            size = math.prod(value.shape[d] for d in over[first.rank:])
            number = self._make(node, _aten._to_copy.default, self._make(node, _aten.mul.Tensor, number, size), dtype=_val(made).dtype)
            made = self._make(node, _aten.div.Tensor, made, number)
            if _val(made).dtype is not _val(node).dtype:
                made = self._make(node, _aten._to_copy.default, made, dtype=_val(node).dtype)
        node.replace_all_uses_with(made)

    def _sweep(self):
        """Erases the nodes of selections, and the assertions about their sizes."""
        for node in reversed(list(self.graph.nodes)):
            called = node.op == "call_function" and not node.users
            if called and (node.target in _OF_SIZES or any(each in self.selected for each in [node, *node.all_input_nodes])):
                self.graph.erase_node(node)


def with_all_elements(graph) -> None:
    """Rewrites selections by masks in a graph of core ATen, in place, where all that is done with them allows it."""
    _Rewriter(graph).run()
