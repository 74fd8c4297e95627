# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Trees of arrays (lists, tuples, dictionaries, dataclasses and nn.Module): flattening and rebuilding.

A parameter that a module holds in several places is one leaf, at the first place. The rebuilt tree shares it again.
"""

from __future__ import annotations

import collections
import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any


@dataclasses.dataclass(frozen=True)
class Leaf:
    """An array in a tree. `path` is its place, "layers.0.weight".

    Buffers of modules are not parameters, and frozen parameters are not trainable. `shared`: other paths of the same
    parameter.
    """

    path: str
    value: Any
    trainable: bool = True
    parameter: bool = True
    shared: tuple[str, ...] = ()


class Node:
    """The structure of a tree without its leaves; comparable and hashable by value."""

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
            except TypeError:  # not hashable: __eq__ compares it
                meta = 0
            self._hash = hash((self.kind, meta, self.children))
        return self._hash

    @property
    def leaves(self) -> int:
        """The number of leaves below."""
        return (self.kind == "leaf") + sum(child.leaves for child in self.children)


def _equal(a, b) -> bool:
    try:
        return type(a) is type(b) and bool(a == b)
    except (TypeError, ValueError):
        return a is b


def is_array(value) -> bool:
    """Whether a value is a tensor or an array of any library."""
    return hasattr(value, "shape") and hasattr(value, "dtype") and hasattr(value, "__array__")


class _Seen:
    """Maps containers and parameters of a module, by identity, to their copies.

    Buffers are shared only within one module: two modules that start with the same tensor update it separately.
    """

    __slots__ = ("_of",)

    def __init__(self):
        self._of: dict[int, tuple[Any, Any]] = {}

    def has(self, value) -> bool:
        return id(value) in self._of

    def get(self, value):
        return self._of[id(value)][1]

    def put(self, value, meaning) -> None:
        self._of[id(value)] = (value, meaning)  # holds the value, so that its id is not reused


class _Numbers:
    """The same for `flatten`: leaf indices of parameters and buffers, and the containers seen."""

    __slots__ = ("buffers", "containers", "parameters")

    def __init__(self):
        self.parameters: dict[int, int] = {}
        self.buffers: dict[int, int] = {}
        self.containers: dict[int, Any] = {}


def _seen_inside(seen, value, kind=_Seen):
    """The state for the children of a container: new state at the outermost module."""
    return kind() if seen is None and hasattr(type(value), "__tree_fields__") else seen


def flatten(value, is_leaf: Callable[[Any], bool] = is_array) -> tuple[list[Leaf], Node]:
    """The leaves from left to right, and the structure.

    Values that are neither containers nor leaves are part of the structure.
    """
    leaves: list[Leaf] = []
    node = _flatten(value, "", (True, True), is_leaf, leaves, None, False)
    return leaves, node


def values(value, is_leaf: Callable[[Any], bool] = is_array) -> tuple[list, Node]:
    """As `flatten`, with the values of the leaves alone."""
    found: list = []
    return found, _flatten(value, None, (True, True), is_leaf, found, None, False)


# Interned nodes: equal leaves and equal plain settings are one object, which makes comparison fast.
_LEAVES = {kinds: Node("leaf", kinds) for kinds in ((True, True), (False, True), (False, False), (True, False))}
LEAF = _LEAVES[True, True]
_SETTINGS = frozenset((bool, int, str, type(None)))


@functools.lru_cache(maxsize=4096, typed=True)
def _setting(value) -> Node:
    return Node("static", value)


def _flatten(value, path, kinds, is_leaf, leaves, seen, again) -> Node:
    """Appends the leaves of `value` to `leaves` and returns its structure.

    kinds: (trainable, parameter) of leaves inside. again: whether the container was visited before. path None: append
    values in place of Leaf objects.
    """
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
    # Numbers in containers may be leaves; as attributes of objects they are settings.
    inner = is_leaf if kind in (list, tuple, dict) or kind == "named" else is_array
    frozen = value.frozen if isinstance(value, ParameterDict) else ()
    trainable, parameter = kinds
    return Node(kind, meta, [_flatten(child, None if path is None else f"{path}.{key}" if path else str(key),
                                      (trainable and key not in buffers and key not in frozen, parameter and key not in buffers),
                                      inner, leaves, seen, again)
                             for key, child in pairs])


@dataclasses.dataclass(frozen=True)
class StateLeaf:
    """An array of a state: its path in the tree, and its names in checkpoints; it is saved under the first one.

    Derived values that are not saved (constants of an imported module) have no names.
    """

    path: str
    names: tuple[str, ...]
    value: Any

    @property
    def known(self) -> tuple[str, ...]:
        """All names accepted on loading."""
        return (*self.names, self.path) if self.path not in self.names else self.names


def state_leaves(value, is_leaf: Callable[[Any], bool] = is_array) -> list[StateLeaf]:
    """The leaves in the order of flatten.

    A leaf's name is its path, unless its object defines `__state_names__` (path -> names). A shared leaf has the names
    of all its paths.
    """
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
    """A dictionary of parameters; those named in `frozen` have no gradient and no optimizer state."""

    def __init__(self, values=(), frozen=()):
        super().__init__(values)
        self.frozen = frozenset(frozen)

    def __reduce__(self):
        return ParameterDict, (dict(self), self.frozen)


def children(value):
    """(kind, other data of the structure, [(key, child)], keys of buffers) of a container; None for other values."""
    if isinstance(value, dict):
        return dict, tuple(value), list(value.items()), ()
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return "named", type(value), list(zip(value._fields, value)), ()
    if isinstance(value, (list, tuple)):
        kind = list if isinstance(value, list) else tuple  # or a subclass, made of a sequence
        return kind, None if type(value) is kind else type(value), list(enumerate(value)), ()
    if hasattr(type(value), "__tree_fields__"):
        return type(value), None, *type(value).__tree_fields__(value)
    if dataclasses.is_dataclass(value) and hasattr(value, "__dict__") and not isinstance(value, type) and not _is_value(value):
        return type(value), None, [(f.name, getattr(value, f.name)) for f in dataclasses.fields(value)], ()
    return None


def attributes(value):
    """`__tree_fields__` of classes whose children are their attributes: (attributes with settings, in order of assignment; names
    of buffers)."""
    return [(k, v) for k, v in value.__dict__.items() if k != "_buffers"], value.__dict__.get("_buffers", ())


def _is_value(value) -> bool:
    """Whether it is a dataclass of this package: those are values (types, meshes, placements), not containers."""
    return type(value).__module__.split(".")[0] == "tessera"


def unflatten(node: Node, leaves: Sequence[Any]):
    """The tree of a structure with the given leaves; containers are new objects."""
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
    raise AssertionError(f"{node.kind} is rebuilt by copying")


def rebuild(value, leaves: Sequence[Any], is_leaf: Callable[[Any], bool] = is_array):
    """A copy of `value` with other leaves, in the order of flatten.

    Objects are copied without calling their constructors.
    """
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
        # A subclass of dict: copy its attributes too, and do not call its constructor, which may inspect the values.
        copied = type(value).__new__(type(value))
        getattr(copied, "__dict__", {}).update(getattr(value, "__dict__", {}))
        if isinstance(value, collections.defaultdict):
            copied.default_factory = value.default_factory
        for key, child in made:
            copied[key] = child
        return copied
    if kind in (list, tuple):
        return type(value)([child for _, child in made])
    if kind == "named":
        return type(value)(*[child for _, child in made])
    copied = object.__new__(type(value))
    copied.__dict__.update(value.__dict__)
    for key, child in made:
        object.__setattr__(copied, key, child)
    return copied


def assign(value, leaves: Sequence[Any], is_leaf: Callable[[Any], bool] = is_array) -> None:
    """Stores leaves in `value` itself where they are different objects. Tuples stay unchanged."""
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
    """A copy of `value` with each leaf replaced by function(leaf, *leaves of the others at the same path).

    A leaf that another tree lacks is None.
    """
    columns = [{leaf.path: leaf.value for leaf in flatten(other)[0]} for other in others]
    leaves, _ = flatten(value)
    return rebuild(value, [function(leaf.value, *[column.get(leaf.path) for column in columns]) for leaf in leaves])
