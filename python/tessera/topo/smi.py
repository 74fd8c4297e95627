# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The matrix of `nvidia-smi topo -m`."""

from __future__ import annotations

import os
import re

from . import rates
from .model import Device, Machine, Numa, Path, TopologyFileError, path_function

_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_RATES = {"PIX": rates.PCI, "PXB": rates.PCI, "PHB": rates.PCI, "NODE": rates.PCI, "SYS": rates.UNKNOWN_INTER_CPU}
_MEANING = "X, NV1, NV2, …, " + ", ".join(_RATES)


def _cells(line: str) -> list[tuple[str, int]]:
    """The cells of a line, with their columns. nvidia-smi separates them by tabs; copied text may have spaces instead."""
    split = r"[^\t]+" if "\t" in line else r"\S+(?: (?:Affinity|NUMA ID)\S*(?: ID)?)*"
    return [(match[0].strip(), match.start() + 1 + len(match[0]) - len(match[0].lstrip())) for match in re.finditer(split, line) if match[0].strip()]


def read_smi(text: str, path: str) -> Machine:
    """The machine in the matrix, which gives classes but no rates; notes list the assumed ones.

    Raises TopologyFileError.
    """
    lines = [_COLOURS.sub("", line) for line in text.splitlines()]
    head = next((i for i, line in enumerate(lines) if re.match(r"\s*GPU0\b", line)), None)
    if head is None:
        raise TopologyFileError(path, 1, 1, "no header line GPU0, GPU1, …; expected the output of nvidia-smi topo -m")
    titles = [title for title, _ in _cells(lines[head])]
    count = next((i for i, title in enumerate(titles) if title != f"GPU{i}"), len(titles))
    matrix = [title for title in titles if re.fullmatch(r"GPU\d+|NIC\d+|mlx\w+", title)]
    rows: dict[str, tuple[int, list[tuple[str, int]]]] = {}
    for number in range(head + 1, len(lines)):
        cells = _cells(lines[number])
        if not cells or cells[0][0] not in matrix:
            break
        rows[cells[0][0]] = (number + 1, cells[1:])
    table: list[list[Path]] = []
    devices: list[Device] = []
    nodes: dict[int, Numa] = {}
    for i in range(count):
        if f"GPU{i}" not in rows:
            raise TopologyFileError(path, head + len(rows) + 2, 1, f"the row of GPU{i} is missing; the header names {count} GPUs")
        line, cells = rows[f"GPU{i}"]
        if len(cells) < len(matrix):
            raise TopologyFileError(path, line, len(lines[line - 1]) + 1, f"row GPU{i} has {len(cells)} cells; expected {len(matrix)}, one per column")
        for j, (cell, column) in enumerate(cells[:count]):
            if (cell == "X") != (i == j) or cell != "X" and cell not in _RATES and not re.fullmatch(r"NV[1-9]\d?", cell):
                raise TopologyFileError(path, line, column, f"'{cell}' between GPU{i} and GPU{j}; expected {'X' if i == j else 'one of ' + _MEANING[3:]}")
        table.append([_path(cell) for cell, _ in cells[:count]])
        where = {title: cell for title, (cell, _) in zip(titles[len(matrix):], cells[len(matrix):])}
        numa = where.get("NUMA Affinity", "")
        numa = int(numa) if numa.isdigit() else None
        if numa is not None:
            nodes.setdefault(numa, Numa(numa, _cores(where.get("CPU Affinity", ""))))
        devices.append(Device("GPU", numa))
    for i in range(count):
        for j in range(i):
            if table[i][j] != table[j][i]:
                line, cells = rows[f"GPU{i}"]
                raise TopologyFileError(path, line, cells[j][1], f"'{cells[j][0]}' between GPU{i} and GPU{j}, and '{rows[f'GPU{j}'][1][i][0]}' in row GPU{j}; the matrix must be symmetric")
    names = [match for line in lines[head:] for match in re.findall(r"^\s*(NIC\d+): (\S+)", line)]
    used = list(dict.fromkeys(each.kind for row in table for each in row if each.kind in _RATES))
    notes = [f"{kind}: {_RATES[kind] / 1e9:g} GB/s (assumed; the matrix does not give it)" for kind in _RATES if kind in used]
    if any(each.kind.startswith("NV") for row in table for each in row):
        notes.insert(0, f"NV#: {rates.nvlink(80) / 1e9:g} GB/s per link (assumed; the matrix does not give it)")
    return Machine(os.path.basename(path), "nvidia-smi topo -m", devices, path_function(table), [nodes[n] for n in sorted(nodes)], [f"{name}: {of}" for name, of in names], notes)


def _path(cell: str) -> Path:
    return Path(cell, int(cell[2:]) * rates.nvlink(80) if cell.startswith("NV") else _RATES.get(cell, rates.LOCAL))


def _cores(text: str) -> int | None:
    """The number of cores in a list such as '0-23,48-71'. Returns None if it is not a list."""
    if not re.fullmatch(r"\d+(-\d+)?(,\d+(-\d+)?)*", text):
        return None
    return sum(int(part.split("-")[-1]) - int(part.split("-")[0]) + 1 for part in text.split(","))
