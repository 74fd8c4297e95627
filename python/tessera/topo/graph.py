# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Devices, switches and processors as a graph, for the formats that describe links rather than pairs."""

from __future__ import annotations

import heapq

from .model import Path, of_table


class Graph:
    """Vertices are names. Edges have a class and a rate in each direction; edges between the same two add up."""

    def __init__(self):
        self.kinds: dict[str, str] = {}  # device, bridge, processor, switch
        self.edges: dict[str, dict[str, Path]] = {}

    def vertex(self, name: str, kind: str) -> str:
        self.kinds.setdefault(name, kind)
        self.edges.setdefault(name, {})
        return name

    def edge(self, a: str, b: str, kind: str, rate: float) -> None:
        """From a to b alone."""
        before = self.edges[a].get(b)
        self.edges[a][b] = Path(kind, rate + (before.rate if before else 0))

    def both(self, a: str, b: str, kind: str, rate: float) -> None:
        self.edge(a, b, kind, rate)
        self.edge(b, a, kind, rate)

    def pairs(self, devices: list[str]):
        """The widest path between each two devices, of equally wide ones the shortest. No path leads through a third device."""
        return of_table([[found.get(b, Path("none", 0.0)) for b in devices] for found in map(self._widest, devices)])

    def _widest(self, start: str) -> dict[str, Path]:
        best: dict[str, tuple] = {}
        queue = [(-float("inf"), 0, start, ())]
        while queue:
            rate, hops, at, trail = heapq.heappop(queue)
            if at in best:
                continue
            best[at] = (rate, trail)
            if at != start and self.kinds[at] == "device":
                continue
            for to, path in self.edges[at].items():
                if to not in best:
                    heapq.heappush(queue, (max(rate, -path.rate), hops + 1, to, (*trail, (to, path.kind))))
        return {at: Path(self._kind(trail), -rate) for at, (rate, trail) in best.items() if trail}

    def _kind(self, trail: tuple) -> str:
        """The names of nvidia-smi: NVLink; one PCIe bridge, several, through a processor, from one to another."""
        kinds = [kind for _, kind in trail]
        if "SYS" in kinds:
            return "SYS"
        if all(kind.startswith("NV") for kind in kinds):
            return kinds[0]
        over = [self.kinds[at] for at, _ in trail]
        return "PHB" if "processor" in over else "PIX" if over.count("bridge") <= 1 else "PXB"
