# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Parameters shared by several pipeline stages, such as tied embeddings.

A shared parameter is placed on the mesh of its first stage, where the optimizer updates it. At the start of a step each
other mesh gets a copy, which is differentiated as a parameter of its own. At the end of the step the gradients of the
copies are sent back and added in the order of the stages.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from . import tree
from .errors import ArgumentError
from .layout import check, listed
from .mesh import ProcessMesh
from .nn.layers import Sequential
from .ops.distributed import reshard
from .optim import _placed_like
from .sharding import Replicate, Sharding
from .source import refuse
from .tensor import Tensor, asarray

Copies = dict[str, Sharding]  # path of a shared parameter in the pipeline -> sharding of its copy


def place(layers: Sequence, homes: Sequence[ProcessMesh], rule: Callable | None) -> tuple[Sequence, Copies]:
    """(layers with their tensors on `homes`, the mesh of each layer; the copies that other meshes need).

    Raises ArgumentError if layers on several meshes share a buffer.
    """
    whole, values, copies = Sequential(*layers), [], {}

    def sharding_of(leaf, path):
        layer, name = path.removeprefix("layers.").split(".", 1)
        mesh = homes[int(layer)]
        placements = rule(f"{layer}.{name}", asarray(leaf.value)) if rule is not None and leaf.parameter else None
        return Sharding(mesh, listed([Replicate()] * mesh.ndim if placements is None else placements))

    for leaf in tree.flatten(whole)[0]:
        home = sharding_of(leaf, leaf.path)
        for path in leaf.shared:
            other = sharding_of(leaf, path)
            if other.mesh == home.mesh:
                continue
            if not leaf.parameter:
                raise refuse(ArgumentError, f"stages on {home.mesh!r} and {other.mesh!r} share the buffer '{leaf.path.removeprefix('layers.')}' "
                                            f"with '{path.removeprefix('layers.')}'; only parameters are shared between meshes: give each stage a "
                                            "module of its own")
            copies[path] = check(other, leaf.value.shape, leaf.value.dtype.element, f"the parameter '{path.removeprefix('layers.')}'")
        values.append(_placed_like(asarray(leaf.value), home.mesh, home.placements))
    return tree.rebuild(whole, values).layers, copies


def with_copies(pipe):
    """The pipeline with a separate parameter on each mesh that shares one; unchanged if none is shared."""
    if not pipe.copies:
        return pipe
    made: dict[tuple[str, ProcessMesh], Tensor] = {}
    at: dict[str, Tensor] = {}
    for leaf in tree.flatten(pipe)[0]:
        for path in leaf.shared:
            if path not in pipe.copies:
                continue
            sharding = pipe.copies[path]
            key = leaf.path, sharding.mesh
            if key not in made:
                made[key] = reshard(leaf.value, sharding.mesh, sharding.placements)
            at[path] = made[key]
    layers, first = [], 0
    for count in pipe.split:  # sharing within a stage is kept
        part = Sequential(*pipe.layers[first:first + count])
        values = [next((at[path] for path in (_of_pipe(each, first) for each in (leaf.path, *leaf.shared)) if path in at), leaf.value)
                  for leaf in tree.flatten(part)[0]]
        layers += tree.rebuild(part, values).layers
        first += count
    return _with(pipe, layers=layers, copies={})


def _of_pipe(path: str, first: int) -> str:
    """The path in the pipeline of a path in the stage that begins with layer `first`."""
    _, layer, name = path.split(".", 2)
    return f"layers.{int(layer) + first}.{name}"


def _with(pipe, **attributes):
    made = object.__new__(type(pipe))
    made.__dict__.update(pipe.__dict__, **attributes)
    return made


def gathered(pipe, gradients):
    """The gradients of the pipeline, summed from those of the pipeline with copies."""
    found = {leaf.path: leaf.value for leaf in tree.flatten(gradients)[0]}
    values = []
    for leaf in tree.flatten(pipe)[0]:
        total = found.get(leaf.path)
        meshes: set[ProcessMesh] = set()
        for path in leaf.shared:
            if path not in pipe.copies or pipe.copies[path].mesh in meshes or total is None:
                continue
            meshes.add(pipe.copies[path].mesh)
            total = total + reshard(found[path], leaf.value.mesh, leaf.value.placements or ())
        values.append(total)
    return tree.rebuild(pipe, values)


def take_buffers(pipe, other) -> None:
    """Copies buffers that a step changed from the pipeline with copies back to the pipeline."""
    changed = {leaf.path: leaf.value for leaf in tree.flatten(other)[0] if not leaf.parameter}
    tree.assign(pipe, [changed.get(leaf.path, leaf.value) for leaf in tree.flatten(pipe)[0]])
