# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A JSON parser that records the position of each value."""

from __future__ import annotations

import dataclasses
import json
import re

from .model import TopologyFileError

_SPACE = re.compile(r"[ \t\n\r]*")
_NUMBER = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?([eE][-+]?\d+)?")
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_MOST_DEPTH = 100


@dataclasses.dataclass
class Value:
    """A value and its offset in the text. The `value` of an object is a dict of Values, of a list a list of Values."""

    value: object
    at: int

    @property
    def plain(self):
        """The value without positions, as json.loads returns it."""
        if isinstance(self.value, dict):
            return {name: each.plain for name, each in self.value.items()}
        return [each.plain for each in self.value] if isinstance(self.value, list) else self.value


class Text:
    """A JSON text from file `path`."""

    def __init__(self, text: str, path: str):
        self.text, self.path = text, path

    def fail(self, at: int, message: str):
        """Raise TopologyFileError at an offset."""
        before = self.text[:at]
        raise TopologyFileError(self.path, before.count("\n") + 1, at - before.rfind("\n"), message)

    def parse(self) -> Value:
        """The value of the whole text. Raises TopologyFileError."""
        value, at = self._value(self._skip(0), 0)
        if self._skip(at) != len(self.text):
            self.fail(self._skip(at), "not JSON: text follows the value")
        return value

    def _skip(self, at: int) -> int:
        return _SPACE.match(self.text, at).end()

    def _value(self, at: int, depth: int) -> tuple[Value, int]:
        first = self.text[at:at + 1]
        if depth > _MOST_DEPTH:
            self.fail(at, f"values are nested more than {_MOST_DEPTH} deep")
        if first == "{":
            return self._members(at, depth)
        if first == "[":
            return self._items(at, depth)
        if first == '"':
            text, end = self._string(at)
            return Value(text, at), end
        for word, meant in (("true", True), ("false", False), ("null", None)):
            if self.text.startswith(word, at):
                return Value(meant, at), at + len(word)
        if match := _NUMBER.match(self.text, at):
            number = json.loads(match[0])
            if isinstance(number, float) and abs(number) == float("inf"):
                self.fail(at, f"the number {match[0]} is too large")
            return Value(number, at), match.end()
        self.fail(at, f"not JSON: expected a value, got {'the end' if not first else repr(first)}")

    def _string(self, at: int) -> tuple[str, int]:
        match = _STRING.match(self.text, at)
        if not match:
            self.fail(at, "not JSON: a string that does not end on its line" if self.text[at:at + 1] == '"'
                      else f"not JSON: expected a name in quotes, got {self.text[at:at + 1]!r}")
        try:
            return json.loads(match[0]), match.end()
        except ValueError:
            self.fail(at, "not JSON: an invalid escape in a string")

    def _after(self, at: int, end: str) -> tuple[bool, int]:
        """Skip a comma, or the closing `end`. Returns whether it was a comma, and the offset after it."""
        at = self._skip(at)
        found = self.text[at:at + 1]
        if found not in (",", end) or not found:
            self.fail(at, f"not JSON: expected ',' or '{end}', got {repr(found) if found else 'the end'}")
        return found == ",", self._skip(at + 1) if found == "," else at + 1

    def _items(self, at: int, depth: int) -> tuple[Value, int]:
        result, begin, at = [], at, self._skip(at + 1)
        more = self.text[at:at + 1] != "]"
        at += not more
        while more:
            value, at = self._value(at, depth + 1)
            result.append(value)
            more, at = self._after(at, "]")
        return Value(result, begin), at

    def _members(self, at: int, depth: int) -> tuple[Value, int]:
        result: dict[str, Value] = {}
        begin, at = at, self._skip(at + 1)
        more = self.text[at:at + 1] != "}"
        at += not more
        while more:
            name_at = at
            name, at = self._string(at)
            if name in result:
                self.fail(name_at, f"field '{name}' is given twice")
            at = self._skip(at)
            if self.text[at:at + 1] != ":":
                self.fail(at, f"not JSON: expected ':' behind \"{name}\"")
            value, at = self._value(self._skip(at + 1), depth + 1)
            result[name] = value
            more, at = self._after(at, "}")
        return Value(result, begin), at
