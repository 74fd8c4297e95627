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
    """All checkpoints that a path means, newest first."""
    return [each for _, each in folders.checkpoints(path)] or _candidates(path, None)


def ls(options) -> int:
    """One line a checkpoint; of one checkpoint, or with --tensors, its tensors."""
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
    """Reads everything; the exit code is 1 where something is damaged."""
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
    """Tensors by the names that the options ask for."""
    result = {}
    for name in names:
        if name.startswith(options.strip):
            new = options.prefix + name[len(options.strip):]
            result[new] = from_array(source.read(name), dtype(source.entry(name).dtype))
    if not result:
        raise CheckpointError(f"{options.path}: no tensor's name begins with '{options.strip}'")
    return result


def merge(options) -> int:
    """Whole tensors in one file of safetensors."""
    with Source(_candidates(options.path, options.step)[0]) as source:
        save_state(options.output, _tensors(source, options, list(source.manifest.tensors)))
    return 0


def convert(options) -> int:
    """To a folder of Hugging Face's, in files of limited size, or from one to a checkpoint."""
    with Source(_candidates(options.path, options.step)[0]) as source:
        if options.to == "tessera":
            save_checkpoint(options.output, _tensors(source, options, source.names()), source.manifest.step, alone=True)
            return 0
        if os.path.exists(options.output) and os.listdir(options.output):
            raise CheckpointError(f"{options.output}: the folder has files; name a new one")
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
    parser = argparse.ArgumentParser(prog="tessera ckpt", description="Lists, checks and converts checkpoints.")
    commands = parser.add_subparsers(required=True, metavar="ls|verify|convert|merge")
    for function in (ls, verify, convert, merge):
        command = commands.add_parser(function.__name__, help=function.__doc__, description=function.__doc__)
        command.set_defaults(function=function)
        command.add_argument("path", help=f"a folder of checkpoints, a checkpoint, a folder with {INDEX} or {SINGLE}, or a file")
        if function is ls:
            command.add_argument("--tensors", action="store_true", help="list the tensors, too")
        if function in (convert, merge):
            command.add_argument("output", help="the folder, or the file, to write")
            command.add_argument("--step", type=int, help="the step to take; the newest by default")
            command.add_argument("--strip", default="", metavar="PREFIX", help="take the tensors of this prefix, and leave it away, as model.")
            command.add_argument("--prefix", default="", help="what names begin with in the output")
        if function is convert:
            command.add_argument("--to", choices=("hf", "tessera"), default="hf", help="a folder of Hugging Face's, which PyTorch reads (default), or a checkpoint")
            command.add_argument("--max-shard-size", type=int, default=5 * 10**9, metavar="BYTES", help="of a file (default 5 GB)")
    options = parser.parse_args(arguments)
    try:
        return options.function(options)
    except (Error, OSError) as error:
        print(f"tessera: error: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
