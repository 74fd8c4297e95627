# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A graph of devices, switches and processors, for formats that describe links instead of pairs of devices."""

from __future__ import annotations

import heapq

from .model import Path, path_function


class Graph:
    """A directed graph. Vertices are names; edges have a class and a rate. Rates of parallel edges add up."""

    def __init__(self):
        self.kinds: dict[str, str] = {}  # device, bridge, processor, switch
        self.edges: dict[str, dict[str, Path]] = {}

    def vertex(self, name: str, kind: str) -> str:
        """Adds a vertex unless it exists; returns its name."""
        self.kinds.setdefault(name, kind)
        self.edges.setdefault(name, {})
        return name

    def edge(self, a: str, b: str, kind: str, rate: float) -> None:
        """Add an edge from a to b."""
        before = self.edges[a].get(b)
        self.edges[a][b] = Path(kind, rate + (before.rate if before else 0))

    def both(self, a: str, b: str, kind: str, rate: float) -> None:
        """Add edges in both directions."""
        self.edge(a, b, kind, rate)
        self.edge(b, a, kind, rate)

    def pairs(self, devices: list[str]):
        """The path function of the devices: the widest path between two devices, and of equally wide ones the shortest.

        No path leads through a third device.
        """
        return path_function([[found.get(b, Path("none", 0.0)) for b in devices] for found in map(self._widest, devices)])

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
        """The class of a path, as nvidia-smi names it.

        NV#: NVLinks; PIX: at most one PCIe bridge; PXB: several bridges; PHB: through a processor; SYS: between
        processors.
        """
        kinds = [kind for _, kind in trail]
        if "SYS" in kinds:
            return "SYS"
        if all(kind.startswith("NV") for kind in kinds):
            return kinds[0]
        over = [self.kinds[at] for at, _ in trail]
        return "PHB" if "processor" in over else "PIX" if over.count("bridge") <= 1 else "PXB"
