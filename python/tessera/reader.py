# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Leaves of trees whose structure is known: a call of a compiled function reads its arguments without describing them again."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence

from . import tree
from .tree import Node, ParameterDict


class Reader:
    """Reads the leaves of values that have the structure `node`.

    A container is compared by a few operations on all of its children at once. Structures with shared leaves, or with containers
    that list their children themselves, have no reader.
    """

    __slots__ = ("node", "_root", "_order", "_distinct")

    @staticmethod
    def of(value, node: Node, is_leaf: Callable) -> Reader | None:
        """The reader of a value's structure; None if there is none."""
        made = Reader()
        made.node, made._distinct, numbers = node, False, iter(range(node.leaves))
        described = made._describe(value, node, is_leaf, numbers)
        if described is None:
            return None
        made._root, found = described
        made._order = sorted(range(len(found)), key=found.__getitem__)
        return made

    def read(self, value) -> list | None:
        """The leaves from left to right; None if the structure may be another one."""
        found: list = []
        try:
            same = _read(self._root, value, found)
        except Exception:  # noqa: BLE001 - settings of other structures may raise when they are compared
            return None
        # A parameter in several places is one leaf.
        if not same or self._distinct and len(set(map(id, found))) != len(found):
            return None
        return [found[i] for i in self._order]

    def _describe(self, value, node, is_leaf, numbers):
        """What `_read` compares of a container, and the numbers of the leaves in the order in which it finds them; or None."""
        kind = type(value)
        if kind in _LISTED:
            names_of, children_of = _LISTED[kind]
        elif getattr(kind, "__tree_fields__", None) is tree.attributes:
            names_of, children_of, self._distinct = _attribute_names, _attribute_values, True
        else:
            return None
        _, _, pairs, _ = tree.children(value)
        below = {name: child for (name, _), child in zip(pairs, node.children)}
        inner = is_leaf if kind in (list, tuple, dict, ParameterDict) else tree.is_array
        settings, leaves, inside, order, later = [], [], [], [], []
        children = list(children_of(value))
        names = tuple(value.__dict__) if kind not in _LISTED else [name for name, _ in pairs]
        for place, (name, child) in enumerate(zip(names, children)):
            of = below.get(name)
            if of is None or of.kind == "static":  # None: what names the buffers
                settings.append(place)
            elif of.kind == "leaf":
                if type(child) is not float and not tree.is_array(type(child)):
                    return None
                leaves.append(place)
                order.append(next(numbers))
            else:
                described = self._describe(child, of, inner, numbers)
                if described is None:
                    return None
                inside.append((place, described[0]))
                later += described[1]
        pick = [_picker(places) for places in (settings, leaves)]
        return (kind, names_of, names_of(value), children_of, list(map(type, children)), pick[0], pick[0](children), pick[1],
                inside), order + later


def _read(expected, value, found: list) -> bool:
    kind, names_of, names, children_of, types, settings_of, settings, leaves_of, inside = expected
    if type(value) is not kind or names_of(value) != names:
        return False
    children = list(children_of(value))
    if list(map(type, children)) != types or settings_of(children) != settings:
        return False
    found += leaves_of(children)
    for place, below in inside:
        if not _read(below, children[place], found):
            return False
    return True


def _picker(places: Sequence[int]) -> Callable:
    """A function of a list to a tuple of its elements at `places`."""
    if len(places) > 1:
        return operator.itemgetter(*places)
    if places:
        place = places[0]
        return lambda children: (children[place],)
    return lambda children: ()


def _attribute_names(value):
    return tuple(value.__dict__)


def _attribute_values(value):
    return value.__dict__.values()


def _frozen_names(value):
    return tuple(value), value.frozen


# Of a container of this type: its names, which are compared, and its children.
_LISTED = {list: (len, iter), tuple: (len, iter), dict: (tuple, dict.values), ParameterDict: (_frozen_names, dict.values)}
