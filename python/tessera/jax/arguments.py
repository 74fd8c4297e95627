# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Trees of arguments and results: names, shardings, and feeds (results that become arguments of the next step)."""

from __future__ import annotations

import dataclasses
import inspect
from typing import Any

import jax
from jax.sharding import PartitionSpec, Sharding

from .errors import ImportFailure


@dataclasses.dataclass
class Leaf:
    """An array in a tree. `path` starts with the index of the argument or result; `sharding` is JAX's, or None."""

    name: str
    aval: Any
    sharding: Any
    path: tuple


def _text(key) -> str:
    for attribute in ("key", "idx", "name"):
        if hasattr(key, attribute):
            return str(getattr(key, attribute))
    return str(key)


_FREE = object()  # a sharding left to the compiler: None as a leaf, while a None in a tree of values has no leaf


def _broadcast(shardings, tree, what):
    """One sharding per leaf of `tree`, from a tree prefix of shardings; None: left to the compiler."""
    leaf = lambda x: x is None or x is _FREE or isinstance(x, (Sharding, PartitionSpec))
    marked = jax.tree.map(lambda x: _FREE if x is None else x, shardings, is_leaf=leaf)
    try:
        full = jax.tree.broadcast(marked, tree, is_leaf=lambda x: x is not None and leaf(x))
    except ValueError:
        values = "arguments" if what == "in_shardings" else "results"
        if isinstance(shardings, (tuple, list)) and isinstance(tree, (tuple, list)) and len(shardings) != len(tree):
            raise ImportFailure(f"{what} do not match the {values}: {len(shardings)} for {len(tree)} {values}; give "
                                "one for each, or one sharding "
                                "for all of them") from None
        raise ImportFailure(f"{what} do not match the {values}: each entry is a sharding, None, or a tree of them "
                            "with the structure of its "
                            f"{values[:-1]}") from None
    found = jax.tree.leaves(full, is_leaf=lambda x: x is not None and leaf(x))
    return [None if x is _FREE else x for x in found]


def arguments(fn, args, shardings) -> list[Leaf]:
    """Leaves of the arguments, named after the function's parameters: params.layers.0.w1."""
    try:
        parameters = inspect.signature(fn).parameters.values()
    except (TypeError, ValueError):
        parameters = []
    names = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    rest = next((p.name for p in parameters if p.kind == p.VAR_POSITIONAL), "arg")
    extra = len(args) - len(names)
    names += [f"{rest}{i}" for i in range(extra)] if extra > 1 or rest == "arg" else [rest] * max(0, extra)
    paths = jax.tree_util.tree_flatten_with_path(tuple(args))[0]
    given = _broadcast(shardings, tuple(args), "in_shardings") if shardings is not None else [None] * len(paths)
    leaves = [Leaf(".".join([names[p[0].idx], *map(_text, p[1:])]), aval, s, p) for (p, aval), s in zip(paths, given)]
    return _unique(leaves)


def results(shape, shardings, feeds: dict[int, int], inputs: list[Leaf]) -> list[Leaf]:
    """Leaves of the results. One that feeds an argument is named after it, new.params.w1; others by their path."""
    paths = jax.tree_util.tree_flatten_with_path(shape)[0]
    given = _broadcast(shardings, shape, "out_shardings") if shardings is not None else [None] * len(paths)
    leaves = []
    for i, ((path, aval), sharding) in enumerate(zip(paths, given)):
        name = f"new.{inputs[feeds[i]].name}" if i in feeds else ".".join(["out", *map(_text, path)]) if path else "out"
        leaves.append(Leaf(name, aval, sharding, path))
    return _unique(leaves)


def _unique(leaves):
    taken: set[str] = set()
    for leaf in leaves:
        name, n = leaf.name, 1
        while leaf.name in taken:
            n += 1
            leaf.name = f"{name}_{n}"
        taken.add(leaf.name)
    return leaves


def checked_feeds(feeds: dict, results: int, inputs: int) -> dict[int, int]:
    """`feeds`, by leaves of which there are `results` and `inputs`."""
    for result, argument in feeds.items():
        if not (isinstance(result, int) and 0 <= result < results and isinstance(argument, int) and 0 <= argument < inputs):
            raise ImportFailure(f"feeds maps result {result!r} to argument {argument!r}; results are numbered from 0 to {results - 1}, arguments from "
                                f"0 to {inputs - 1}, by the leaves of their trees")
    return feeds


def matching_feeds(args, shape) -> dict[int, int]:
    """Result leaf -> argument leaf of the next step.

    A result that is a container of arrays feeds the first unmatched argument of the same structure and types. Bare
    arrays are never matched: data may have the type of a result.
    """
    outs = list(shape) if type(shape) in (tuple, list) else [shape]
    feeds, first_out, taken = {}, 0, set()
    for out in outs:
        leaves, tree = jax.tree.flatten(out)
        first_in = 0
        for k, arg in enumerate(args):
            arg_leaves, arg_tree = jax.tree.flatten(arg)
            same = tree == arg_tree and k not in taken and not jax.tree_util.treedef_is_leaf(tree) and leaves and \
                all(a.shape == b.shape and a.dtype == b.dtype for a, b in zip(leaves, arg_leaves))
            if same:
                taken.add(k)
                feeds |= {first_out + i: first_in + i for i in range(len(leaves))}
                break
            first_in += len(arg_leaves)
        first_out += len(leaves)
    return feeds
