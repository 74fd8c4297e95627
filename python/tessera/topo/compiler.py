# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The compiler's topology files (share/topologies), with the checks and messages of TopologyFile.cpp."""

from __future__ import annotations

from .json_text import Text, Value
from .model import Device, Machine, Path

_DTYPES = ("f64", "f32", "bf16", "f16", "i64", "i32", "i16", "i8", "i1")
_ALGORITHMS = ("ring", "tree", "doubling", "hierarchical", "shared_memory")
_MOST_DEVICES = 1 << 11  # 2 million pairs


class _Reader(Text):
    def field(self, of: Value, name: str, where: str, kind: type | tuple, rule: str) -> Value:
        if name not in of.value:
            self.fail(of.at, f"field '{where}{name}' is missing; it must be {rule}")
        found = of.value[name]
        if not isinstance(found.value, kind) or isinstance(found.value, bool) and kind is not bool:
            self.fail(found.at, f"field '{where}{name}' must be {rule}")
        return found

    def number(self, of: Value, name: str, where: str, least: float, most: float) -> float:
        rule = f"a number from {least:g} to {most:g}"
        found = self.field(of, name, where, (int, float), rule)
        if not least <= found.value <= most:
            self.fail(found.at, f"field '{where}{name}' is {found.value}; it must be {rule}")
        return found.value

    def known(self, of: Value, where: str, names: tuple) -> None:
        for name, value in of.value.items():
            if name not in names:
                self.fail(value.at, f"field '{where}{name}' is not known here; there are {', '.join(names)}")

    def read(self) -> Machine:
        root = self.parse()
        if not isinstance(root.value, dict):
            self.fail(root.at, "the topology is not an object")
        self.known(root, "", ("version", "name", "source", "device", "links", "axes", "algorithms"))
        version = self.field(root, "version", "", int, "1")
        if version.value != 1:
            self.fail(version.at, f"field 'version' is {version.value}; it must be 1")
        name = self.field(root, "name", "", str, "a string").value
        kind, memory = self.device(self.field(root, "device", "", dict, "an object"))
        links = self.links(self.field(root, "links", "", list, "a list with at least one link"))
        if "axes" in root.value:
            axes = self.field(root, "axes", "", dict, "an object of mesh axis names")
            for axis in axes.value:
                link = self.field(axes, axis, "axes.", str, "the name of a link")
                if link.value not in [each[0] for each in links]:
                    self.fail(link.at, f"field 'axes.{axis}' is '{link.value}', which names no link of this file")
        if "algorithms" in root.value:
            for each in self.field(root, "algorithms", "", list, "a list of names").value:
                if each.value not in _ALGORITHMS:
                    self.fail(each.at, f"field 'algorithms' names {each.plain!r}; there are {', '.join(_ALGORITHMS)}")
        count = links[-1][1]
        if count > _MOST_DEVICES:
            self.fail(root.value["links"].at, f"the links join {count} devices; all pairs are compared, so at most {_MOST_DEVICES} are supported")
        sizes, paths = [size for _, size, _ in links], [Path(name, rate) for name, _, rate in links]

        def path(a: int, b: int) -> Path:
            """The path of the innermost link level whose groups of consecutive devices contain both."""
            return next(paths[i] for i, size in enumerate(sizes) if a // size == b // size)
        return Machine(name, "Tessera's JSON", [Device(kind, memory=memory) for _ in range(count)], path,
                       notes=[self.field(root, "source", "", str, "a string").value] if "source" in root.value else [])

    def device(self, of: Value) -> tuple[str, float]:
        self.known(of, "device.", ("kind", "flops", "memory_rate", "memory", "shares_cores"))
        kind = self.field(of, "kind", "device.", str, "a string").value
        self.number(of, "memory_rate", "device.", 1, 1e30)
        memory = self.number(of, "memory", "device.", 1, 1e30)
        if "shares_cores" in of.value:
            self.field(of, "shares_cores", "device.", bool, "true or false")
        flops = self.field(of, "flops", "device.", dict, 'an object with at least "f32"')
        if "f32" not in flops.value:
            self.fail(flops.at, "field 'device.flops' must be an object with at least \"f32\"")
        self.known(flops, "device.flops.", _DTYPES)
        for dtype in flops.value:
            self.number(flops, dtype, "device.flops.", 1, 1e30)
        return kind, memory

    def links(self, of: Value) -> list[tuple[str, int, float]]:
        if not of.value:
            self.fail(of.at, "field 'links' must be a list with at least one link")
        found: list[tuple[str, int, float]] = []
        for number, link in enumerate(of.value):
            where = f"links[{number}]."
            if not isinstance(link.value, dict):
                self.fail(link.at, f"field 'links[{number}]' must be an object")
            self.known(link, where, ("name", "devices", "alpha", "rate", "copies"))
            name = self.field(link, "name", where, str, "a string")
            if name.value in [each[0] for each in found]:
                self.fail(name.at, f"field '{where}name' is that of another link: '{name.value}'")
            self.number(link, "alpha", where, 1e-15, 1e6)
            rate = self.number(link, "rate", where, 1, 1e30)
            devices = self.number(link, "devices", where, 1, 1e9)
            if devices != int(devices):
                self.fail(link.value["devices"].at, f"field '{where}devices' is {devices}; it must be a whole number")
            if found and int(devices) % found[-1][1]:
                self.fail(link.value["devices"].at,
                          f"field '{where}devices' is {int(devices)}; it must be a multiple of the link before it: {found[-1][1]}")
            found.append((name.value, int(devices), float(rate)))
        return found


def read_compiler_topology(text: str, path: str) -> Machine:
    """The machine that a topology file describes. Raises TopologyFileError."""
    return _Reader(text, path).read()
