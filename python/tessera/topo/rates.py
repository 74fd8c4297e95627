# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rates of links, in bytes per second, that topology files name but do not measure: NCCL's values (src/graph/topo.h)."""

from __future__ import annotations

NVLINK = {60: 18.0e9, 70: 20.0e9, 80: 20.0e9, 86: 12.0e9, 90: 20.6e9, 100: 40.1e9}  # per link, by compute capability
PCI = 12.0e9  # PCIe 3.0 with 16 lanes
INTER_CPU = {"intel": 10.0e9, "amd": 16.0e9, "arm": 6.0e9, "ppc64": 32.0e9}
UNKNOWN_INTER_CPU = 10.0e9
LOCAL = 5000.0e9  # within a device; in effect unlimited
_PER_LANE = {"2.5": 0.1875e9, "5": 0.375e9, "5.0": 0.375e9, "8": 0.75e9, "8.0": 0.75e9, "16": 1.5e9, "16.0": 1.5e9, "32": 3.0e9,
             "32.0": 3.0e9, "64": 6.0e9, "64.0": 6.0e9}


def nvlink(capability: int | None) -> float:
    """The rate of one NVLink. Between two known compute capabilities, the rate of the lower one applies."""
    known = [each for each in NVLINK if capability is not None and each <= capability and each != 86]
    return NVLINK[86] if capability == 86 else NVLINK[max(known)] if known else NVLINK[80]


def pci(speed: str, width: str) -> float | None:
    """The rate of a PCIe link from Linux's speed ('16.0 GT/s PCIe') and width ('16').

    Returns None if they are unknown.
    """
    lane = _PER_LANE.get(speed.split(" ")[0])
    return lane * int(width) if lane and width.isdigit() and int(width) > 0 else None
