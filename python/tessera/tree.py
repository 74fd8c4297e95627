# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Trees of arrays: lists, tuples, dictionaries, dataclasses and nn.Module, taken apart and put together again.

A parameter that several places of one module hold, or a module inside of it, is one: it has one leaf, at the first of these places, and what is
put together again shares it, too.
"""

from __future__ import annotations

import collections
import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any


@dataclasses.dataclass(frozen=True)
class Leaf:
    """An array in a tree. `path` is its place, "layers.0.weight"; buffers of modules are no parameters, and what is frozen is
    not trainable either. `shared`: further places of the same parameter."""

    path: str
    value: Any
    trainable: bool = True
    parameter: bool = True
    shared: tuple[str, ...] = ()


class Node:
    """The structure of a tree without its leaves; equal structures are equal and hash alike."""

    __slots__ = ("kind", "meta", "children", "_hash")

    def __init__(self, kind, meta=None, children: Sequence[Node] = ()):
        self.kind, self.meta, self.children = kind, meta, tuple(children)
        self._hash = None

    def __eq__(self, other):
        return self is other or (isinstance(other, Node) and hash(self) == hash(other) and self.kind == other.kind
                                 and _equal(self.meta, other.meta) and self.children == other.children)

    def __hash__(self):
        if self._hash is None:
            try:
                meta = hash(self.meta)
            except TypeError:  # compared by value then
                meta = 0
            self._hash = hash((self.kind, meta, self.children))
        return self._hash

    @property
    def leaves(self) -> int:
        return (self.kind == "leaf") + sum(child.leaves for child in self.children)


def _equal(a, b) -> bool:
    try:
        return type(a) is type(b) and bool(a == b)
    except (TypeError, ValueError):
        return a is b


def is_array(value) -> bool:
    """Whether it is a tensor or an array of any library."""
    return hasattr(value, "shape") and hasattr(value, "dtype") and hasattr(value, "__array__")


class _Seen:
    """The containers and parameters that were met inside of a module, by identity, and what stands for each. Buffers are shared only with
    the module that has them: two modules that begin with one tensor change it each for themselves."""

    __slots__ = ("_of",)

    def __init__(self):
        self._of: dict[int, tuple[Any, Any]] = {}

    def has(self, value) -> bool:
        return id(value) in self._of

    def get(self, value):
        return self._of[id(value)][1]

    def put(self, value, meaning) -> None:
        self._of[id(value)] = (value, meaning)  # keeps the value, so that no other one gets its identity


class _Numbers:
    """The same for `flatten`: numbers of leaves, which the leaves keep, and containers."""

    __slots__ = ("buffers", "containers", "parameters")

    def __init__(self):
        self.parameters: dict[int, int] = {}
        self.buffers: dict[int, int] = {}
        self.containers: dict[int, Any] = {}


def _seen_inside(seen, value, kind=_Seen):
    """For what is inside of a container."""
    return kind() if seen is None and hasattr(type(value), "__tree_fields__") else seen


def flatten(value, is_leaf: Callable[[Any], bool] = is_array) -> tuple[list[Leaf], Node]:
    """Leaves from left to right, and the structure. What is neither a container nor a leaf belongs to the structure."""
    leaves: list[Leaf] = []
    node = _flatten(value, "", (True, True), is_leaf, leaves, None, False)
    return leaves, node


def values(value, is_leaf: Callable[[Any], bool] = is_array) -> tuple[list, Node]:
    """What `flatten` finds, without the places."""
    found: list = []
    return found, _flatten(value, None, (True, True), is_leaf, found, None, False)


# Leaves have no structure, and plain settings recur: those that are equal are one node, which comparing recognizes at once.
_LEAVES = {kinds: Node("leaf", kinds) for kinds in ((True, True), (False, True), (False, False), (True, False))}
LEAF = _LEAVES[True, True]
_SETTINGS = frozenset((bool, int, str, type(None)))


@functools.lru_cache(maxsize=4096, typed=True)
def _setting(value) -> Node:
    return Node("static", value)


def _flatten(value, path, kinds, is_leaf, leaves, seen, again) -> Node:
    """`kinds`: whether what is inside is trainable, and whether it is a parameter. `again`: whether its container was met before. Without a
    path `leaves` are values."""
    if is_leaf(value):
        if seen is not None:
            number = count = len(leaves)
            if kinds[1]:
                number = seen.parameters.setdefault(id(value), count)
            elif again:
                number = seen.buffers.get(id(value), count)
            else:
                seen.buffers[id(value)] = count
            if number != count:
                if path is not None:
                    leaves[number] = dataclasses.replace(leaves[number], shared=(*leaves[number].shared, path))
                return Node("shared", number)
        leaves.append(value if path is None else Leaf(path, value, *kinds))
        return _LEAVES[kinds]
    if type(value) in _SETTINGS:
        return _setting(value)
    of = children(value)
    if of is None:
        return Node("static", value)
    seen = _seen_inside(seen, value, _Numbers)
    if seen is not None:
        again = again or id(value) in seen.containers
        seen.containers[id(value)] = value
    kind, meta, pairs, buffers = of
    # Numbers among the attributes of objects are settings; in containers they may be values.
    inner = is_leaf if kind in (list, tuple, dict) or kind == "named" else is_array
    frozen = value.frozen if isinstance(value, ParameterDict) else ()
    trainable, parameter = kinds
    return Node(kind, meta, [_flatten(child, None if path is None else f"{path}.{key}" if path else str(key),
                                      (trainable and key not in buffers and key not in frozen, parameter and key not in buffers),
                                      inner, leaves, seen, again)
                             for key, child in pairs])


@dataclasses.dataclass(frozen=True)
class StateLeaf:
    """An array of a state: the place in the tree, and the names that the state knows it by, the first one being that it is saved by.
    What is derived and not saved (a constant of an imported module) has no names."""

    path: str
    names: tuple[str, ...]
    value: Any

    @property
    def known(self) -> tuple[str, ...]:
        """All names that it is loaded by."""
        return (*self.names, self.path) if self.path not in self.names else self.names


def state_leaves(value, is_leaf: Callable[[Any], bool] = is_array) -> list[StateLeaf]:
    """The leaves in the order of flatten. Names are places, but inside of an object with `__state_names__`, which gives the names by place.
    What several places share has the names of all."""
    renamed: dict[str, tuple[str, ...]] = {}
    _rename(value, "", is_leaf, renamed)
    def names(leaf):
        return tuple(dict.fromkeys(name for path in (leaf.path, *leaf.shared) for name in renamed.get(path, (path,))))
    return [StateLeaf(leaf.path, names(leaf), leaf.value) for leaf in flatten(value, is_leaf)[0]]


def _rename(value, path, is_leaf, renamed) -> None:
    if is_leaf(value):
        return
    if hasattr(type(value), "__state_names__"):
        for place, names in value.__state_names__().items():
            renamed[f"{path}{place}"] = tuple(f"{path}{name}" for name in names)
        return
    for key, child in (children(value) or (None, None, (), ()))[2]:
        _rename(child, f"{path}{key}.", is_leaf, renamed)


class ParameterDict(dict):
    """A dictionary of parameters; those whose names are in `frozen` are not trained: they have no gradient and no state of an
    optimizer."""

    def __init__(self, values=(), frozen=()):
        super().__init__(values)
        self.frozen = frozenset(frozen)

    def __reduce__(self):
        return ParameterDict, (dict(self), self.frozen)


def children(value):
    """(kind, what else makes the structure, [(key, child)], keys of buffers) of a container; None for what is none."""
    if isinstance(value, dict):
        return dict, tuple(value), list(value.items()), ()
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return "named", type(value), list(zip(value._fields, value)), ()
    if isinstance(value, (list, tuple)):
        return type(value), None, list(enumerate(value)), ()
    if hasattr(type(value), "__tree_fields__"):
        return type(value), None, *type(value).__tree_fields__(value)
    if dataclasses.is_dataclass(value) and hasattr(value, "__dict__") and not isinstance(value, type) and not _is_value(value):
        return type(value), None, [(f.name, getattr(value, f.name)) for f in dataclasses.fields(value)], ()
    return None


def _is_value(value) -> bool:
    """Dataclasses of this package are values (types, meshes, placements), not containers of arrays."""
    return type(value).__module__.split(".")[0] == "tessera"


def unflatten(node: Node, leaves: Sequence[Any]):
    """The tree of that structure with other leaves; containers are new objects."""
    iterator = iter(leaves)
    result = _unflatten(node, iterator)
    assert next(iterator, None) is None
    return result


def _unflatten(node, leaves):
    if node.kind == "leaf":
        return next(leaves)
    if node.kind == "static":
        return node.meta
    values = [_unflatten(child, leaves) for child in node.children]
    if node.kind is dict:
        return dict(zip(node.meta, values))
    if node.kind == "named":
        return node.meta(*values)
    if node.kind in (list, tuple):
        return node.kind(values)
    raise AssertionError(f"{node.kind} is put together by copy")


def rebuild(value, leaves: Sequence[Any], is_leaf: Callable[[Any], bool] = is_array):
    """A copy of `value` with other leaves, in the order of flatten; objects are copied, not constructed."""
    return _rebuild(value, iter(leaves), is_leaf, None, True)


def _rebuild(value, leaves, is_leaf, seen, parameter):
    if is_leaf(value):
        if seen is not None and parameter and seen.has(value):
            return seen.get(value)
        made = next(leaves)
        if seen is not None and parameter:
            seen.put(value, made)
        return made
    if seen is not None and seen.has(value):
        return seen.get(value)
    of = children(value)
    if of is None:
        return value
    inside = _seen_inside(seen, value)
    made = _rebuild_inside(value, of, leaves, is_leaf, inside, parameter)
    if inside is not None:
        inside.put(value, made)
    return made


def _rebuild_inside(value, of, leaves, is_leaf, seen, parameter):
    kind, _, pairs, buffers = of
    inner = is_leaf if kind in (list, tuple, dict) or kind == "named" else is_array
    made = [(key, _rebuild(child, leaves, inner, seen, parameter and key not in buffers)) for key, child in pairs]
    if kind is dict:
        if type(value) is dict:
            return dict(made)
        # Of a class of its own, with what that has beside the entries. Its constructor may look into the values.
        copied = type(value).__new__(type(value))
        getattr(copied, "__dict__", {}).update(getattr(value, "__dict__", {}))
        if isinstance(value, collections.defaultdict):
            copied.default_factory = value.default_factory
        for key, child in made:
            copied[key] = child
        return copied
    if kind in (list, tuple):
        return type(value)(child for _, child in made)
    if kind == "named":
        return type(value)(*[child for _, child in made])
    copied = object.__new__(type(value))
    copied.__dict__.update(value.__dict__)
    for key, child in made:
        object.__setattr__(copied, key, child)
    return copied


def assign(value, leaves: Sequence[Any], is_leaf: Callable[[Any], bool] = is_array) -> None:
    """Puts leaves into `value` itself, where they are other objects than those it has. Tuples cannot be changed."""
    iterator = iter(leaves)

    def visit(container, is_leaf, seen, parameter):
        kind, _, pairs, buffers = children(container)
        inner = is_leaf if kind in (list, tuple, dict) or kind == "named" else is_array
        seen = _seen_inside(seen, container)
        if seen is not None:
            if seen.has(container):
                return
            seen.put(container, None)
        for key, child in pairs:
            if inner(child):
                is_parameter = seen is not None and parameter and key not in buffers
                new = seen.get(child) if is_parameter and seen.has(child) else next(iterator)
                if is_parameter:
                    seen.put(child, new)
                if new is not child:
                    if kind in (list, dict):
                        container[key] = new
                    elif kind not in (tuple, "named"):
                        object.__setattr__(container, key, new)
            elif children(child) is not None:
                visit(child, inner, seen, parameter and key not in buffers)
    if is_leaf(value):
        next(iterator)
    elif children(value) is not None:
        visit(value, is_leaf, None, True)


def map(function: Callable, value, *others):
    """A copy of `value` with function(leaf, leaf of each other at the same place, ...) for each leaf; None where another has none."""
    columns = [{leaf.path: leaf.value for leaf in flatten(other)[0]} for other in others]
    leaves, _ = flatten(value)
    return rebuild(value, [function(leaf.value, *[column.get(leaf.path) for column in columns]) for leaf in leaves])
