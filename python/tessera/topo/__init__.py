# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`tessera topo`: the devices of a machine, the links between them, and the best ring and set of devices."""

from .compiler import read_compiler_topology
from .model import Device, Machine, Numa, Path, TopologyFileError
from .reading import read, read_text, this_machine
from .rings import Choice, best_ring, best_set

__all__ = ["Choice", "Device", "Machine", "Numa", "Path", "TopologyFileError", "best_ring", "best_set", "read", "read_compiler_topology",
           "read_text", "this_machine"]
