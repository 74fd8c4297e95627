# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""NCCL's XML topology, as NCCL_TOPO_DUMP_FILE writes and NCCL_TOPO_FILE reads it."""

from __future__ import annotations

import os

from . import rates
from .graph import Graph
from .model import Device, Machine, Numa
from .xml_text import Element

_SWITCH, _PROCESSOR = "0x0680", "0x068001"  # tclass of an NVLink's target: NVSwitch, POWER processor


class _Reader:
    def __init__(self, root: Element):
        self.root, self.graph = root, Graph()
        self.gpus: dict[str, Element] = {}  # by vertex
        self.devices: dict[str, Device] = {}
        self.numa: list[Numa] = []
        self.adapters: list[str] = []
        self.assumed = False

    def read(self) -> Machine:
        if self.root.get("version", "1") != "1":
            self.root.fail(f"version of <system> is '{self.root.get('version')}'; expected version 1")
        processors = [each for each in self.root.children if each.tag == "cpu"]
        for number, each in enumerate(processors):
            self.processor(each, number)
        for each in self.root.children:
            if each.tag in ("gpu", "pci", "nic"):
                each.fail(f"<{each.tag}> is outside <cpu>; each device must be inside its processor")
        architectures = {each.get("arch").split("_")[0]: each for each in processors}
        vendor = {"GenuineIntel": "intel", "AuthenticAMD": "amd"}.get(processors[0].get("vendor") if processors else "", next(iter(architectures), ""))
        between = rates.INTER_CPU.get(vendor, rates.UNKNOWN_INTER_CPU)
        names = [f"cpu {number}" for number in range(len(processors))]
        for a in names:
            for b in names:
                if a != b:
                    self.graph.edge(a, b, "SYS", between)
        for vertex, gpu in self.gpus.items():
            self.nvlinks(vertex, gpu)
        order = sorted(self.gpus, key=lambda vertex: self.gpus[vertex].number("dev", default=0))
        notes = [f"between processors: {between / 1e9:g} GB/s (assumed; the file does not give it)"] if len(names) > 1 else []
        if self.assumed:
            notes.append(f"PCIe links whose speed the file does not give: {rates.PCI / 1e9:g} GB/s (assumed)")
        return Machine(os.path.basename(self.root.path), "NCCL's XML", [self.devices[each] for each in order], self.graph.pairs(order), self.numa, self.adapters, notes)

    def processor(self, of: Element, number: int) -> None:
        numa = of.number("numaid", least=-1, default=number)
        cores = sum(bin(int(part, 16)).count("1") for part in of.get("affinity").split(",") if part and set(part.lower()) <= set("0123456789abcdef"))
        self.numa.append(Numa(numa, cores or None))
        here = self.graph.vertex(f"cpu {number}", "processor")
        for child in of.children:
            self.below(child, here, numa)

    def below(self, of: Element, parent: str, numa: int) -> None:
        if of.tag == "pci":
            bus = of.get("busid").lower()
            if not bus:
                of.fail("<pci> has no 'busid'")
            gpu = next((child for child in of.children if child.tag == "gpu"), None)
            vertex = "pci " + bus
            if vertex in self.graph.kinds:
                of.fail(f"duplicate busid '{bus}'")
            self.graph.vertex(vertex, "device" if gpu else "bridge")
            rate = rates.pci(of.get("link_speed"), of.get("link_width"))
            self.assumed |= rate is None
            self.graph.both(vertex, parent, "PCI", rate or rates.PCI)
            if gpu:
                self.device(gpu, vertex, bus, numa)
            for child in of.children:
                self.below(child, vertex, numa)
        elif of.tag == "gpu" and self.gpus.get(parent) is not of:
            vertex = self.graph.vertex(f"gpu {of.get('dev')}", "device")
            self.assumed = True
            self.graph.both(vertex, parent, "PCI", rates.PCI)
            self.device(of, vertex, f"{of.get('dev')}", numa)
        elif of.tag == "nic":
            for net in of.children:
                if net.tag == "net":
                    speed = net.number("speed", default=0)
                    self.adapters.append(f"{net.get('name', '?')}: {speed / 8000:g} GB/s, NUMA node {numa}")

    def device(self, gpu: Element, vertex: str, bus: str, numa: int) -> None:
        number = gpu.number("dev")
        if number in [each.number("dev") for each in self.gpus.values()]:
            gpu.fail(f"duplicate dev '{number}'; each <gpu> needs its own")
        self.gpus[vertex] = gpu
        self.devices[vertex] = Device(f"sm_{gpu.get('sm')}" if gpu.get("sm") else "gpu", numa, bus)

    def nvlinks(self, vertex: str, gpu: Element) -> None:
        rate = rates.nvlink(gpu.number("sm", default=0) or None)
        counts: dict[str, int] = {}
        for link in gpu.children:
            if link.tag != "nvlink":
                continue
            target, kind = link.get("target").lower(), link.get("tclass")
            if "pci " + target in self.gpus:
                to = "pci " + target
            elif kind.startswith(_SWITCH) and kind != _PROCESSOR:
                to = self.graph.vertex("NVSwitch", "switch")  # as in NCCL, all switches are one vertex
            elif kind == _PROCESSOR:
                continue
            elif f"gpu {target}" in self.gpus:
                to = f"gpu {target}"
            else:
                link.fail(f"target '{target}' of <nvlink> is not the busid of a <gpu> of this file")
            counts[to] = counts.get(to, 0) + link.number("count", least=1, default=1)
        for to, count in counts.items():
            name = f"NV{count}"
            self.graph.edge(vertex, to, name, count * rate)
            if to == "NVSwitch":
                self.graph.edge(to, vertex, name, count * rate)


def read_nccl(root: Element) -> Machine:
    """The machine in NCCL's XML. Raises TopologyFileError."""
    return _Reader(root).read()
