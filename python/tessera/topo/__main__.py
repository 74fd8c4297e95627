# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""python -m tessera.topo show|find|view."""

from __future__ import annotations

import argparse
import json
import sys

from ..errors import Error
from . import text
from .model import Machine, TopologyFileError
from .page import page
from .reading import SOURCES, read, this_machine
from .rings import Choice, best_ring, best_set


def _machine(options) -> Machine:
    if options.file is not None:
        if options.source is not None:
            raise Error(f"--from {options.source} reads this machine, and {options.file} is a file; give one of them")
        return read(options.file)
    return this_machine(options.source or "auto")


def _empty(machine: Machine) -> int:
    print(f"{machine.name} ({machine.format}): no devices")
    return 0


def _devices(text: str, count: int) -> list[int]:
    found: list[int] = []
    for word in text.split(","):
        if not word.strip().isdigit() or int(word) >= count:
            raise Error(f"--devices has '{word}'; expected numbers from 0 to {count - 1}, as in 0,1,2")
        if int(word) in found:
            raise Error(f"--devices names {int(word)} twice")
        found.append(int(word))
    return found


def show(options) -> int:
    """Print devices, links, bandwidth classes and NUMA nodes."""
    machine = _machine(options)
    if options.json:
        classes = [{"class": path.kind, "bytes_per_second": path.rate, "pairs": pairs} for path, pairs in machine.classes().items()]
        print(json.dumps({"name": machine.name, "format": machine.format,
                          "devices": [{"number": i, "name": each.name, "numa": each.numa, "place": each.place, "memory": each.memory}
                                      for i, each in enumerate(machine.devices)],
                          "classes": classes, "adapters": machine.adapters, "notes": machine.notes,
                          "numa": [vars(each) for each in machine.numa]}, indent=1))
    else:
        print("\n".join(text.show(machine)))
    return 0


def _found(machine: Machine, options) -> Choice:
    if options.k is not None and options.devices is not None:
        raise Error("both -k and --devices select devices; give one of them")
    if options.k is not None:
        return best_set(len(machine.devices), machine.rate, options.k)
    members = range(len(machine.devices)) if options.devices is None else _devices(options.devices, len(machine.devices))
    return best_ring(members, machine.rate)


def find(options) -> int:
    """Print the best ring of all devices, of --devices, or of the best -k devices."""
    machine = _machine(options)
    if not machine.devices:
        return _empty(machine)
    found = _found(machine, options)
    if options.json:
        print(json.dumps({"ring": found.order, "bottleneck": None if len(found.order) == 1 else found.bottleneck,
                          "bound": None if len(found.order) == 1 else found.bound, "optimal": found.is_optimal, "how": found.how}))
        return 0
    if options.k is not None:
        print(f"devices: {','.join(map(str, sorted(found.order)))}")
    print("\n".join(text.ring(machine, found)))
    return 0


def view(options) -> int:
    """Write a self-contained HTML file with a drawing of devices, links and the ring."""
    machine = _machine(options)
    found = _found(machine, options) if machine.devices else None
    with open(options.output, "w", encoding="utf-8") as file:
        file.write(page(machine, found))
    print(f"{options.output}: {text.plural(len(machine.devices), 'device') if machine.devices else 'no devices'}")
    return 0


def main(arguments=None) -> int:
    parser = argparse.ArgumentParser(prog="tessera topo", description="Devices of a machine, the links between them, and the best ring.")
    commands = parser.add_subparsers(required=True, metavar="show|find|view")
    for function in (show, find, view):
        command = commands.add_parser(function.__name__, help=function.__doc__, description=function.__doc__)
        command.set_defaults(function=function)
        command.add_argument("file", nargs="?", help="hwloc's XML (lstopo --of xml), NCCL's XML, the output of nvidia-smi topo -m, or the compiler's "
                             "JSON; default: this machine")
        command.add_argument("--from", dest="source", choices=SOURCES, help="how to read this machine; default: the first that is available")
        if function is not show:
            command.add_argument("-k", type=int, help="choose the best K devices")
            command.add_argument("--devices", help="devices of the ring, as in 0,1,2; default: all")
        if function is not view:
            command.add_argument("--json", action="store_true", help="print JSON; rates are in bytes per second")
        else:
            command.add_argument("-o", "--output", required=True, help="HTML file to write")
    options = parser.parse_args(arguments)
    try:
        return options.function(options)
    except TopologyFileError as error:
        print(error, file=sys.stderr)
    except (Error, OSError) as error:
        print(f"tessera: error: {error}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
