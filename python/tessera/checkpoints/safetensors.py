# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The safetensors format: the length of the header (8 bytes), the header (JSON), and the tensors without gaps.

The reader does not trust its input: it checks every number against the size of the file before using it.
"""

from __future__ import annotations

import dataclasses
import json
import math

from .chunks import Reader
from .errors import CheckpointError, NotSafetensors

# Names of dtypes: ours and those of safetensors.
NAMES = {"float64": "F64", "float32": "F32", "float16": "F16", "bfloat16": "BF16", "int64": "I64", "int32": "I32", "int16": "I16",
         "int8": "I8", "uint64": "U64", "uint32": "U32", "uint16": "U16", "uint8": "U8", "bool": "BOOL"}
TYPES = {name: dtype for dtype, name in NAMES.items()}
SIZES = {name: {"64": 8, "32": 4, "16": 2}.get(name[-2:], 1) for name in TYPES}
MOST_HEADER = 100_000_000  # bytes; the limit of the safetensors package
MOST_DIMENSIONS = 64


@dataclasses.dataclass(frozen=True)
class Stored:
    """A tensor in a file, row-major in bytes `begin` to `end`.

    `dtype` is our name, or the file's if it is unknown to us.
    """

    dtype: str
    shape: tuple[int, ...]
    begin: int
    end: int


def header(tensors: dict[str, tuple[str, tuple[int, ...]]], metadata: dict[str, str] | None = None) -> bytes:
    """The bytes of a file before the data of `tensors`, (dtype, shape) by name in file order; padded to 8 bytes.

    Raises CheckpointError if a name is reserved or the header is too long.
    """
    entries, at = {}, 0
    if metadata:
        entries["__metadata__"] = dict(metadata)
    for name, (dtype, shape) in tensors.items():
        if name == "__metadata__":
            raise CheckpointError("a tensor is called '__metadata__', a name that the format safetensors reserves; rename it")
        kind = NAMES[dtype]
        size = math.prod(shape) * SIZES[kind]
        entries[name] = {"dtype": kind, "shape": list(shape), "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(entries, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    if len(text) > MOST_HEADER:
        raise CheckpointError(f"the header of a file would have {len(text)} bytes, more than {MOST_HEADER}; use fewer tensors per file")
    return len(text).to_bytes(8, "little") + text


def parse(text: bytes | bytearray, where: str):
    """Parse UTF-8 JSON. Raises CheckpointError, naming `where`, for invalid JSON, duplicate names and NaN."""
    def pairs(found):
        result = dict(found)
        if len(result) != len(found):
            names = [name for name, _ in found]
            raise ValueError(f"duplicate name {next(name for name in names if names.count(name) > 1)!r}")
        return result

    def constant(name):
        raise ValueError(f"{name} is not valid JSON")
    try:
        return json.loads(text.decode("utf-8"), object_pairs_hook=pairs, parse_constant=constant)
    except (ValueError, RecursionError) as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else " ".join(str(error).split())[:200]
        raise CheckpointError(f"{where}: invalid JSON: {reason}") from None


def is_count(value, most: int) -> bool:
    """Whether a value of a JSON header is an integer in [0, most]; booleans are not."""
    return type(value) is int and 0 <= value <= most


def read_header(reader: Reader) -> tuple[dict[str, Stored], dict[str, str]]:
    """The tensors of a file and its metadata.

    Raises CheckpointError if the header is invalid, or the tensors do not fill the file without gaps.
    """
    path = reader.path
    if reader.size < 8:
        raise NotSafetensors(f"{path}: not a safetensors file: it has {reader.size} bytes, and the length of the header alone has 8")
    first = bytearray(8)
    reader.read_into(0, memoryview(first), "header")
    if first.startswith((b"PK\x03\x04", b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05")):
        raise CheckpointError(f"{path}: the file is pickled, as torch.save writes it, and reading it could execute code; convert it to safetensors: "
                              "safetensors.torch.save_file(torch.load(...), ...)")
    length = int.from_bytes(first, "little")
    if length > min(MOST_HEADER, reader.size - 8):
        raise NotSafetensors(f"{path}: not a safetensors file, or truncated: by its first 8 bytes the header has {length} bytes (at most "
                             f"{MOST_HEADER}), and the file has {reader.size}")
    text = bytearray(length)
    reader.read_into(8, memoryview(text), "header")
    found = parse(text, f"{path}: header")
    if not isinstance(found, dict):
        raise CheckpointError(f"{path}: the header is not a JSON object")
    metadata = found.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise CheckpointError(f"{path}: '__metadata__' of the header is not an object of strings")
    base, data = 8 + length, reader.size - 8 - length
    tensors = {name: _entry(f"{path}: tensor '{name}'", entry, base, data) for name, entry in found.items()}
    at = base
    for name, stored in sorted(tensors.items(), key=lambda item: (item[1].begin, item[1].end)):
        if stored.begin != at:
            raise CheckpointError(f"{path}: tensor '{name}' begins at byte {stored.begin}, and the data before it ends at {at}; tensors must be "
                                  "contiguous")
        at = stored.end
    if at != reader.size:
        raise CheckpointError(f"{path}: the tensors end at byte {at} of {reader.size}; the file is damaged")
    return tensors, metadata


def _entry(where: str, entry, base: int, data: int) -> Stored:
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        raise CheckpointError(f"{where}: expected an entry of dtype, shape and data_offsets")
    kind, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(kind, str) or not 0 < len(kind) <= 16:
        raise CheckpointError(f"{where}: dtype {str(kind)[:40]!r} is not a name")
    if not isinstance(shape, list) or len(shape) > MOST_DIMENSIONS or not all(is_count(n, 1 << 62) for n in shape):
        raise CheckpointError(f"{where}: shape {str(shape)[:80]} is not a list of extents")
    if not isinstance(offsets, list) or len(offsets) != 2 or not all(is_count(n, data) for n in offsets) or offsets[0] > offsets[1]:
        raise CheckpointError(f"{where}: data_offsets {str(offsets)[:80]} are not within the {data} bytes of data")
    if kind in SIZES and math.prod(shape) * SIZES[kind] != offsets[1] - offsets[0]:
        raise CheckpointError(f"{where}: {kind} of shape {shape} has {str(math.prod(shape) * SIZES[kind])[:40]} bytes, and data_offsets "
                              f"{offsets} span {offsets[1] - offsets[0]}")
    return Stored(TYPES.get(kind, kind), tuple(shape), base + offsets[0], base + offsets[1])
