# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The output of `topo show` and `topo find`."""

from __future__ import annotations

from .model import Machine, Path
from .rings import Choice

MOST_IN_MATRIX = 16
MOST_IN_RING = 32  # with more devices they are not printed one by one


def rate(value: float) -> str:
    """A rate in bytes per second, as text."""
    for unit, size in (("TB/s", 1e12), ("GB/s", 1e9), ("MB/s", 1e6), ("kB/s", 1e3)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value:.3g} B/s"


def size(value: float) -> str:
    """A size in bytes, as text."""
    for unit, of in (("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20)):
        if value >= of:
            return f"{value / of:.3g} {unit}"
    return f"{value:.3g} B"


def plural(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def numbers(values) -> str:
    """Numbers as ranges, for example '0-3,6'."""
    parts, values = [], sorted(values)
    for value in values:
        if parts and parts[-1][1] == value - 1:
            parts[-1][1] = value
        else:
            parts.append([value, value])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in parts)


def columns(rows: list[list[str]], margin: str = "  ") -> list[str]:
    """Lines of a table with aligned columns."""
    widths = [max(map(len, column)) for column in zip(*rows)]
    return [(margin + "  ".join(cell.ljust(width) for cell, width in zip(row, widths))).rstrip() for row in rows]


def _class(path: Path) -> str:
    return f"{path.kind} ({rate(path.rate)})" if path.rate else "no connection"


def show(machine: Machine) -> list[str]:
    """The lines that `topo show` prints."""
    count, classes = len(machine.devices), machine.classes()
    lines = [f"{machine.name} ({machine.format}): {plural(count, 'device') if count else 'no devices'}"]
    if machine.devices:
        lines += ["devices", *_devices(machine)]
    if classes:
        lines += ["bandwidth classes, per direction"]
        lines += columns([[path.kind, rate(path.rate) if path.rate else "-", plural(len(pairs), "pair")] for path, pairs in classes.items()])
    if 1 < count <= MOST_IN_MATRIX:
        table = [["", *map(str, range(count))]]
        table += [[str(a), *["X" if a == b else machine.path(a, b).kind for b in range(count)]] for a in range(count)]
        lines += ["links", *columns(table)]
    if machine.numa:
        lines.append("NUMA nodes")
        rows = []
        for node in machine.numa:
            here = [i for i, device in enumerate(machine.devices) if device.numa == node.number]
            rows.append([str(node.number), plural(node.cores, "core") if node.cores else "", size(node.memory) if node.memory else "",
                         f"device{'s' * (len(here) > 1)} {numbers(here)}" if here else "no devices"])
        lines += columns(rows)
    if machine.adapters:
        lines += ["network adapters", *["  " + each for each in machine.adapters]]
    return lines + ["note: " + note for note in machine.notes]


def _devices(machine: Machine) -> list[str]:
    """The table of devices, with consecutive equal devices in one row."""
    groups: list[tuple[tuple, list[int]]] = []
    for i, device in enumerate(machine.devices):
        key = (device.name, "" if device.numa is None else f"NUMA node {device.numa}", size(device.memory) if device.memory else "", device.place)
        if groups and groups[-1][0] == key:
            groups[-1][1].append(i)
        else:
            groups.append((key, [i]))
    return columns([[numbers(members), *key] for key, members in groups])


def _runs(order) -> str:
    """A ring with consecutive numbers abbreviated, for example `0 … 7`."""
    begins = [i for i, device in enumerate(order) if i == 0 or device != order[i - 1] + 1] + [len(order)]
    return " - ".join(f"{order[a]}" + (f" … {order[b - 1]}" if b - a > 1 else "") for a, b in zip(begins, begins[1:]))


def ring(machine: Machine, found: Choice) -> list[str]:
    """The lines that describe a ring."""
    order = " - ".join(map(str, found.order)) if len(found.order) <= MOST_IN_RING else _runs(found.order)
    if len(found.order) == 1:
        return [f"ring: {order}", "  one device: no communication"]
    order += f" - {found.order[0]}" if len(found.order) > 2 else ""
    slowest = [(a, b) for a, b in zip(found.order, [*found.order[1:], found.order[0]]) if machine.rate(a, b) == found.bottleneck]
    a, b = slowest[0]
    lines = [f"ring: {order}", f"  bottleneck {rate(found.bottleneck)}: {_class(machine.path(a, b))} between {a} and {b}"
             + (f", and {plural(len(slowest) - 1, 'more link')}" if len(slowest) > 1 and len(found.order) > 2 else "")]
    lines.append(f"  optimal: {found.how}" if found.is_optimal and "compared" in found.how or found.is_optimal and "one ring" in found.how
                 else f"  optimal: it meets the bound {rate(found.bound)}; {found.how}" if found.is_optimal
                 else f"  not proved optimal: it reaches {found.bottleneck / found.bound:.3g} of the bound {rate(found.bound)}; {found.how}")
    return lines
