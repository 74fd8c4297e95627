# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Labels of losses: ignored labels, and labels out of range.

A label out of range raises OutOfRangeError if it is known before the program runs, as with outside="refuse" in
`ops.take`. If the program computes it, its factor is NaN, and so are the loss and gradients.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from ..errors import DTypeError, OutOfRangeError
from ..ir import Location
from ..source import location, refuse
from ..tensor import Tensor
from .base import op, operand


@dataclasses.dataclass(frozen=True)
class LabelCheck:
    """Checks that labels of loss `name` are in [0, classes) or equal `ignore`."""

    name: str
    classes: int
    ignore: int | None
    at: Location | None

    def __call__(self, labels: np.ndarray, here: bool = False) -> None:
        """Raises OutOfRangeError. `here`: report the current line, in place of that where the loss was recorded."""
        outside = (labels < 0) | (labels >= self.classes)
        if self.ignore is not None:
            outside &= labels != self.ignore
        if outside.any():
            ignored = "" if self.ignore is None else f", or {self.ignore} (ignore_index)"
            raise refuse(OutOfRangeError, f"label {int(labels[outside].flat[0])} of '{self.name}' is out of range: there are {self.classes} classes, "
                                          f"labels are 0 to {self.classes - 1}{ignored}", None if here else self.at)


@op
def label_factors(trace, name, labels: Tensor, classes: int, ignore: int | None, dtype) -> Tensor:
    """A tensor of the shape of the labels: 1 for a class, 0 for `ignore`, NaN for other labels.

    Raises OutOfRangeError for other labels, now or when the program is called, and DTypeError if labels are not
    integers.
    """
    if labels.dtype.kind != "integer":
        raise refuse(DTypeError, f"labels of '{name}' are {labels.dtype}, not integers; convert with astype")
    trace.checked(labels, LabelCheck(name, classes, ignore, location()))
    b, element = trace.builder, dtype.element
    labels = labels.astype("int64")

    def factor(label):
        inside = b.apply("arith.andi", b.compare("sge", label, b.constant(0, label.type)), b.compare("slt", label, b.constant(classes, label.type)))
        found = b.select(inside, b.constant(1, element), b.constant(math.nan, element))
        return found if ignore is None else b.select(b.compare("eq", label, b.constant(ignore, label.type)), b.constant(0, element), found)
    return trace.tensor(b.pointwise([operand(trace, labels)], labels.shape, factor))
