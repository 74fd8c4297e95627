# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""python -m tessera.checkpoints ls|verify|convert|merge."""

from __future__ import annotations

import argparse
import json
import math
import os
import sys

from ..dtypes import dtype
from ..errors import Error
from ..tensor import from_array
from . import folder as folders
from .errors import CheckpointError, NotSafetensors
from .loading import _candidates
from .reading import INDEX, SINGLE, Source
from .saving import save_checkpoint
from .single import save_state


def _bytes(source: Source, name: str) -> int:
    entry = source.entry(name)
    return math.prod(entry.shape) * dtype(entry.dtype).itemsize


def _all(path: str) -> list[str]:
    """All checkpoints at a path, newest first."""
    return [each for _, each in folders.checkpoints(path)] or _candidates(path, None)


def ls(options) -> int:
    """List checkpoints, one per line, with --tensors also their tensors."""
    code = 0
    for path in _all(options.path):
        try:
            with Source(path) as source:
                of = source.manifest
                print(f"{path}: step {of.step}, {len(of.tensors)} tensors, {len(of.files)} files, {sum(_bytes(source, name) for name in of.tensors)} bytes")
                for name in source.names() if options.tensors else ():
                    entry = source.entry(name)
                    parts = f" in {len(entry.shards)} parts" if len(entry.shards) > 1 else ""
                    same = f" = {of.aliases[name]}" if name in of.aliases else ""
                    print(f"  {name}: {entry.dtype}{list(entry.shape)}{parts}{same}")
        except CheckpointError as error:
            print(f"{path}: damaged: {error}")
            code = 1
    return code


def verify(options) -> int:
    """Read all data and compare checksums; the exit code is 1 if a checkpoint is damaged."""
    code = 0
    for path in _all(options.path):
        try:
            with Source(path) as source:
                source.verify()
                whole = all(file.checksums is not None for file in source.manifest.files.values())
                print(f"{path}: {'whole' if whole else 'readable; its format has no checksums'}, {source.bytes_read} bytes read")
        except NotSafetensors as error:
            print(error)
            code = 1
        except CheckpointError as error:
            print(f"{path}: damaged: {error}")
            code = 1
    return code


def _tensors(source: Source, options, names: list[str]) -> dict:
    """The tensors selected by --strip, under their new names."""
    result = {}
    for name in names:
        if name.startswith(options.strip):
            new = options.prefix + name[len(options.strip):]
            result[new] = from_array(source.read(name), dtype(source.entry(name).dtype))
    if not result:
        raise CheckpointError(f"{options.path}: no tensor has a name that begins with '{options.strip}'")
    return result


def merge(options) -> int:
    """Write whole tensors to one safetensors file."""
    with Source(_candidates(options.path, options.step)[0]) as source:
        save_state(options.output, _tensors(source, options, list(source.manifest.tensors)))
    return 0


def convert(options) -> int:
    """Convert a checkpoint to a Hugging Face folder, in files of limited size, or such a folder to a checkpoint."""
    with Source(_candidates(options.path, options.step)[0]) as source:
        if options.to == "tessera":
            save_checkpoint(options.output, _tensors(source, options, source.names()), source.manifest.step, alone=True)
            return 0
        if os.path.exists(options.output) and os.listdir(options.output):
            raise CheckpointError(f"{options.output}: the folder is not empty; name a new one")
        os.makedirs(options.output, exist_ok=True)
        groups: list[list[str]] = [[]]
        for name in [name for name in source.manifest.tensors if name.startswith(options.strip)]:
            if groups[-1] and sum(_bytes(source, each) for each in [*groups[-1], name]) > options.max_shard_size:
                groups.append([])
            groups[-1].append(name)
        places = {}
        for number, names in enumerate(groups, 1):
            file = SINGLE if len(groups) == 1 else f"model-{number:05d}-of-{len(groups):05d}.safetensors"
            tensors = _tensors(source, options, names)
            save_state(os.path.join(options.output, file), tensors)
            places |= {name: file for name in tensors}
        if len(groups) > 1:
            total = sum(_bytes(source, name) for names in groups for name in names)
            text = json.dumps({"metadata": {"total_size": total}, "weight_map": places}, indent=2)
            folders.write_file(os.path.join(options.output, INDEX), text.encode())
    return 0


def main(arguments=None) -> int:
    parser = argparse.ArgumentParser(prog="tessera ckpt", description="List, verify and convert checkpoints.")
    commands = parser.add_subparsers(required=True, metavar="ls|verify|convert|merge")
    for function in (ls, verify, convert, merge):
        command = commands.add_parser(function.__name__, help=function.__doc__, description=function.__doc__)
        command.set_defaults(function=function)
        command.add_argument("path", help=f"a folder of checkpoints, a checkpoint, a folder with {INDEX} or {SINGLE}, or a file")
        if function is ls:
            command.add_argument("--tensors", action="store_true", help="also list the tensors")
        if function in (convert, merge):
            command.add_argument("output", help="folder or file to write")
            command.add_argument("--step", type=int, help="step of the checkpoint to read (default: the newest)")
            command.add_argument("--strip", default="", metavar="PREFIX", help="select tensors with this prefix, and remove it from their names")
            command.add_argument("--prefix", default="", help="prefix to add to names in the output")
        if function is convert:
            command.add_argument("--to", choices=("hf", "tessera"), default="hf", help="output format: a Hugging Face folder, which PyTorch reads (default), "
                                 "or a checkpoint")
            command.add_argument("--max-shard-size", type=int, default=5 * 10**9, metavar="BYTES", help="largest size of a file (default 5 GB)")
    options = parser.parse_args(arguments)
    try:
        return options.function(options)
    except (Error, OSError) as error:
        print(f"tessera: error: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
