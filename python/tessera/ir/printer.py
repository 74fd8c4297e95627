# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Prints modules as MLIR: the custom assembly of the operations in use, the generic form for others."""

from __future__ import annotations

import re

from .core import Block, Function, Location, Operation, Value
from .types import AffineMap, TensorType, written

_PRINTERS = {}


def _prints(*names):
    """Decorator: registers the printer of operations. It returns one line, or a list of lines if there are regions."""
    def register(printer):
        for name in names:
            _PRINTERS[name] = printer
        return printer
    return register


class Printer:
    """Names of values, and aliases of maps and locations."""

    def __init__(self):
        self.names: dict[Value, str] = {}
        self.taken: set[str] = set()
        self.maps: dict[str, str] = {}
        self.locations: dict[Location, str] = {}
        self.count = 0

    def name(self, value: Value) -> str:
        """The SSA name of a value, the same each time: its hint if that is free, else a number."""
        if value not in self.names:
            hint = re.sub(r"\W", "_", value.hint) if value.hint else ""
            if not hint or hint[0].isdigit() or hint in self.taken:
                hint = str(self.count)
                self.count += 1
            self.taken.add(hint)
            self.names[value] = "%" + hint
        return self.names[value]

    def list(self, values) -> str:
        return ", ".join(map(self.name, values))

    def typed(self, values) -> str:
        """`%a, %b : A, B`, the operand lists of linalg."""
        return f"{self.list(values)} : {types(values)}"

    def map(self, map: AffineMap) -> str:
        """The alias of an affine map, defined at the top of the text."""
        return self.maps.setdefault(str(map), f"#map{len(self.maps)}")

    def location(self, location: Location | None) -> str:
        """` loc(...)` with the alias of a location; empty for None."""
        if location is None:
            return ""
        return f" loc({self.locations.setdefault(location, f'#loc{len(self.locations)}')})"

    def operation(self, operation: Operation) -> list[str]:
        """The lines of an operation, with those of its regions."""
        printer = _PRINTERS.get(operation.name)
        if printer is None:
            printer = _elementwise if operation.name.split(".")[0] in ("arith", "math") else _generic
        lines = printer(self, operation)
        lines = [lines] if isinstance(lines, str) else lines
        if operation.results:
            lines[0] = f"{self.list(operation.results)} = {lines[0]}"
        lines[-1] += self.location(operation.location)
        return lines

    def block(self, block: Block, located: bool = True) -> list[str]:
        """The indented lines of a block. located: with the locations of its operations."""
        if not located:  # operations have the location of the enclosing nest
            return [re.sub(r" loc\(#loc\d+\)$", "", line) for line in self.block(block)]
        return ["  " + line for operation in block.operations for line in self.operation(operation)]


def types(values) -> str:
    """The types of values, separated by commas."""
    return ", ".join(written(v.type) for v in values)


def _dictionary(attributes: dict[str, str]) -> str:
    return "{" + ", ".join(f"{k} = {v}" for k, v in attributes.items()) + "}" if attributes else ""


def _elementwise(p: Printer, op: Operation) -> str:
    """`arith.addf %a, %b : T`.

    Casts print both types, `select` also that of the condition, comparisons their predicate.
    """
    predicate = op.attributes.get("predicate")
    text = f"{op.name} {predicate + ', ' if predicate else ''}{p.list(op.operands)}"
    if "fastmath" in op.attributes:
        text += f" fastmath<{op.attributes['fastmath']}>"
    operand, result = op.operands[-1].type, op.result.type
    if op.name == "arith.select":
        return f"{text} : {op.operands[0].type}, {result}" if isinstance(op.operands[0].type, TensorType) else f"{text} : {written(result)}"
    if predicate or operand == result or op.name == "math.isfinite":
        return f"{text} : {written(operand)}"
    return f"{text} : {written(operand)} to {written(result)}"


def _generic(p: Printer, op: Operation) -> list[str]:
    head = f'"{op.name}"({p.list(op.operands)}) '
    results = "(" + types(op.results) + ")"
    tail = f"{_dictionary(op.attributes)} : ({types(op.operands)}) -> {results}".strip()
    if not op.regions:
        return [head + tail]
    lines = [head + "({"]
    for i, region in enumerate(op.regions):
        lines += ["}, {"] if i else []
        arguments = ", ".join(f"{p.name(a)}: {written(a.type)}" for a in region.arguments)
        lines += [f"^bb0({arguments}):"] + p.block(region)
    return lines + ["}) " + tail]


@_prints("arith.constant")
def _(p, op):
    return f"arith.constant {op.attributes['value']} : {written(op.result.type)}" if op.attributes["value"] not in ("true", "false") \
        else f"arith.constant {op.attributes['value']}"


