# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The manifest: which tensors a checkpoint has, which file has which part of them, and the checksums.

It is one object of JSON. Its first entry is the checksum of the whole text, computed with zeros in its own place.
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
    """Size and checksums of a file; no checksums of one that was not written by this package."""

    size: int | None
    checksums: list[int] | None


@dataclasses.dataclass(frozen=True)
class Entry:
    """A tensor: its parts as (file, box); `sharding` is how it lay, for people."""

    dtype: str
    shape: tuple[int, ...]
    shards: tuple[tuple[str, Box], ...]
    sharding: str | None = None


@dataclasses.dataclass
class Manifest:
    """`aliases` are further names of tensors (tied weights), `values` what is not a tensor in the state, `extra` the states of loader
    and random numbers and the hash of the program. A mesh appears only in the text of a tensor's sharding, which nothing parses."""

    step: int = 0
    chunk: int = 1 << 20
    files: dict[str, File] = dataclasses.field(default_factory=dict)
    tensors: dict[str, Entry] = dataclasses.field(default_factory=dict)
    aliases: dict[str, str] = dataclasses.field(default_factory=dict)
    values: dict[str, object] = dataclasses.field(default_factory=dict)
    extra: dict[str, object] = dataclasses.field(default_factory=dict)

    def parts(self) -> dict:
        """Files and tensors as JSON."""
        return {
            "files": {name: {"size": file.size, "digest": digest(file.size, file.checksums),
                             "chunks": "".join(f"{each:08x}" for each in file.checksums)} for name, file in self.files.items()},
            "tensors": {name: {"dtype": entry.dtype, "shape": list(entry.shape), "sharding": entry.sharding,
                               "shards": [{"file": file, "begin": [b for b, _ in box], "end": [e for _, e in box]} for file, box in entry.shards]}
                        for name, entry in self.tensors.items()}}

    def text(self) -> bytes:
        body = {"checksum": "0" * _DIGITS, "format": FORMAT, "version": VERSION, "step": self.step, "chunk": self.chunk, **self.parts(),
                "aliases": self.aliases, "values": self.values, "extra": self.extra}
        return _sign(json.dumps(body, indent=1, allow_nan=False).encode())


def _sign(text: bytes) -> bytes:
    return _PREFIX + hashlib.blake2b(text, digest_size=_DIGITS // 2).hexdigest().encode() + text[len(_PREFIX) + _DIGITS:]


def read(folder: str) -> Manifest:
    """The manifest of a folder, everything in it checked but the other files."""
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
        raise CheckpointError(f"{path}: the checksum is not that of the text; the manifest is damaged or was changed by hand")
    return check(parse(text, path), path)


def _refuse_other(text: bytes, path: str) -> None:
    """CheckpointError for a manifest of another format, or of a version that signs in another way; other texts are damaged."""
    try:
        body = parse(text, path)
    except CheckpointError:
        return
    if isinstance(body, dict):
        _check_format(body, path)


def _check_format(body: dict, path: str) -> None:
    if body.get("format") != FORMAT:
        raise CheckpointError(f"{path}: the format is {str(body.get('format'))[:60]!r}; expected '{FORMAT}': the folder is not a checkpoint of Tessera")
    version = body.get("version")
    if type(version) is not int or not 1 <= version <= VERSION:
        raise CheckpointError(f"{path}: format version {str(version)[:60]}; this version of Tessera reads up to {VERSION}: use a newer one")


def check(body, path: str) -> Manifest:
    """A manifest of parsed JSON; CheckpointError names the entry that is wrong."""
    def field(of, name, kind, where=""):
        value = of.get(name) if isinstance(of, dict) else None
        if type(value) is not kind:
            raise CheckpointError(f"{path}: {where}'{name}' is {str(value)[:60]!r}, not of type {kind.__name__}")
        return value
    if not isinstance(body, dict):
        raise CheckpointError(f"{path}: the manifest is not an object of JSON")
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
            raise CheckpointError(f"{path}: {where}{len(chunks) // 8} checksums of chunks of {chunk} bytes for {str(size)[:40]} bytes")
        checksums = [int(chunks[i:i + 8], 16) for i in range(0, len(chunks), 8)]
        if field(entry, "digest", str, where) != digest(size, checksums):
            raise CheckpointError(f"{path}: {where}the digest is not that of its chunks")
        files[name] = File(size, checksums)
    tensors = {name: _tensor(name, entry, files, path, field) for name, entry in field(body, "tensors", dict).items()}
    aliases = field(body, "aliases", dict)
    for name, of in aliases.items():
        if name in tensors or not isinstance(of, str) or of not in tensors:
            raise CheckpointError(f"{path}: alias '{name[:100]}' of {str(of)[:100]!r}, which is not a tensor, or is one itself")
    return Manifest(body["step"], chunk, files, tensors, aliases, field(body, "values", dict), field(body, "extra", dict))


def _tensor(name, entry, files, path, field) -> Entry:
    where = f"tensor '{name[:100]}': "
    dtype, shape = field(entry, "dtype", str, where), field(entry, "shape", list, where)
    if dtype not in NAMES or len(shape) > MOST_DIMENSIONS or not all(is_count(n, 1 << 62) for n in shape):
        raise CheckpointError(f"{path}: {where}{dtype[:40]!r} of shape {str(shape)[:80]} is no type and shape")
    shards = []
    for shard in field(entry, "shards", list, where):
        file, begin, end = (field(shard, key, kind, where) for key, kind in (("file", str), ("begin", list), ("end", list)))
        if file not in files:
            raise CheckpointError(f"{path}: {where}file '{file[:100]}' is not one of the checkpoint's")
        if not len(begin) == len(end) == len(shape) or not all(
                is_count(b, n) and is_count(e, n) and b <= e for b, e, n in zip(begin, end, shape)):
            raise CheckpointError(f"{path}: {where}the box {str(begin)[:60]} to {str(end)[:60]} is not in the shape {shape}")
        shards.append((file, tuple(zip(begin, end))))
    wrong = tiles(tuple(shape), tuple(box for _, box in shards))
    if wrong:
        raise CheckpointError(f"{path}: {where}{wrong}")
    sharding = entry.get("sharding")
    return Entry(dtype, tuple(shape), tuple(shards), sharding if isinstance(sharding, str) else None)


tiles = functools.lru_cache(maxsize=4096)(boxes.tile)  # many tensors are cut alike


def check_file_name(name: str, path: str) -> None:
    """Files lie in the folder itself: names are no paths."""
    if not isinstance(name, str) or not _FILE.fullmatch(name):
        raise CheckpointError(f"{path}: '{str(name)[:100]}' is not a name of a file in the folder, as shard.safetensors")
