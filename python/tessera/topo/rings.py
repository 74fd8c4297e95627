# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The best ring of devices, and the best set of them.

The speed of a ring is its *bottleneck*, the smallest rate between neighbors. Up to EXACT devices, all rings are
compared (dynamic programming over subsets, Held and Karp 1962), so the result is optimal; among rings of equal
bottleneck, the one with the largest sum of rates is chosen. For more devices, the bottleneck has a bound: a graph with
a Hamiltonian cycle has no cut vertex, so no ring exceeds the largest rate t at which the links of rate t or more form a
biconnected graph. A search by rotations (Pósa 1976) tries levels from that bound downwards; a ring that meets the bound
is optimal.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Sequence

from ..errors import Error

EXACT = 10  # largest number of devices for which all rings are compared
Rate = Callable[[int, int], float]


@dataclasses.dataclass(frozen=True)
class Choice:
    """A ring: devices in order; the last is followed by the first.

    bottleneck: bytes per second, infinite for one device. bound: upper bound on the bottleneck of any ring. how: why
    the bound holds.
    """

    order: tuple[int, ...]
    bottleneck: float
    bound: float
    how: str

    @property
    def is_optimal(self) -> bool:
        """Whether the ring reaches the upper bound of all rings."""
        return self.bottleneck >= self.bound


def bottleneck(order: Sequence[int], rate: Rate) -> float:
    """The smallest rate between neighbors of a ring, in bytes per second; infinite for one device."""
    return min((rate(a, b) for a, b in zip(order, [*order[1:], order[0]]) if a != b), default=float("inf"))


def best_ring(devices: Sequence[int], rate: Rate) -> Choice:
    """The best ring of `devices`. rate(a, b): bytes per second. Raises Error if the links form no ring."""
    devices = list(devices)
    n = len(devices)
    if n == 0:
        raise Error("there are no devices, so there is no ring")
    if n <= 2:
        return _require_ring(Choice(tuple(devices), bottleneck(devices, rate), bottleneck(devices, rate), "there is one ring"))
    table = [[rate(a, b) if a != b else 0.0 for b in devices] for a in devices]
    levels = sorted({value for row in table for value in row if value > 0}, reverse=True)
    if n <= EXACT:
        level, order = _first(levels, lambda level: _heaviest(table, level))
        how = f"all rings of {n} devices were compared"
        return _require_ring(Choice(tuple(devices[i] for i in order or ()), level, level, how))
    bound, _ = _first(levels, lambda level: _is_biconnected(_neighbours(table, level)))
    for level in levels[levels.index(bound):] if bound else ():
        if order := _cycle(_neighbours(table, level)):
            found = tuple(devices[i] for i in order)
            return Choice(found, bottleneck(found, rate), bound, "faster links alone form no biconnected graph")
    return _require_ring(Choice((), 0.0, bound, ""))


def _require_ring(found: Choice) -> Choice:
    if not found.order or found.bottleneck <= 0:
        raise Error("the links form no ring of these devices: a single device or link connects two parts")
    return found


def _first(levels: list[float], holds: Callable):
    """The largest level for which the monotone `holds` returns a result, and the result; else (0, None)."""
    low, high, found = 0, len(levels), None
    while low < high:
        middle = (low + high) // 2
        if result := holds(levels[middle]):
            high, found = middle, result
        else:
            low = middle + 1
    return (levels[low], found) if found is not None else (0.0, None)


def _heaviest(table: list[list[float]], level: float) -> list[int] | None:
    """The ring over links of rate `level` or more with the largest sum of rates; of equals, the first in order."""
    n = len(table)
    best: dict[tuple[int, int], tuple[float, list[int]]] = {(1, 0): (0.0, [0])}
    for _ in range(n - 1):
        longer: dict[tuple[int, int], tuple[float, list[int]]] = {}
        for (used, last), (total, trail) in best.items():
            for to in range(1, n):
                if not used >> to & 1 and table[last][to] >= level:
                    key, candidate = (used | 1 << to, to), (total + table[last][to], [*trail, to])
                    if key not in longer or (-candidate[0], candidate[1]) < (-longer[key][0], longer[key][1]):
                        longer[key] = candidate
        best = longer
    closed = [(-(total + table[last][0]), trail) for (_, last), (total, trail) in best.items() if table[last][0] >= level]
    return min(closed)[1] if closed else None


def _neighbours(table: list[list[float]], level: float) -> list[list[int]]:
    """The neighbors of each vertex over links of rate `level` or more: by descending rate, then by number."""
    return [sorted((j for j, value in enumerate(row) if value >= level), key=lambda j: (-row[j], j)) for row in table]