@_prints("linalg.index")
def _(p, op):
    return f"linalg.index {op.attributes['dim']} : index"


@_prints("linalg.yield", "scf.yield", "dist.yield", "ext.yield", "func.return")
def _(p, op):
    name = "return" if op.name == "func.return" else op.name
    return f"{name} {p.typed(op.operands)}" if op.operands else name


@_prints("linalg.generic")
def _(p, op):
    inputs = op.attributes["inputs"]
    maps = ", ".join(p.map(m) for m in op.attributes["maps"])
    iterators = ", ".join(f'"{i}"' for i in op.attributes["iterators"])
    ins = f" ins({p.typed(op.operands[:inputs])})" if inputs else ""
    body, = op.regions
    arguments = ", ".join(f"{p.name(a)}: {written(a.type)}" for a in body.arguments)
    results = types(op.results) if len(op.results) == 1 else f"({types(op.results)})"
    return [f"linalg.generic {{indexing_maps = [{maps}], iterator_types = [{iterators}]}}"
            f"{ins} outs({p.typed(op.operands[inputs:])}) {{",
            f"^bb0({arguments}):", *p.block(body, located=False), f"}} -> {results}"]


@_prints("ext.scan")
def _(p, op):
    body, = op.regions
    marks = "".join(f" {mark}" for mark in ("exclusive", "reverse") if op.attributes[mark])
    arguments = ", ".join(f"{p.name(a)}: {written(a.type)}" for a in body.arguments)
    identity = f" identity [{', '.join(op.attributes['identity'])}]" if op.attributes["identity"] else ""
    return [f"ext.scan dim = {op.attributes['dim']}{marks} ins({p.typed(op.operands)}){identity} {{", f"^bb0({arguments}):",
            *p.block(body, located=False), "}"]


@_prints("ext.sort")
def _(p, op):
    marks = (" descending" if op.attributes["descending"] else "") + (f" limit = {op.attributes['limit']}" if op.attributes["limit"] is not None else "")
    return f"ext.sort dim = {op.attributes['dim']} keys = {op.attributes['keys']}{marks} ins({p.typed(op.operands)})"


@_prints("linalg.contract")
def _(p, op):
    maps = ", ".join(p.map(m) for m in op.attributes["maps"])
    return (f"linalg.contract indexing_maps = [{maps}] ins({p.typed(op.operands[:2])}) "
            f"outs({p.typed(op.operands[2:])}) -> {op.result.type}")


@_prints("linalg.transpose")
def _(p, op):
    return (f"linalg.transpose ins({p.typed(op.operands[:1])}) outs({p.typed(op.operands[1:])}) "
            f"permutation = {list(op.attributes['permutation'])}")


@_prints("tensor.empty")
def _(p, op):
    return f"tensor.empty() : {op.result.type}"


@_prints("tensor.expand_shape", "tensor.collapse_shape")
def _(p, op):
    groups = "[" + ", ".join(str(list(g)) for g in op.attributes["groups"]) + "]"
    shape = f" output_shape {list(op.result.type.shape)}" if op.name == "tensor.expand_shape" else ""
    return f"{op.name} {p.name(op.operands[0])} {groups}{shape} : {op.operands[0].type} into {op.result.type}"


def _places(p, op, first: int) -> str:
    """`[offsets] [sizes] [strides]`; an offset None is the next operand, starting at operand `first`."""
    dynamic = iter(op.operands[first:])
    offsets = ", ".join(p.name(next(dynamic)) if o is None else str(o) for o in op.attributes["offsets"])
    return f"[{offsets}] {list(op.attributes['sizes'])} {list(op.attributes['strides'])}"


@_prints("tensor.extract_slice")
def _(p, op):
    return f"tensor.extract_slice {p.name(op.operands[0])}{_places(p, op, 1)} : {op.operands[0].type} to {op.result.type}"


@_prints("tensor.insert_slice")
def _(p, op):
    source, into = op.operands[:2]
    return (f"tensor.insert_slice {p.name(source)} into {p.name(into)}{_places(p, op, 2)} : "
            f"{source.type} into {into.type}")


@_prints("tensor.concat")
def _(p, op):
    return f"tensor.concat dim({op.attributes['dim']}) {p.list(op.operands)} : ({types(op.operands)}) -> {op.result.type}"


@_prints("tensor.pad")
def _(p, op):
    low, high = list(op.attributes["low"]), list(op.attributes["high"])
    arguments = ", ".join(f"%pad{i}: index" for i in range(len(low)))
    value = op.operands[1]
    return [f"tensor.pad {p.name(op.operands[0])} low{low} high{high} {{", f"^bb0({arguments}):",
            f"  tensor.yield {p.name(value)} : {written(value.type)}", f"}} : {op.operands[0].type} to {op.result.type}"]


