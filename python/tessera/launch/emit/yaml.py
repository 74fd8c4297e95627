# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A YAML writer for JSON values."""

from __future__ import annotations

import json
import re

_WORDS = {"true", "false", "null", "yes", "no", "on", "off", "y", "n"}


def _scalar(value) -> str:
    if isinstance(value, str) and re.fullmatch(r"[A-Za-z/][A-Za-z0-9./_-]*", value) and value.lower() not in _WORDS:
        return value
    return json.dumps(value)


def text(value, indent: int = 0) -> str:
    """`value` as YAML in block style. Dictionaries keep their order; strings are quoted unless they are plain words."""
    pad, lines = "  " * indent, []
    if isinstance(value, dict):
        for key, each in value.items():
            if isinstance(each, (dict, list)) and each:
                lines.append(f"{pad}{_scalar(key)}:\n{text(each, indent + (isinstance(each, dict)))}")
            else:
                lines.append(f"{pad}{_scalar(key)}: {_scalar(each)}\n")
    else:
        for each in value:
            if isinstance(each, (dict, list)) and each:
                lines.append(f"{pad}- {text(each, indent + 1).lstrip()}")
            else:
                lines.append(f"{pad}- {_scalar(each)}\n")
    return "".join(lines)
