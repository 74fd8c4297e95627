# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""hwloc's XML, as `lstopo --of xml` of version 2 writes it."""

from __future__ import annotations

import re

from . import rates
from .graph import Graph
from .model import Device, Machine, Numa, Path
from .xml_text import Element

_COMPUTES = re.compile(r"(cuda|nvml|rsmi|ze|opencl)\d")
_VENDORS = {"10de": "NVIDIA", "1002": "AMD", "8086": "Intel"}
_CPU_VENDORS = {"GenuineIntel": "intel", "AuthenticAMD": "amd"}


class _Reader:
    def __init__(self, root: Element):
        self.root, self.graph = root, Graph()
        self.devices: dict[str, Device] = {}
        self.objects: dict[int, str] = {}  # vertex by gp_index of a device and of the objects in it
        self.numa: list[Numa] = []
        self.adapters: list[str] = []
        self.assumed = False

    def read(self) -> Machine:
        version = self.root.get("version")
        if not version.startswith("2"):
            self.root.fail(f"version of <topology> is '{version or 'not given'}', the format of hwloc 1; use lstopo of hwloc 2")
        machine = next((each for each in self.root.children if each.tag == "object"), None)
        if machine is None or machine.get("type") != "Machine":
            (machine or self.root).fail("expected <object type=\"Machine\"> in <topology>")
        # I/O objects are below the package or group that contains their NUMA node.
        for each in machine.all():
            if each.tag == "object" and each.get("type") == "NUMANode":
                cores = bin(int(_mask(each), 16)).count("1")
                self.numa.append(Numa(each.number("os_index"), cores or None, each.number("local_memory", default=0) or None))
        if not self.numa:
            machine.fail("there is no <object type=\"NUMANode\">; hwloc 2 writes one per memory")
        for node in self.numa:
            self.graph.vertex(f"numa {node.number}", "processor")
        vendor = next((info.get("value") for info in machine.all() if info.tag == "info" and info.get("name") == "CPUVendor"), "")
        between = rates.INTER_CPU.get(_CPU_VENDORS.get(vendor, ""), rates.UNKNOWN_INTER_CPU)
        for a in self.numa:
            for b in self.numa:
                if a is not b:
                    self.graph.edge(f"numa {a.number}", f"numa {b.number}", "SYS", between)
        self.below(machine, f"numa {self.numa[0].number}", self.numa[0].number)
        self.nvlinks()
        notes = [f"between NUMA nodes: {between / 1e9:g} GB/s (assumed; hwloc does not give it)"] if len(self.numa) > 1 else []
        if self.assumed and self.devices:
            notes.append(f"PCIe links whose speed hwloc does not give: {rates.PCI / 1e9:g} GB/s (assumed)")
        host = next((info.get("value") for info in machine.all() if info.tag == "info" and info.get("name") == "HostName"), self.root.path)
        order = sorted(self.devices, key=lambda vertex: self.devices[vertex].place)
        return Machine(host, "hwloc's XML", [self.devices[each] for each in order], self.graph.pairs(order), self.numa, self.adapters, notes)

    def below(self, of: Element, parent: str, numa: int) -> None:
        """Add the objects below `of` to the graph, connected to vertex `parent`."""
        for each in of.children:
            if each.tag != "object":
                continue
            kind, here = each.get("type"), parent
            if kind in ("Package", "Group", "Die", "L3Cache"):
                nodes = _numbers(_mask(each, "nodeset"))
                if len(nodes) == 1 and f"numa {nodes[0]}" in self.graph.kinds:
                    self.below(each, f"numa {nodes[0]}", nodes[0])
                    continue
            elif kind == "Bridge" and each.get("bridge_type").startswith("1"):
                here = self.attach(each, f"bridge {each.get('gp_index')}", "bridge", parent)
            elif kind == "PCIDev":
                self.device(each, parent, numa)
                continue
            self.below(each, here, numa)

    def attach(self, of: Element, vertex: str, kind: str, parent: str) -> str:
        """Add a vertex with its PCIe link to `parent`."""
        text = of.get("pci_link_speed", "0")
        try:
            rate = float(text) * 1e9
        except ValueError:
            of.fail(f"'pci_link_speed' is '{text}'; expected a number of GB/s")
        self.assumed |= rate <= 0
        self.graph.vertex(vertex, kind)
        self.graph.both(vertex, parent, "PCI", rate if rate > 0 else rates.PCI)
        return vertex

    def device(self, of: Element, parent: str, numa: int) -> None:
        inner = [each for each in of.all() if each.tag == "object" and each.get("type") == "OSDev"]
        bus, pci_type = of.get("pci_busid").lower(), of.get("pci_type")
        match = re.match(r"([0-9a-f]{4}) \[([0-9a-f]{4}):", pci_type)
        is_accelerator = match and match[1][:2] == "03" and match[2] in _VENDORS and match[2] != "8086"
        if is_accelerator or any(_COMPUTES.match(each.get("name")) for each in inner):
            vertex = self.attach(of, f"device {bus}", "device", parent)
            infos = {info.get("name"): info.get("value") for each in [of, *inner] for info in each.children if info.tag == "info"}
            name = infos.get("GPUModel") or infos.get("PCIDevice") or (f"{_VENDORS[match[2]]} GPU" if match else "GPU")
            memory = infos.get("CUDAGlobalMemorySize")  # KiB
            self.devices[vertex] = Device(name, numa, bus, float(memory) * 1024 if memory and memory.isdigit() else None)
            for each in [of, *inner]:
                if "gp_index" in each.attributes:
                    self.objects[each.number("gp_index")] = vertex
        else:
            for each in inner:
                if each.get("osdev_type") in ("2", "3", "Network", "OpenFabrics"):
                    self.adapters.append(f"{each.get('name')}: NUMA node {numa}")

    def nvlinks(self) -> None:
        """Add the NVLinks of <distances2 name="NVLinkBandwidth">, a matrix in MB/s."""
        for each in self.root.children:
            if not each.tag.startswith("distances2") or each.get("name") != "NVLinkBandwidth":
                continue
            indexes, values = (" ".join(child.text for child in each.children if child.tag == tag).split() for tag in ("indexes", "u64values"))
            if not all(word.isdigit() for word in values) or len(values) != len(indexes) ** 2:
                each.fail(f"{len(values)} values for {len(indexes)} objects; expected one whole number per pair of objects")
            vertices = [self.objects.get(int(word.split(":")[-1])) if word.split(":")[-1].isdigit() else None for word in indexes]
            for a, source in enumerate(vertices):
                for b, target in enumerate(vertices):
                    rate = int(values[a * len(vertices) + b]) * 1e6
                    if source and target and source != target and rate > 0:
                        self.graph.edges[source][target] = Path("NVLink", rate)


def _mask(of: Element, name: str = "cpuset") -> str:
    """A bit set such as '0x00000001,0x00000003', as one hexadecimal number."""
    words = of.get(name, "0x0").split(",")
    text = "".join((word[2:] if word.startswith("0x") else word).zfill(8) for word in words)
    if not re.fullmatch(r"[0-9a-f]+", text):
        of.fail(f"'{name}' is '{of.get(name)}'; expected a bit set, 0x…")
    return text


def _numbers(mask: str) -> list[int]:
    value = int(mask, 16)
    return [bit for bit in range(value.bit_length()) if value >> bit & 1]


def read_hwloc(root: Element) -> Machine:
    """The machine in hwloc's XML. Raises TopologyFileError."""
    return _Reader(root).read()
