# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Labels of a loss: which ones count, and what a label outside of the classes does.

A label outside raises OutOfRangeError where it is known before the program runs, as an index of `ops.take` with outside="refuse" does.
Where the program computes it, its factor is NaN, so that neither the loss nor a gradient is a plausible number.
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
    """Labels of loss `name` are in [0, classes), or `ignore`."""

    name: str
    classes: int
    ignore: int | None
    at: Location | None

    def __call__(self, labels: np.ndarray, here: bool = False) -> None:
        """`here`: the loss is run where it is called, which may be another line than where it was recorded."""
        outside = (labels < 0) | (labels >= self.classes)
        if self.ignore is not None:
            outside &= labels != self.ignore
        if outside.any():
            ignored = "" if self.ignore is None else f", or {self.ignore} (ignore_index)"
            raise refuse(OutOfRangeError, f"label {int(labels[outside].flat[0])} of '{self.name}' is out of range: there are {self.classes} classes, "
                                          f"labels are 0 to {self.classes - 1}{ignored}", None if here else self.at)


@op
def label_factors(trace, name, labels: Tensor, classes: int, ignore: int | None, dtype) -> Tensor:
    """In the shape of the labels: 1 for a class, 0 for `ignore`, NaN for any other label.

    Raises OutOfRangeError for the last ones, now or when the program is called, and DTypeError for labels that are no integers."""
    if labels.dtype.kind != "integer":
        raise refuse(DTypeError, f"labels of '{name}' are of {labels.dtype}; they are integers: convert with astype")
    trace.checked(labels, LabelCheck(name, classes, ignore, location()))
    b, element = trace.builder, dtype.element
    labels = labels.astype("int64")

    def factor(label):
        inside = b.apply("arith.andi", b.compare("sge", label, b.constant(0, label.type)), b.compare("slt", label, b.constant(classes, label.type)))
        found = b.select(inside, b.constant(1, element), b.constant(math.nan, element))
        return found if ignore is None else b.select(b.compare("eq", label, b.constant(ignore, label.type)), b.constant(0, element), found)
    return trace.tensor(b.pointwise([operand(trace, labels)], labels.shape, factor))
