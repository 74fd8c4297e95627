# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The manifest: the tensors of a checkpoint, the files that hold their parts, and checksums.

It is a JSON object. Its first entry is the checksum of the text, computed with zeros in place of the checksum.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import os
import re

from . import boxes
from .boxes import Box
from .chunks import MOST_CHUNK, digest
from .errors import CheckpointError
from .safetensors import MOST_DIMENSIONS, NAMES, is_count, parse

NAME, FORMAT, VERSION = "manifest.json", "tessera checkpoint", 1
_PREFIX, _DIGITS = b'{\n "checksum": "', 64
_FILE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,200}\.safetensors")


@dataclasses.dataclass(frozen=True)
class File:
    """Size and checksums of a file; None for files that other programs wrote."""

    size: int | None
    checksums: list[int] | None


@dataclasses.dataclass(frozen=True)
class Entry:
    """A tensor: its parts as (file, box). `sharding` is informational: the sharding when it was saved."""

    dtype: str
    shape: tuple[int, ...]
    shards: tuple[tuple[str, Box], ...]
    sharding: str | None = None


@dataclasses.dataclass
class Manifest:
    """The contents of a manifest.

    chunk: bytes per checksum. aliases: tensor by alias (tied weights). values: the leaves of the state that are not
    tensors.
    extra: states of loader and random generator, hash of the program. Nothing parses the text of a sharding.
    """

    step: int = 0
    chunk: int = 1 << 20
    files: dict[str, File] = dataclasses.field(default_factory=dict)
    tensors: dict[str, Entry] = dataclasses.field(default_factory=dict)
    aliases: dict[str, str] = dataclasses.field(default_factory=dict)
    values: dict[str, object] = dataclasses.field(default_factory=dict)
    extra: dict[str, object] = dataclasses.field(default_factory=dict)

    def parts(self) -> dict:
        """Files and tensors as JSON values."""
        return {
            "files": {name: {"size": file.size, "digest": digest(file.size, file.checksums),
                             "chunks": "".join(f"{each:08x}" for each in file.checksums)} for name, file in self.files.items()},
            "tensors": {name: {"dtype": entry.dtype, "shape": list(entry.shape), "sharding": entry.sharding,
                               "shards": [{"file": file, "begin": [b for b, _ in box], "end": [e for _, e in box]} for file, box in entry.shards]}
                        for name, entry in self.tensors.items()}}

    def text(self) -> bytes:
        """The text of the manifest file. Raises TypeError or ValueError for values that are not JSON."""
        body = {"checksum": "0" * _DIGITS, "format": FORMAT, "version": VERSION, "step": self.step, "chunk": self.chunk, **self.parts(),
                "aliases": self.aliases, "values": self.values, "extra": self.extra}
        return _sign(json.dumps(body, indent=1, allow_nan=False).encode())


