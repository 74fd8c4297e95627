# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""An XML parser that records the line and column of each element."""

from __future__ import annotations

import dataclasses
import xml.parsers.expat as expat
from collections.abc import Iterator

from .model import TopologyFileError

_MOST_DEPTH = 1000


@dataclasses.dataclass
class Element:
    """An XML element and its position in file `path`."""

    path: str
    tag: str
    attributes: dict[str, str]
    line: int
    column: int
    children: list["Element"] = dataclasses.field(default_factory=list)
    text: str = ""

    def fail(self, message: str):
        """Raise TopologyFileError at this element."""
        raise TopologyFileError(self.path, self.line, self.column, message)

    def get(self, name: str, default: str = "") -> str:
        """The value of an attribute."""
        return self.attributes.get(name, default)

    def number(self, name: str, least: int = 0, default: int | None = None) -> int:
        """An attribute that is a whole number, decimal or 0x…; required if there is no default.

        Raises TopologyFileError.
        """
        if name not in self.attributes:
            if default is None:
                self.fail(f"<{self.tag}> has no '{name}'; expected a whole number")
            return default
        text = self.attributes[name]
        try:
            value = int(text, 0)
        except ValueError:
            value = None
        if value is None or value < least:
            self.fail(f"'{name}' of <{self.tag}> is '{text}'; expected a whole number, at least {least}")
        return value

    def all(self) -> Iterator["Element"]:
        """This element and all below it, in document order."""
        yield self
        for child in self.children:
            yield from child.all()


def parse(text: str, path: str) -> Element:
    """The root element.

    Raises TopologyFileError, also for entity definitions, which could expand a small file without bound.
    """
    parser = expat.ParserCreate()
    stack: list[Element] = []
    roots: list[Element] = []

    def start(tag, attributes):
        at = Element(path, tag, attributes, parser.CurrentLineNumber, parser.CurrentColumnNumber + 1)
        if len(stack) > _MOST_DEPTH:
            at.fail(f"<{tag}> is nested more than {_MOST_DEPTH} deep")
        (stack[-1].children if stack else roots).append(at)
        stack.append(at)

    def entity(name, *_):
        raise TopologyFileError(path, parser.CurrentLineNumber, parser.CurrentColumnNumber + 1, f"entity '{name}' is defined; a topology must not define entities")

    def characters(found):
        if stack:
            stack[-1].text += found
    parser.StartElementHandler, parser.EndElementHandler = start, lambda tag: stack.pop()
    parser.CharacterDataHandler, parser.EntityDeclHandler = characters, entity
    try:
        parser.Parse(text, True)
    except expat.ExpatError as error:
        raise TopologyFileError(path, error.lineno, error.offset + 1, f"not XML: {expat.ErrorString(error.code)}") from None
    return roots[0]
