# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The topology of this machine from /sys, if neither nvidia-smi nor lstopo is installed."""

from __future__ import annotations

import os
import re

from . import rates
from .graph import Graph
from .model import Device, Machine, Numa

_VENDORS = {"0x10de": "NVIDIA GPU", "0x1002": "AMD GPU"}
_BUS = re.compile(r"[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")


def _text(*path: str) -> str:
    try:
        with open(os.path.join(*path), encoding="ascii", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return ""


def read_linux(root: str = "/sys") -> Machine:
    """The GPUs of NVIDIA and AMD (PCIe class 03), their bridges, and NUMA nodes."""
    graph, devices, assumed = Graph(), {}, False
    numa = []
    folder = os.path.join(root, "devices/system/node")
    for name in sorted(os.listdir(folder) if os.path.isdir(folder) else [], key=lambda each: int(each[4:]) if each[4:].isdigit() else -1):
        if re.fullmatch(r"node\d+", name):
            found = re.search(r"MemTotal:\s+(\d+) kB", _text(folder, name, "meminfo"))
            cores = sum(int(part.split("-")[-1]) - int(part.split("-")[0]) + 1 for part in _text(folder, name, "cpulist").split(",") if part)
            numa.append(Numa(int(name[4:]), cores or None, int(found[1]) * 1024 if found else None))
    numa = numa or [Numa(0, os.cpu_count())]
    for a in numa:
        graph.vertex(f"numa {a.number}", "processor")
        for b in numa:
            if a is not b:
                graph.vertex(f"numa {b.number}", "processor")
                graph.edge(f"numa {a.number}", f"numa {b.number}", "SYS", rates.UNKNOWN_INTER_CPU)
    folder = os.path.join(root, "bus/pci/devices")
    for bus in sorted(os.listdir(folder) if os.path.isdir(folder) else []):
        here = os.path.realpath(os.path.join(folder, bus))
        vendor = _text(here, "vendor")
        if not _text(here, "class").startswith("0x03") or vendor not in _VENDORS:
            continue
        node = _text(here, "numa_node")
        node = int(node) if node.isdigit() and any(each.number == int(node) for each in numa) else numa[0].number
        parent = f"numa {node}"
        trail = [part for part in here.split(os.sep) if _BUS.fullmatch(part)]
        for at, part in enumerate(trail):
            vertex = "pci " + part
            if vertex not in graph.kinds:
                device = os.sep.join(here.split(os.sep)[:here.split(os.sep).index(part) + 1])
                rate = rates.pci(_text(device, "max_link_speed"), _text(device, "max_link_width"))
                assumed |= rate is None
                graph.vertex(vertex, "device" if at == len(trail) - 1 else "bridge")
                graph.both(vertex, parent, "PCI", rate or rates.PCI)
            parent = vertex
        devices[parent] = Device(_VENDORS[vendor], node, bus)
    notes = ["read from /sys, which does not show NVLinks"] if devices else []
    if assumed:
        notes.append(f"PCIe links whose speed /sys does not give: {rates.PCI / 1e9:g} GB/s (assumed)")
    return Machine(os.uname().nodename, "/sys", list(devices.values()), graph.pairs(list(devices)), numa, [], notes)