def _sign(text: bytes) -> bytes:
    return _PREFIX + hashlib.blake2b(text, digest_size=_DIGITS // 2).hexdigest().encode() + text[len(_PREFIX) + _DIGITS:]


def read(folder: str) -> Manifest:
    """Read and check the manifest of a folder, without its other files. Raises CheckpointError."""
    path = os.path.join(folder, NAME)
    try:
        with open(path, "rb") as file:
            text = file.read()
    except FileNotFoundError:
        raise CheckpointError(f"{path}: the file is missing; the folder is not a complete checkpoint") from None
    except OSError as error:
        raise CheckpointError(f"{path}: {error.strerror}") from None
    at = len(_PREFIX) + _DIGITS
    if not text.startswith(_PREFIX):
        _refuse_other(text, path)
    if text[:len(_PREFIX)] != _PREFIX or _sign(_PREFIX + b"0" * _DIGITS + text[at:]) != text:
        raise CheckpointError(f"{path}: the checksum does not match the text; the manifest is damaged or was edited")
    return check(parse(text, path), path)


def _refuse_other(text: bytes, path: str) -> None:
    """Raise CheckpointError if the text is JSON of another format, or of a version with another kind of checksum."""
    try:
        body = parse(text, path)
    except CheckpointError:
        return
    if isinstance(body, dict):
        _check_format(body, path)


def _check_format(body: dict, path: str) -> None:
    if body.get("format") != FORMAT:
        raise CheckpointError(f"{path}: the format is {str(body.get('format'))[:60]!r}; expected '{FORMAT}': the folder is not a Tessera checkpoint")
    version = body.get("version")
    if type(version) is not int or not 1 <= version <= VERSION:
        raise CheckpointError(f"{path}: format version {str(version)[:60]}; this version of Tessera reads up to {VERSION}: use a newer one")


def check(body, path: str) -> Manifest:
    """The manifest of a parsed JSON value. Raises CheckpointError, naming the entry, if it is invalid."""
    def field(of, name, kind, where=""):
        value = of.get(name) if isinstance(of, dict) else None
        if type(value) is not kind:
            raise CheckpointError(f"{path}: {where}'{name}' is {str(value)[:60]!r}, not of type {kind.__name__}")
        return value
    if not isinstance(body, dict):
        raise CheckpointError(f"{path}: the manifest is not a JSON object")
    _check_format(body, path)
    chunk = field(body, "chunk", int)
    if not 0 < chunk <= MOST_CHUNK or not is_count(field(body, "step", int), 1 << 62):
        raise CheckpointError(f"{path}: chunk {str(chunk)[:40]} or step {str(body['step'])[:40]} is out of range")
    files = {}
    for name, entry in field(body, "files", dict).items():
        where = f"file '{name[:100]}': "
        check_file_name(name, path)
        size, chunks = field(entry, "size", int, where), field(entry, "chunks", str, where)
        if not is_count(size, 1 << 62) or len(chunks) != 8 * -(-size // chunk) or not re.fullmatch("[0-9a-f]*", chunks):
            raise CheckpointError(f"{path}: {where}{len(chunks) // 8} checksums do not fit {str(size)[:40]} bytes in chunks of {chunk}")
        checksums = [int(chunks[i:i + 8], 16) for i in range(0, len(chunks), 8)]
        if field(entry, "digest", str, where) != digest(size, checksums):
            raise CheckpointError(f"{path}: {where}the digest does not match the chunks")
        files[name] = File(size, checksums)
    tensors = {name: _tensor(name, entry, files, path, field) for name, entry in field(body, "tensors", dict).items()}
    aliases = field(body, "aliases", dict)
    for name, of in aliases.items():
        if name in tensors or not isinstance(of, str) or of not in tensors:
            raise CheckpointError(f"{path}: alias '{name[:100]}' of {str(of)[:100]!r}: the alias is the name of a tensor, or the target is not")
    return Manifest(body["step"], chunk, files, tensors, aliases, field(body, "values", dict), field(body, "extra", dict))


def _tensor(name, entry, files, path, field) -> Entry:
    where = f"tensor '{name[:100]}': "
    dtype, shape = field(entry, "dtype", str, where), field(entry, "shape", list, where)
    if dtype not in NAMES or len(shape) > MOST_DIMENSIONS or not all(is_count(n, 1 << 62) for n in shape):
        raise CheckpointError(f"{path}: {where}dtype {dtype[:40]!r} or shape {str(shape)[:80]} is not valid")
    shards = []
    for shard in field(entry, "shards", list, where):
        file, begin, end = (field(shard, key, kind, where) for key, kind in (("file", str), ("begin", list), ("end", list)))
        if file not in files:
            raise CheckpointError(f"{path}: {where}file '{file[:100]}' is not in the checkpoint")
        if not len(begin) == len(end) == len(shape) or not all(
                is_count(b, n) and is_count(e, n) and b <= e for b, e, n in zip(begin, end, shape)):
            raise CheckpointError(f"{path}: {where}the box from {str(begin)[:60]} to {str(end)[:60]} is not within the shape {shape}")
        shards.append((file, tuple(zip(begin, end))))
    wrong = tiles(tuple(shape), tuple(box for _, box in shards))
    if wrong:
        raise CheckpointError(f"{path}: {where}{wrong}")
    sharding = entry.get("sharding")
    return Entry(dtype, tuple(shape), tuple(shards), sharding if isinstance(sharding, str) else None)


tiles = functools.lru_cache(maxsize=4096)(boxes.tile)  # many tensors have the same shape and sharding


def check_file_name(name: str, path: str) -> None:
    """Raise CheckpointError if `name` is not the name of a safetensors file in the checkpoint's folder."""
    if not isinstance(name, str) or not _FILE.fullmatch(name):
        raise CheckpointError(f"{path}: '{str(name)[:100]}' is not a file name such as shard.safetensors, without folders")
