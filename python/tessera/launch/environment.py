# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The environment of a rank."""

from __future__ import annotations

import os
from collections.abc import Mapping

from .. import ranks
from ..errors import Error
from .cores import cores


_DRIVER = "/proc/driver/nvidia/gpus"  # one folder per GPU, if NVIDIA's driver is loaded


def devices(text: str | None, environ: Mapping[str, str] = os.environ, driver: str = _DRIVER) -> list[str] | None:
    """The devices of --devices, as CUDA_VISIBLE_DEVICES spells them.

    Numbers index the devices that CUDA_VISIBLE_DEVICES of `environ` already shows. Returns None if `text` is None: the
    variable stays as it is. Raises Error for a device that does not exist or is named twice.
    """
    if text is None:
        return None
    if text == "cpu":
        return []
    names = text.split(",")
    shown = environ.get("CUDA_VISIBLE_DEVICES")
    shown_names = shown.split(",") if shown else []
    found = []
    for name in names:
        if not name.isdigit() and not name.startswith(("GPU-", "MIG-")):
            raise Error(f"--devices is '{text}' and '{name}' is not a device; expected numbers, as in 0,1,3, or cpu")
        if name.isdigit() and shown is not None:
            if int(name) >= len(shown_names):
                raise Error(f"--devices names {name}, and CUDA_VISIBLE_DEVICES='{shown}' shows {len(shown_names)}; devices count from 0")
            name = shown_names[int(name)]
        elif name.isdigit() and os.path.isdir(driver) and int(name) >= len(os.listdir(driver)):
            count = len(os.listdir(driver))
            raise Error(f"--devices names {name}, and this host has {count} GPU{'s' * (count != 1)}; devices count from 0")
        if name in found:
            raise Error(f"--devices is '{text}' and names '{name}' twice; each process needs a device of its own")
        found.append(name)
    return found


def inherited(environ: Mapping[str, str]) -> dict[str, str]:
    """`environ` without the variables that another launcher set for this process; its ranks get their own."""
    under_mpi = bool({"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"} & environ.keys())
    return {name: value for name, value in environ.items()
            if name not in ranks.VARIABLES or name.startswith("SLURM_")
            if not (under_mpi and name.startswith(("OMPI_", "PMIX_", "PMI_", "ORTE_", "HYDI_")))
            if not name.startswith("TORCHELASTIC_")}


def threads(count: int, environ: Mapping[str, str]) -> dict[str, str]:
    """OMP_NUM_THREADS for `count` processes on this host; empty if it is already set."""
    return {} if "OMP_NUM_THREADS" in environ else {"OMP_NUM_THREADS": str(max(1, cores() // count))}


def variables(*, rank: int, size: int, local_rank: int, local_size: int, node: int, nodes: int, address: str, port: int,
              restart: int = 0, visible: list[str] | None = None, isolate: bool = False) -> dict[str, str]:
    """The variables that the launcher sets for one rank.

    visible: the devices of the host's ranks, as CUDA_VISIBLE_DEVICES spells them; isolate: show each rank only its own.
    """
    both = {"RANK": rank, "WORLD_SIZE": size, "LOCAL_RANK": local_rank, "LOCAL_WORLD_SIZE": local_size, "MASTER_ADDR": address,
            "MASTER_PORT": port}
    found = {prefix + name: str(value) for prefix in ("", "TESSERA_") for name, value in both.items()}
    found |= {"TESSERA_SIZE": str(size), "TESSERA_NODE_RANK": str(node), "TESSERA_NODES": str(nodes),
              "TESSERA_RESTART": str(restart), "GROUP_RANK": str(node)}
    if visible is not None:
        found["CUDA_VISIBLE_DEVICES"] = visible[local_rank] if isolate and visible else ",".join(visible)
    return found
