# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Counts the collectives of compiled HLO and their wire bytes, by the definitions of docs/report.md.

An instruction in the body of a loop with a known trip count is counted as often. Wire bytes are those that one device sends:
all-reduce 2B(n-1)/n, all-gather B(n-1)/n of the result, reduce-scatter B(n-1) of the result, all-to-all B(n-1)/n, permute B.
"""

from __future__ import annotations

import re

_BYTES = {"pred": 1, "s8": 1, "u8": 1, "s16": 2, "u16": 2, "s32": 4, "u32": 4, "s64": 8, "u64": 8, "bf16": 2, "f16": 2, "f32": 4, "f64": 8}
_KINDS = "all-reduce|all-gather|reduce-scatter|all-to-all|collective-permute|ragged-all-to-all|collective-broadcast"
_SHAPE = re.compile(r"\b(" + "|".join(_BYTES) + r")\[([\d,]*)\]")
_INSTRUCTION = re.compile(r"\s+(?:ROOT )?%?[\w.\-]+ = (.*?) (" + _KINDS + r")(-start)?\((.*)$")


def _sizes(text: str) -> list[int]:
    """Bytes of each array of a (tuple) shape."""
    result = []
    for kind, dims in _SHAPE.findall(text):
        size = _BYTES[kind]
        for n in filter(None, dims.split(",")):
            size *= int(n)
        result.append(size)
    return result


def _group(attributes: str, devices: int) -> int:
    found = re.search(r"replica_groups=\[([\d,]+)\]<=", attributes)
    if found:
        return int(found[1].split(",")[-1])
    found = re.search(r"replica_groups=\{\{([\d,]*)\}", attributes)
    if found and found[1]:
        return len(found[1].split(","))
    found = re.search(r"replica_groups=mesh\[(.*?)\].*?\{(.*?)\}", attributes)
    if found:
        sizes = dict(re.findall(r"'?(\w+)'?=(\d+)", found[1]))
        n = 1
        for axis in re.findall(r"\w+", found[2]):
            n *= int(sizes.get(axis, 1))
        return n
    return devices


def _wire(kind: str, bytes: int, n: int, attributes: str) -> float:
    if kind == "all-reduce":
        return 2 * bytes * (n - 1) / n
    if kind in ("all-gather", "all-to-all", "ragged-all-to-all"):
        return bytes * (n - 1) / n
    if kind == "reduce-scatter":
        return bytes * (n - 1)
    pairs = re.search(r"source_target_pairs=\{(.*?)\}\}", attributes)
    if pairs and all(a == b for a, b in re.findall(r"\{?(\d+),(\d+)", pairs[1])):
        return 0
    return bytes


def _computations(text: str):
    """Lines by computation, and the entry's name."""
    bodies, name, entry = {}, None, None
    for line in text.splitlines():
        head = re.match(r"^(ENTRY )?%?([\w.\-]+) \(?.*\{\s*$", line)
        if head and "->" in line and " = " not in line:
            name = head[2]
            bodies[name] = []
            entry = name if head[1] else entry
        elif line.startswith("}"):
            name = None
        elif name is not None and "=" in line:
            bodies[name].append(line)
    return bodies, entry


def _trips(bodies, entry):
    """How often each computation runs."""
    trips, todo = {entry: 1}, [entry]
    while todo:
        name = todo.pop()
        for line in bodies.get(name, []):
            times = 1
            if " while(" in line:
                known = re.search(r'known_trip_count["\\: {]+n["\\: ]+(\d+)', line)
                times = int(known[1]) if known else 1
            for callee in re.findall(r"(?:body|condition|calls|to_apply|branch_computations)=\{?%?([\w.\-]+)", line):
                if callee in bodies:
                    trips[callee] = trips.get(callee, 0) + trips[name] * times
                    todo.append(callee)
    return trips


def collectives(text: str, devices: int) -> dict:
    """count and wire_bytes per device and execution."""
    bodies, entry = _computations(text)
    trips = _trips(bodies, entry)
    count, wire = 0, 0.0
    for name, lines in bodies.items():
        for line in lines:
            found = _INSTRUCTION.match(line)
            if not found:
                continue
            shape, kind, start, rest = found.groups()
            parts = _sizes(shape)
            if start and kind in ("all-gather", "collective-permute"):  # (operands, results)
                parts = parts[len(parts) // 2:]
            times = trips.get(name, 1)
            count += times
            wire += times * _wire(kind, sum(parts), _group(rest, devices), rest)
    return dict(count=count, wire_bytes=wire)
