# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The number of cores that this process may use: its affinity, limited by the quotas of its control groups."""

from __future__ import annotations

import os


def _read(*path: str) -> str:
    try:
        with open(os.path.join(*path), encoding="utf-8") as file:
            return file.read().strip()
    except OSError:
        return ""


def _upward(root: str, group: str):
    """The folders of a control group and of its ancestors, up to the root of the hierarchy."""
    parts = [part for part in group.split("/") if part and part != ".."]
    for count in range(len(parts), -1, -1):
        yield os.path.join(root, *parts[:count])


def quota(root: str = "/sys/fs/cgroup", groups: str = "/proc/self/cgroup") -> float | None:
    """The CPU quota of the control groups (version 2 or 1), in CPUs. Returns None if there is no limit."""
    limits = []
    for line in _read(groups).splitlines():
        _, controllers, group = line.split(":", 2)
        if not controllers:
            for folder in _upward(root, group):
                amount, _, period = _read(folder, "cpu.max").partition(" ")
                if amount.isdigit() and period.isdigit():
                    limits.append(int(amount) / int(period))
        elif "cpu" in controllers.split(","):
            for name in (controllers, "cpu"):
                for folder in _upward(os.path.join(root, name), group):
                    amount, period = _read(folder, "cpu.cfs_quota_us"), _read(folder, "cpu.cfs_period_us")
                    if amount.isdigit() and period.isdigit() and int(period):
                        limits.append(int(amount) / int(period))
    return min(limits, default=None)


def cores() -> int:
    """The number of cores that this process may use, at least 1."""
    count = len(os.sched_getaffinity(0))
    granted = quota()
    return max(1, count if granted is None else min(count, int(granted)))
