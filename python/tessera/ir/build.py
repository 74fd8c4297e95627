# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Appends operations to a block.

Common subexpressions are built once: all operations are free of side effects. Loop nests read through broadcasts, and
through reshapes that only add dimensions of size 1, from the source, which avoids copies.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence

from . import constants
from .core import Block, Function, Location, Operation, Port, Value
from .module import Module
from .shapes import ShapeOps
from .types import AffineMap, TensorType, Type, element_of, is_float, written


class Builder(ShapeOps):
    """Builds a Module. Operations go to the end of the innermost open block, at `location`."""

    def __init__(self):
        self.module = Module()
        self.location: Location | None = None
        self._blocks: list[Block] = []
        self._known: list[dict] = []  # operations of each open block, by structure

    # Insertion points.

    @contextlib.contextmanager
    def inside(self, block: Block):
        """Context manager: operations go to the end of `block`."""
        self._blocks.append(block)
        self._known.append({})
        try:
            yield block
        finally:
            self._blocks.pop()
            self._known.pop()

    @contextlib.contextmanager
    def isolated(self, block: Block):
        """As `inside`, for a function or region that cannot use values of the enclosing blocks."""
        outside = self._blocks, self._known
        self._blocks, self._known = [block], [{}]
        try:
            yield block
        finally:
            self._blocks, self._known = outside

    @contextlib.contextmanager
    def at(self, location: Location | None):
        """Context manager: operations get `location`; None keeps the current one."""
        old, self.location = self.location, location or self.location
        try:
            yield
        finally:
            self.location = old

    @contextlib.contextmanager
    def function(self, name: str, arguments: Sequence[Port]):
        """Context manager: a new function of the module; operations go into its body."""
        function = Function(name, list(arguments))
        with self.inside(function.body):
            yield function
        self.module.functions.append(function)

    # Operations.

    def op(self, name: str, operands: Sequence[Value], types: Sequence[Type], attributes=None, regions=()) -> Operation:
        """Appends an operation, or returns an equal one that dominates the insertion point."""
        operation = Operation(name, operands, types, attributes, list(regions), self.location)
        if not types or (regions and name not in ("linalg.generic", "ext.scan")):
            self._blocks[-1].operations.append(operation)
            return operation
        key = _key(operation, {})
        for known in reversed(self._known):
            if key in known:
                return known[key]
        self._known[-1][key] = operation
        self._blocks[-1].operations.append(operation)
        return operation

    def constant(self, value, type: Type) -> Value:
        """A scalar constant, or a tensor with all elements equal to `value`."""
        write = constants.splat if isinstance(type, TensorType) else constants.literal
        text = write(value, element_of(type))
        operation = self.op("arith.constant", [], [type], {"value": text})
        operation.attributes["splat"] = value
        return operation.result

    def dense(self, text: str, type: TensorType) -> Value:
        """A constant tensor from its literal (`constants.dense`, `constants.raw`)."""
        return self.op("arith.constant", [], [type], {"value": text}).result

    def empty(self, type: TensorType) -> Value:
        """A tensor of undefined elements (`tensor.empty`)."""
        return self.op("tensor.empty", [], [type]).result

    def apply(self, name: str, *operands: Value, type: Type | None = None, **attributes) -> Value:
        """An arith or math op on scalars or whole tensors; the result type defaults to that of the last operand."""
        number = constants.fold(name, [v.owner and v.owner.attributes.get("splat") for v in operands], element_of(operands[-1].type))
        if number is not None:
            return self.constant(number, type or operands[-1].type)
        return self.op(name, operands, [type or operands[-1].type], attributes).result

    def compare(self, predicate: str, a: Value, b: Value) -> Value:
        """The i1 result of a comparison.

        Predicates are those of arith.cmpf (oeq, ult, ...) and arith.cmpi (eq, slt, ult, ...).
        """
        name = "arith.cmpf" if is_float(element_of(a.type)) else "arith.cmpi"
        type = TensorType(a.type.shape, "i1") if isinstance(a.type, TensorType) else "i1"
        return self.op(name, [a, b], [type], {"predicate": predicate}).result

    def select(self, condition: Value, a: Value, b: Value) -> Value:
        """a where the condition (i1, a scalar or of their shape) holds, else b."""
        return self.op("arith.select", [condition, a, b], [a.type]).result

    def index(self, loop: int) -> Value:
        """The induction variable of a loop, inside the body of a nest."""
        return self.op("linalg.index", [], ["index"], {"dim": loop}).result

    def cast(self, name: str, value: Value, element: str) -> Value:
        """A conversion op `name` to element type `element`, of a scalar or a tensor."""
        number = constants.fold_cast(name, value.owner and value.owner.attributes.get("splat"), element)
        if number is not None:
            return self.constant(number, TensorType(value.type.shape, element) if isinstance(value.type, TensorType) else element)
        type = TensorType(value.type.shape, element) if isinstance(value.type, TensorType) else element
        return self.op(name, [value], [type]).result

    def ret(self, function: Function, values: Sequence[Value], ports: Sequence[Port]):
        """Ends a function."""
        function.results = list(ports)
        self.op("func.return", values, [])

    # Loop nests.

    def generic(self, inputs: Sequence[tuple[Value, AffineMap]], outputs: Sequence[tuple[Value, AffineMap]],
                iterators: Sequence[str], body: Callable) -> list[Value]:
        """`linalg.generic`.

        `body` takes the elements of inputs and outputs and returns the yielded scalar or sequence of scalars.
        """
        values = [v for v, _ in (*inputs, *outputs)]
        block = Block([element_of(v.type) for v in values])
        with self.inside(block):
            yielded = body(*block.arguments)
            yielded = [yielded] if isinstance(yielded, Value) else list(yielded)
            self.op("linalg.yield", yielded, [])
        return self._generic([v for v, _ in inputs], [v for v, _ in outputs], [m for _, m in (*inputs, *outputs)], iterators, block)

    def _generic(self, inputs, outputs, maps, iterators, block, **more) -> list[Value]:
        attributes = dict(inputs=len(inputs), maps=tuple(maps), iterators=tuple(iterators), **more)
        return self.op("linalg.generic", [*inputs, *outputs], [v.type for v in outputs], attributes, [block]).results

    def pointwise(self, operands: Sequence[Value], shape: Sequence[int], body: Callable, elements: Sequence[str] | None = None) -> Value:
        """A tensor of `shape` with body(elements of the operands at that index) as elements.

        Operands have the rank of the result, with dimensions of size 1 broadcast, or rank 0. `body` returns a scalar.
        """
        shape = tuple(shape)
        reads = [self._read(v, shape) for v in operands]
        loops = [d for d, n in enumerate(shape) if n != 1 or any(d in places for _, places, _ in reads)]
        renumber = {d: i for i, d in enumerate(loops)}
        kept = tuple(shape[d] for d in loops)
        inputs, maps = [], []
        block = Block()
        with self.inside(block):
            arguments = []
            for value, places, constant in reads:
                if constant is not None:
                    arguments.append(self.constant(constant, value.type.element))
                    continue
                found = next((i for i, v in enumerate(inputs) if v is value and maps[i] == places), None)
                if found is None:
                    found = len(inputs)
                    inputs.append(value)
                    maps.append(places)
                    block.arguments.append(Value(value.type.element))
                arguments.append(block.arguments[found])
            result = body(*arguments)
            self.op("linalg.yield", [result], [])
        if not inputs and result.owner is not None and "splat" in result.owner.attributes:
            return self.constant(result.owner.attributes["splat"], TensorType(shape, result.type))
        if result in block.arguments and inputs[block.arguments.index(result)].type.shape == shape:
            return inputs[block.arguments.index(result)]
        type = TensorType(kept, result.type)
        maps = [AffineMap(len(kept), tuple(renumber.get(r, r) for r in places)) for places in maps]
        identity = AffineMap.identity(len(kept))
        single = block.operations[0] if len(block.operations) == 2 else None
        if single and all(m == identity for m in maps) and all(v in block.arguments for v in single.operands) \
                and not single.regions and single.operands and kept == shape:
            whole = [inputs[block.arguments.index(v)] for v in single.operands]
            return self.op(single.name, whole, [type], single.attributes).result
        block.arguments.append(Value(result.type))
        value, = self._generic(inputs, [self.empty(type)], [*maps, identity], ["parallel"] * len(kept), block)
        return self.reshape(value, shape)

    def reduce(self, operand: Value, dims: Sequence[int], combine: Callable, identity, element: str | None = None,
               prepare: Callable | None = None) -> Value:
        """Reduces over `dims`, which are removed: acc = combine(acc, prepare(x)), starting from the number `identity`.

        element: the type of the accumulator and result, by default that of the operand.
        """
        shape = operand.type.shape
        single = [d for d in dims if shape[d] == 1]
        if single:  # dimensions of size 1 need no reduction
            operand = self.reshape(operand, [n for d, n in enumerate(shape) if d not in single])
            dims = [d - sum(s < d for s in single) for d in dims if d not in single]
            shape = operand.type.shape
            if not dims:
                return self.pointwise([operand], shape, prepare) if prepare else operand
        kept = [d for d in range(len(shape)) if d not in dims]
        type = TensorType(tuple(shape[d] for d in kept), element or operand.type.element)
        if any(shape[d] == 0 for d in dims):
            return self.constant(identity, type)
        value, places, _ = self._read(operand, shape, constants=False)
        if any(d not in places for d in dims):  # a reduced loop without an operand dimension has no extent
            value, places = operand, tuple(range(len(shape)))
        prepare = prepare or (lambda x: x)
        result, = self.generic([(value, AffineMap(len(shape), places))],
                               [(self.constant(identity, type), AffineMap(len(shape), tuple(kept)))],
                               ["reduction" if d in dims else "parallel" for d in range(len(shape))],
                               lambda x, acc: combine(acc, prepare(x)))
        return result

    def contract(self, lhs: Value, rhs: Value, lhs_loops: Sequence[int], rhs_loops: Sequence[int], loops: Sequence[int],
                 sizes: Sequence[int], element: str) -> Value:
        """Sum of products, as `linalg.contract`.

        lhs_loops, rhs_loops: the loop of each operand dimension; loops: that of each result dimension. Other loops are
        summed over.
        """
        type = TensorType(tuple(sizes[i] for i in loops), element)
        maps = tuple(AffineMap(len(sizes), tuple(places)) for places in (lhs_loops, rhs_loops, loops))
        return self.op("linalg.contract", [lhs, rhs, self.constant(0, type)], [type], {"maps": maps}).result

    # Scans and sorts.

    def scan(self, inputs: Sequence[Value], dim: int, combine: Callable, identity: Sequence | None = None, exclusive: bool = False,
             reverse: bool = False) -> list[Value]:
        """`ext.scan`: all prefixes along `dim`, combined by an associative function.

        combine: takes two sequences of scalars, one per input, the earlier and the later part, and returns one.
        identity: a number per input.
        """
        elements = [v.type.element for v in inputs]
        block = Block([*elements, *elements])
        with self.isolated(block):
            results = list(combine(block.arguments[:len(inputs)], block.arguments[len(inputs):]))
            self.op("ext.yield", results, [])
        numbers = tuple(f"{constants.literal(n, e)} : {written(e)}" if e != "i1" else constants.literal(n, e)
                        for n, e in zip(identity or (), elements))
        attributes = dict(dim=dim, exclusive=exclusive, reverse=reverse, identity=numbers)
        return self.op("ext.scan", inputs, [v.type for v in inputs], attributes, [block]).results

    def sort(self, inputs: Sequence[Value], dim: int, keys: int = 1, descending: bool = False, limit: int | None = None) -> list[Value]:
        """`ext.sort`: the inputs sorted along `dim` by the first `keys` of them; only `limit` elements, if given."""
        shape = tuple(limit if d == dim and limit is not None else n for d, n in enumerate(inputs[0].type.shape))
        attributes = dict(dim=dim, keys=keys, descending=descending, limit=limit)
        return self.op("ext.sort", inputs, [TensorType(shape, v.type.element) for v in inputs], attributes).results

    def iota(self, shape: Sequence[int], dim: int, element: str = "i32") -> Value:
        """An integer tensor whose elements are their index along `dim`."""
        type = TensorType(tuple(shape), element)
        result, = self.generic([], [(self.empty(type), AffineMap.identity(type.rank))], ["parallel"] * type.rank,
                               lambda _: self.cast("arith.index_cast", self.index(dim), element))
        return result

    # Annotations.

    def shard(self, value: Value, sharding) -> Value:
        """Constrains the sharding of a value; `sharding` prints as `#dist.sharding<...>`."""
        return self.op("dist.shard_tensor", [value], [value.type], {"sharding": str(sharding)}).result


def _key(operation: Operation, numbers: dict[Value, int]):
    """A key that is equal for equal operations; values defined inside their regions are numbered by position."""
    operands = operation.operands
    if numbers:
        operands = tuple([numbers.get(v, v) for v in operands])
    else:
        operands = tuple(operands)
    regions = []
    for region in operation.regions:
        inner = dict(numbers)
        for value in region.arguments:
            inner[value] = len(inner)
        for o in region.operations:
            for value in o.results:
                inner[value] = len(inner)
        regions.append((tuple([a.type for a in region.arguments]), tuple([_key(o, inner) for o in region.operations])))
    attributes = tuple([(k, v if v.__class__ in _PLAIN else repr(v)) for k, v in operation.attributes.items() if k != "splat"])
    return operation.name, operands, attributes, tuple([r.type for r in operation.results]), tuple(regions)


_PLAIN = (str, int, tuple)
