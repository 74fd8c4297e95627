# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Read parts of tensors from a checkpoint, or from safetensors files that other programs wrote."""

from __future__ import annotations

import math
import os

import numpy as np

from .. import dtypes
from . import boxes, manifest
from .boxes import Box
from .chunks import Reader
from .errors import CheckpointError
from .manifest import Entry, File, Manifest
from .safetensors import NAMES, Stored, parse, read_header

INDEX, SINGLE = "model.safetensors.index.json", "model.safetensors"
_BLOCK = 4 << 20  # largest temporary buffer in bytes, unless a row is larger


class Source:
    """An open checkpoint, Hugging Face folder (with an index or one file), or safetensors file.

    verify: compare checksums. Raises CheckpointError if it cannot be read.
    """

    def __init__(self, path, verify: bool = True):
        self.path, self.verifies = os.fspath(path), verify
        self._readers: dict[str, tuple[Reader, dict[str, Stored]]] = {}
        self.folder = self.path
        try:
            if os.path.isfile(self.path):
                self.folder, name = os.path.split(self.path)
                self.manifest = self._of_files({name: None})
            elif os.path.isfile(os.path.join(self.path, INDEX)) and not os.path.exists(os.path.join(self.path, manifest.NAME)):
                self.manifest = self._of_index()
            elif os.path.isfile(os.path.join(self.path, SINGLE)) and not os.path.exists(os.path.join(self.path, manifest.NAME)):
                self.manifest = self._of_files({SINGLE: None})
            else:
                self.manifest = manifest.read(self.path)
        except CheckpointError:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self) -> None:
        """Closes the files that have been opened."""
        for reader, _ in self._readers.values():
            reader.close()

    @property
    def bytes_read(self) -> int:
        """Bytes read from tensor files."""
        return sum(reader.bytes_read for reader, _ in self._readers.values())

    def entry(self, name: str) -> Entry | None:
        """The manifest's entry of a tensor, given its name or an alias. Returns None if there is none."""
        of = self.manifest
        return of.tensors.get(of.aliases.get(name, name))

    def names(self) -> list[str]:
        """The names and aliases of all tensors."""
        return [*self.manifest.tensors, *self.manifest.aliases]

    def read(self, name: str, box: Box | None = None) -> np.ndarray:
        """The values in a box of a tensor (default: all).

        Without the package ml_dtypes, bfloat16 is returned as its bits.

        Raises CheckpointError if the data is damaged.
        """
        name = self.manifest.aliases.get(name, name)
        entry = self.manifest.tensors[name]
        if entry.dtype not in NAMES:
            raise CheckpointError(f"{self.path}: tensor '{name}' has dtype {entry.dtype}, which is not supported")
        box = boxes.whole(entry.shape) if box is None else box
        kind = dtypes.dtype(entry.dtype).numpy
        for file, _ in entry.shards:  # checks all files before allocating memory
            self.open(file, name)
        out = np.empty(boxes.extents(box), kind)
        for file, of in entry.shards:
            common = boxes.intersect(box, of) if box else of
            if common is None:
                continue
            reader, stored = self.open(file, name)
            _read_box(reader, stored[name], boxes.inside(common, of), out[(*boxes.inside(common, box), ...)], f"tensor '{name}'")
        if entry.dtype == "bool" and (out.view(np.uint8) > 1).any():
            raise CheckpointError(f"{self.path}: tensor '{name}' has dtype bool, and bytes that are neither 0 nor 1")
        return out

    def open(self, file: str, name: str | None = None) -> tuple[Reader, dict[str, Stored]]:
        """Open a file and read its header. Raises CheckpointError if tensor `name` in it differs from the manifest."""
        if file not in self._readers:
            info = self.manifest.files[file] if file in self.manifest.files else File(None, None)
            try:
                reader = Reader(os.path.join(self.folder, file), info.size, info.checksums if self.verifies else None, self.manifest.chunk)
            except CheckpointError as error:
                raise CheckpointError(f"{error}; it holds tensor '{name}'") if name else error from None
            try:
                self._readers[file] = reader, read_header(reader)[0]
            except CheckpointError:
                reader.close()
                raise
        reader, stored = self._readers[file]
        if name is not None:
            entry = self.manifest.tensors[name]
            wanted = [(entry.dtype, boxes.extents(box)) for where, box in entry.shards if where == file]
            found = stored.get(name)
            if found is None or wanted != [(found.dtype, found.shape)]:
                has = f"{found.dtype} of shape {list(found.shape)}" if found else "missing"
                raise CheckpointError(f"{reader.path}: tensor '{name}' is {has}, and {wanted[0][0]} of shape {list(wanted[0][1])} by {manifest.NAME}")
        return reader, stored

    def verify(self) -> None:
        """Compare all files with their checksums and all headers with the manifest. Raises CheckpointError."""
        for file in self.manifest.files:
            reader, _ = self.open(file)
            if reader.checksums is not None:
                reader.verify("chunk")
        for name, entry in self.manifest.tensors.items():
            for file, _ in entry.shards:
                self.open(file, name)

    def _of_files(self, wanted: dict[str, list[str] | None]) -> Manifest:
        """The manifest of files without one: whole tensors. wanted: tensors by file; None for all of a file."""
        self.manifest = made = Manifest(files={name: File(None, None) for name in wanted})
        for file, names in wanted.items():
            reader, stored = self.open(file)
            for name in stored if names is None else names:
                if name not in stored:
                    raise CheckpointError(f"{reader.path}: tensor '{name}' is missing; by {INDEX} the file holds it")
                made.tensors[name] = Entry(stored[name].dtype, stored[name].shape, ((file, boxes.whole(stored[name].shape)),))
        return made

    def _of_index(self) -> Manifest:
        path = os.path.join(self.path, INDEX)
        try:
            with open(path, "rb") as file:
                index = parse(file.read(), path)
        except OSError as error:
            raise CheckpointError(f"{path}: {error.strerror}") from None
        places = index.get("weight_map") if isinstance(index, dict) else None
        if not isinstance(places, dict):
            raise CheckpointError(f"{path}: 'weight_map' is not an object of files by tensor name")
        wanted: dict[str, list[str] | None] = {}
        for name, file in places.items():
            manifest.check_file_name(file, path)
            wanted.setdefault(file, []).append(name)
        for file, names in wanted.items():
            if not os.path.isfile(os.path.join(self.path, file)):
                raise CheckpointError(f"{os.path.join(self.path, file)}: the file is missing; by {path} it holds tensor '{names[0]}'")
        return self._of_files(wanted)


