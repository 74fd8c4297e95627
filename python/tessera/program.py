# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""An MLIR program: lowering, reports, compilation and execution."""

from __future__ import annotations

import json
import os
import tempfile
from typing import Any

from . import core, libraries
from .errors import ArgumentError
from .runtime import Session
from .source import entry, refuse


class Report(dict):
    """The report of docs/report.md as a dictionary; str() is the table that `tessera explain` prints."""

    def __init__(self, values: dict[str, Any], table: str):
        super().__init__(values)
        self._table = table

    def __str__(self):
        return self._table.rstrip("\n")


class Program:
    """An MLIR program.

    mlir: the text. name: the file name in diagnostics. passes: a pipeline that runs before the first phase
    ("dist-autodiff{function=loss wrt=0}"). fusion: default options of dist-fuse-collectives.

    Raises tessera.Error if the text is not a valid program. verify=False skips this check: text that crashes MLIR's
    parser then ends the process, so use it only for generated text.
    """

    def __init__(self, mlir: str, name: str = "program", verify: bool = True, passes: str = "", fusion: str = ""):
        self.mlir, self.name, self.passes, self.fusion = mlir, name, passes, fusion
        self._session = None
        if verify:
            core.check_readable(mlir, name)
            self.lower("input")

    def __str__(self):
        return self.mlir

    def _with(self, options: dict) -> dict:
        return {"name": self.name, "passes": self.passes, **({"fusion": self.fusion} if self.fusion else {}), **options}

    # Options of lower, explain and compile: fusion (options of dist-fuse-collectives), objective ("time", "bytes"), topology (a file),
    # search (a mode); options of a search: minimize ("time", "memory"), memory_budget (GiB), time_limit (seconds), devices (number, for a
    # program without a mesh); overlap (compute during collectives; default only on GPUs), narrow_reductions (send terms of 16-bit sums in 16 bits),
    # attention_sequence (keys of a cut sequence: "gather", "ring", "auto").

    @entry
    def lower(self, to: str, **options) -> str:
        """The program as MLIR text after a phase: normalized, propagated, resharded, ..., scheduled
        (docs/architecture.md).
        """
        return core.call("lower", self.mlir, to, **self._with(options))

    @entry
    def explain(self, **options) -> Report:
        """The report of docs/report.md: shardings, collectives with bytes and reasons, counts, and memory per device.
        """
        report, table = core.call("explain", self.mlir, **self._with(options))
        return Report(json.loads(report), table)

    @entry
    def compile(self, path: str | None = None, **options) -> bytes:
        """The artifact, for `tessera.load` and `tessera-exec`; `path`: also writes it to this file, atomically.

        target: "cpu", "cuda" or "stub" (docs/gpu.md); arch, for cuda: an architecture or a list of them, such as
        "sm_90a", "compute_80".
        """
        if options.get("target") == "cuda":
            libraries.offer()
        artifact = core.call("compile", self.mlir, **self._with(options))
        if path is not None:
            _write(path, artifact)
        return artifact

    @entry
    def __call__(self, *values):
        """Runs one step on virtual devices. Arguments are global NumPy arrays; returns the results as a list of them.
        """
        return self._run(values)

    def _run(self, values) -> list:
        if self._session is None:
            self._session = Session(self.compile())
        return self._session.run(values)


def _write(path, data):
    folder = os.path.dirname(os.path.abspath(path))
    if os.path.isdir(path):
        raise refuse(ArgumentError, f"path '{path}' is a folder; give a file")
    try:
        handle, temporary = tempfile.mkstemp(dir=folder)
    except OSError as error:
        raise refuse(ArgumentError, f"path '{path}': no file can be written to folder '{folder}': {error.strerror}") from None
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
