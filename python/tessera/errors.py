# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Exceptions of the package."""

from __future__ import annotations


class Error(Exception):
    """Base class: an invalid program or artifact, or a failed run.

    The text is one diagnostic per line: `file:line:column: error: ...`.
    """


class ShapeError(Error, ValueError):
    """Incompatible or invalid shapes."""


class DTypeError(Error, TypeError):
    """An unsupported element type, or incompatible element types of operands."""


class MeshError(Error, ValueError):
    """An invalid mesh, or operands on different meshes."""


class PlacementError(Error, ValueError):
    """Placements that are invalid for the tensor or the mesh."""


class StrategyError(Error, ValueError):
    """A strategy (cuts per dimension) that is invalid for its operation or its number of devices."""


class ArgumentError(Error, ValueError):
    """An invalid argument of a function."""


class TraceError(Error, RuntimeError):
    """A traced tensor where a value is needed, or used outside the function that it was traced in."""


class OutOfRangeError(Error, IndexError):
    """An index out of range for its axis."""


class InternalError(Error):
    """A bug in this package, not an error of the program.

    The text names the user's line and asks for a report; `__cause__` is the original exception.
    """


class TesseraWarning(UserWarning):
    """A problem that does not stop the program, such as an ignored option or an unused result."""