def _read_box(reader: Reader, stored: Stored, place: tuple[slice, ...], out: np.ndarray, what: str) -> None:
    """Read the slices `place` of a tensor in a file into `out`, which has their shape."""
    if out.size == 0:
        return
    rank, size = len(stored.shape), out.dtype.itemsize
    strides = [math.prod(stored.shape[d + 1:]) * size for d in range(rank)]
    # spans[d]: bytes from the first to the last element of the part, within one index of the dimensions before d.
    spans = [size] * (rank + 1)
    for d in reversed(range(rank)):
        spans[d] = (out.shape[d] - 1) * strides[d] + spans[d + 1]
    least = reader.chunk if reader.checksums is not None else 1 << 16  # skipping a smaller gap saves nothing
    dense = [all(strides[j] - spans[j + 1] < least for j in range(d, rank)) for d in range(rank + 1)]

    def visit(d, at, out):
        if out.flags.c_contiguous and spans[d] == out.nbytes:
            reader.read_into(at, memoryview(out.reshape(-1).view(np.uint8)), what)
        elif dense[d] and d < rank and (strides[d] <= _BLOCK or d + 1 == rank):
            rows = max(1, _BLOCK // strides[d])
            for i in range(0, out.shape[d], rows):
                count = min(rows, out.shape[d] - i)
                data = bytearray((count - 1) * strides[d] + spans[d + 1])
                reader.read_into(at + i * strides[d], memoryview(data), what)
                out[i:i + count] = np.ndarray((count, *out.shape[1:]), out.dtype, data, 0, strides[d:])
        else:
            for i in range(out.shape[0]):
                visit(d + 1, at + i * strides[d], out[i])
    visit(0, stored.begin + sum(s.start * stride for s, stride in zip(place, strides)), out)
