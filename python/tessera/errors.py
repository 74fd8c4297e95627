# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Exceptions of the package."""

from __future__ import annotations


class Error(Exception):
    """A program, an artifact or a run that was refused. The text is that of the diagnostics, `file:line:column: error: ...`,
    one a line."""


class ShapeError(Error, ValueError):
    """Shapes that do not fit an operation."""


class DTypeError(Error, TypeError):
    """Element types that do not fit an operation, or that no kernel has."""


class MeshError(Error, ValueError):
    """A mesh that is none, or operands on different meshes."""


class PlacementError(Error, ValueError):
    """Placements that do not fit a tensor or a mesh."""


class StrategyError(Error, ValueError):
    """A strategy (cuts a dimension) that does not fit its operation or its devices."""


class ArgumentError(Error, ValueError):
    """A value outside of what a function takes."""


class TraceError(Error, RuntimeError):
    """A traced tensor where its value is needed, or outside of the function it belongs to."""


class OutOfRangeError(Error, IndexError):
    """An index outside of the axis that it reads or writes."""


class InternalError(Error):
    """A fault of this package, not of the program. The text names the user's line and asks for a report; `__cause__` is what
    was raised."""


class TesseraWarning(UserWarning):
    """What the user should know and what stops nothing: something that is not honoured, a result that nobody uses."""