@_prints("tensor.extract")
def _(p, op):
    return f"tensor.extract {p.name(op.operands[0])}[{p.list(op.operands[1:])}] : {op.operands[0].type}"


@_prints("tensor.from_elements")
def _(p, op):
    return f"tensor.from_elements {p.list(op.operands)} : {op.result.type}"


@_prints("dist.shard_tensor")
def _(p, op):
    return f"dist.shard_tensor {p.name(op.operands[0])}, {op.attributes['sharding']} : {op.result.type}"


@_prints("dist.reshard")
def _(p, op):
    return f"dist.reshard {p.name(op.operands[0])} to {op.attributes['sharding']} : {op.result.type}"


@_prints("dist.stop_gradient")
def _(p, op):
    return f"dist.stop_gradient {p.name(op.operands[0])} : {op.result.type}"


@_prints("dist.checkpoint")
def _(p, op):
    return ["dist.checkpoint {", *p.block(op.regions[0]), f"}} : {types(op.results)}"]


@_prints("func.call")
def _(p, op):
    results = types(op.results) if len(op.results) == 1 else f"({types(op.results)})"
    marks = {"dist.custom_vjp": f"@{op.attributes['vjp']}"} if "vjp" in op.attributes else {}
    if op.attributes.get("micro_batch") is not None:
        marks["dist.micro_batch"] = f"{op.attributes['micro_batch']} : i64"
    text = f" {_dictionary(marks)}" if marks else ""
    return f"func.call @{op.attributes['callee']}({p.list(op.operands)}){text} : ({types(op.operands)}) -> {results}"


@_prints("scf.for")
def _(p, op):
    low, high, step, *inits = op.operands
    body, = op.regions
    index, *carried = body.arguments
    pairs = ", ".join(f"{p.name(a)} = {p.name(v)}" for a, v in zip(carried, inits))
    return [f"scf.for {p.name(index)} = {p.name(low)} to {p.name(high)} step {p.name(step)}"
            + (f" iter_args({pairs}) -> ({types(op.results)}) {{" if inits else " {"), *p.block(body), "}"]


@_prints("scf.if")
def _(p, op):
    then, otherwise = op.regions
    return [f"scf.if {p.name(op.operands[0])} -> ({types(op.results)}) {{", *p.block(then), "} else {", *p.block(otherwise), "}"]


@_prints("scf.while")
def _(p, op):
    before, after = op.regions
    pairs = ", ".join(f"{p.name(a)} = {p.name(v)}" for a, v in zip(before.arguments, op.operands))
    arguments = ", ".join(f"{p.name(a)}: {a.type}" for a in after.arguments)
    return [f"scf.while ({pairs}) : ({types(op.operands)}) -> ({types(op.results)}) {{", *p.block(before), "} do {",
            f"^bb0({arguments}):", *p.block(after), "}"]


@_prints("scf.condition")
def _(p, op):
    return f"scf.condition({p.name(op.operands[0])})" + (f" {p.typed(op.operands[1:])}" if op.operands[1:] else "")


def _ports(ports, names) -> str:
    def one(port, name):
        attributes = _dictionary({f"dist.{k}": v for k, v in port.attributes.items()})
        return f"{name}{port.type}" + (f" {attributes}" if attributes else "")
    return "(" + ", ".join(one(port, name) for port, name in zip(ports, names)) + ")"


def _function(p: Printer, function: Function) -> list[str]:
    results = ",\n        ".join(_ports([port], [""])[1:-1] for port in function.results)
    head = f"func.func {'private ' if function.private else ''}@{function.name}("
    if function.body is None:
        return [f"{head}{', '.join(str(port.type) for port in function.arguments)}) -> ({results})"]
    names = [f"{p.name(a)}: " for a in function.body.arguments]
    arguments = ",\n    ".join(
        _ports([port], [name])[1:-1] + p.location(port.location) for port, name in zip(function.arguments, names))
    attributes = _dictionary({f"dist.{k}": v for k, v in function.attributes.items()})
    return [f"{head}\n    {arguments})\n    -> ({results}) " + (f"attributes {attributes} " if attributes else "") + "{",
            *p.block(function.body), "}"]


def print_module(functions: list[Function], meshes: dict[str, str]) -> str:
    """The text of a module. `meshes` maps a symbol to the text after `dist.process_mesh @symbol`."""
    printer = Printer()
    lines = [line for function in functions for line in _function(printer, function) + [""]]
    maps = [f"{alias} = {text}" for text, alias in printer.maps.items()]
    declared = [f"dist.process_mesh @{name}{text}" for name, text in meshes.items()]
    locations = [f"{alias} = {location}" for location, alias in printer.locations.items()]
    parts = [declared, maps, lines[:-1], locations]
    return "\n\n".join("\n".join(part) for part in parts if part) + "\n"