def _blocks(neighbours: list[list[int]]) -> list[list[int]]:
    """The biconnected components of more than two vertices (Hopcroft and Tarjan 1973)."""
    depth, low, found = [-1] * len(neighbours), [0] * len(neighbours), []
    for root in range(len(neighbours)):
        if depth[root] >= 0:
            continue
        depth[root] = 0
        stack, trail = [(root, iter(neighbours[root]))], [root]
        while stack:
            at, rest = stack[-1]
            for to in rest:
                if depth[to] < 0:
                    depth[to] = low[to] = depth[at] + 1
                    stack.append((to, iter(neighbours[to])))
                    trail.append(to)
                    break
                low[at] = min(low[at], depth[to])
            else:
                stack.pop()
                if stack:
                    parent = stack[-1][0]
                    low[parent] = min(low[parent], low[at])
                    if low[at] >= depth[parent]:
                        split = trail.index(at)
                        found.append(sorted([parent, *trail[split:]]))
                        del trail[split:]
    return [block for block in found if len(block) > 2]


def _is_biconnected(neighbours: list[list[int]]) -> bool:
    return any(len(block) == len(neighbours) for block in _blocks(neighbours))


def _cycle(neighbours: list[list[int]]) -> list[int] | None:
    """A Hamiltonian cycle: the order of numbers, else a search by rotations from several starts.

    Returns None if none is found.
    """
    n, near = len(neighbours), [set(each) for each in neighbours]
    if all((i + 1) % n in near[i] for i in range(n)):
        return list(range(n))
    for start in sorted(range(n), key=lambda i: (len(near[i]), i))[:16]:
        trail, place, turns = [start], {start: 0}, 0
        while turns < 8 * n:
            last = trail[-1]
            free = [to for to in neighbours[last] if to not in place]
            if free:
                to = min(free, key=lambda j: (sum(k not in place for k in near[j]), j))  # fewest free neighbors first
                place[to] = len(trail)
                trail.append(to)
            elif len(trail) == n and trail[0] in near[last]:
                return trail
            else:
                # A rotation: reverse the path after a neighbor of its end, which gives it another end.
                ends = sorted(neighbours[last], key=lambda j: place[j])
                at = place[ends[turns % len(ends)]] + 1
                trail[at:] = reversed(trail[at:])
                for i in range(at, len(trail)):
                    place[trail[i]] = i
                turns += 1
    return None


def best_set(count: int, rate: Rate, k: int) -> Choice:
    """The best ring of any k of the devices 0 … count - 1.

    It has the largest bottleneck, then the largest sum of rates between all k.

    Up to EXACT devices, all sets are compared. Raises Error if k is out of range or there is no ring.
    """
    if not 1 <= k <= count:
        raise Error(f"a set of {k} devices; expected 1 to {count}, the number of devices")
    if k == 1 or k == count:
        return best_ring(range(k), rate)
    if count <= EXACT or k == 2:
        best, key = None, None
        for members in itertools.combinations(range(count), k):
            limit = min(sorted((rate(a, b) for b in members if b != a), reverse=True)[min(1, k - 2)] for a in members)
            if key and limit < key[0]:
                continue
            try:
                ring = best_ring(members, rate)
            except Error:
                continue
            weight = sum(rate(a, b) for a, b in itertools.combinations(members, 2))
            if key is None or (ring.bottleneck, weight) > key:
                best, key = ring, (ring.bottleneck, weight)
        if best is None:
            raise Error(f"the links form no ring of {k} devices")
        return dataclasses.replace(best, bound=best.bottleneck, how=f"all sets of {k} of {count} devices were compared")
    table = [[rate(a, b) if a != b else 0.0 for b in range(count)] for a in range(count)]
    levels = sorted({value for row in table for value in row if value > 0}, reverse=True)
    bound, _ = _first(levels, lambda level: any(len(block) >= k for block in _blocks(_neighbours(table, level))))
    best = None
    for level in levels[levels.index(bound):] if bound else ():
        for block in _blocks(_neighbours(table, level)):
            for start in block[:8] if len(block) >= k else ():
                try:
                    ring = best_ring(_grow_set(start, block, k, table), rate)
                except Error:
                    continue
                if best is None or ring.bottleneck > best.bottleneck:
                    best = ring
        if best and best.bottleneck >= level:
            break
    if best is None:
        raise Error(f"no ring of {k} devices was found")
    return dataclasses.replace(best, bound=bound, how=f"faster links alone form no biconnected graph of {k} devices")


def _grow_set(start: int, block: list[int], k: int, table: list[list[float]]) -> list[int]:
    """k vertices of a block, greedily from `start`: each has the largest sum of rates to those before it."""
    members, weight = [start], {j: table[start][j] for j in block if j != start}
    while len(members) < k:
        to = max(weight, key=lambda j: (weight[j], -j))
        members.append(to)
        del weight[to]
        for j in weight:
            weight[j] += table[to][j]
    return sorted(members)
