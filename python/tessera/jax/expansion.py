# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Primitives of other packages as the programs that evaluate them, and checks that raise as NaN.

A primitive has a function that evaluates it on arrays, `impl`, or one that it is lowered by. Most packages write them
with JAX, so that they can be traced; what they trace to is imported in place of the primitive. Derivatives and batching have been done before.

A program cannot raise. A branch of a `cond` that calls a Python function that only raises (as `equinox.error_if` does)
is left out, and where the program takes it, floats are NaN.
"""

from __future__ import annotations

import contextlib
import dis
import functools

import jax
import jax.numpy as jnp
from jax import lax
from jax.extend import core as jex_core
from jax.extend.core.primitives import closed_call_p
from jax.interpreters import partial_eval

try:  # not public, see importer.py
    from jax._src.interpreters.mlir import _lowerings as LOWERINGS, lower_fun
    from jax._src.source_info_util import user_context
    LOWERINGS_OF = lower_fun.__module__
except ImportError:
    user_context, LOWERINGS, LOWERINGS_OF = None, {}, None

from ..source import warn
from .complexes import COMPLEX
from .importer import NO_PROGRAM_INSIDE, subprograms, user_location
from .registry import RULES
from .rewriting import CALLS, mentions

_DEEPEST = 8  # how often a primitive may occur in its own expansion
_RETURNS = ("RETURN_VALUE", "RETURN_CONST", "RETURN_GENERATOR", "YIELD_VALUE")


def expanded(closed, where):
    """A closed jaxpr with programs in place of unknown primitives, as far as they can be traced.

    Issues one TesseraWarning, by default at the location `where`, that names all checks that cannot raise.
    """
    if not _has_unknown(closed.jaxpr):
        return closed
    jaxpr, _ = partial_eval.dce_jaxpr(closed.jaxpr, [True] * len(closed.jaxpr.outvars), instantiate=True)
    expander = _Expander()
    jaxpr = expander.jaxpr(jaxpr, where)
    if expander.checks:
        (first, place), *others = dict.fromkeys(expander.checks)
        more = "".join(f"; also {check}" + (f" at {at.file}:{at.line}" if at else "") for check, at in others)
        warn(f"a program cannot raise: where {first} would, the floats that it guards become NaN{more}", place)
    if expander.printing:
        warn("jax.debug.print and jax.debug.callback are left out: a program prints nothing; return the value", expander.printing[0])
    return jex_core.ClosedJaxpr(jaxpr, closed.consts)


def _has_unknown(jaxpr) -> bool:
    return any(_is_unknown(eqn) or any(map(_has_unknown, _inside(eqn))) for eqn in jaxpr.eqns)


def _is_unknown(eqn) -> bool:
    return eqn.primitive.name not in RULES and eqn.primitive.name not in COMPLEX


def _only_prints(eqn) -> bool:
    return eqn.primitive.name in ("debug_print", "debug_callback") and not eqn.outvars


def _inside(eqn):
    return () if eqn.primitive.name in NO_PROGRAM_INSIDE else subprograms(eqn)


class _Expander:
    """`checks`: the description and location of each branch that only raises. `printing`: of calls for debugging, the locations."""

    def __init__(self):
        self.checks: list[tuple] = []
        self.printing: list = []
        self._around: list = []  # the equations that are being expanded

    def jaxpr(self, jaxpr, location):
        self.printing += [user_location(eqn, location) for eqn in jaxpr.eqns if _only_prints(eqn)]
        return jaxpr.replace(eqns=[self._equation(eqn, user_location(eqn, location)) for eqn in jaxpr.eqns if not _only_prints(eqn)])

    def _closed(self, closed, location):
        return jex_core.ClosedJaxpr(self.jaxpr(closed.jaxpr, location), closed.consts)

    def _equation(self, eqn, location):
        if _is_unknown(eqn):
            program = self._implementation(eqn)
        elif eqn.primitive.name == "cond":
            program = self._without_checks(eqn, location)
        else:
            program = None
        if program is not None:
            self._around.append(eqn)
            program = self._closed(program, location)
            self._around.pop()
            if _is_unknown(eqn) and mentions(program.jaxpr, (eqn.primitive.name,)):  # evaluated by itself
                return eqn
            return eqn.replace(primitive=closed_call_p, params={"call_jaxpr": program})
        if not any(map(_has_unknown, _inside(eqn))):
            return eqn
        return eqn.replace(params={name: self._parameter(value, location) for name, value in eqn.params.items()})

    def _parameter(self, value, location):
        if isinstance(value, jex_core.ClosedJaxpr):
            return self._closed(value, location)
        if isinstance(value, jex_core.Jaxpr):
            return self.jaxpr(value, location)
        if isinstance(value, tuple) and not hasattr(value, "_fields"):
            return tuple(self._parameter(item, location) for item in value)
        return value

    def _implementation(self, eqn):
        """What the primitive's `impl` traces to; None if it cannot be traced or has effects."""
        around = [each for each in self._around if each.primitive is eqn.primitive]
        evaluate = _lowered_by(eqn.primitive) or eqn.primitive.impl
        if eqn.effects or evaluate is None or len(around) == _DEEPEST or any(_is_same(each, eqn) for each in around):
            return None
        try:
            return _traced(eqn, functools.partial(evaluate, **eqn.params), eqn.primitive.multiple_results)
        except Exception:  # it may be any code, such as a call of a device's library
            return None

    def _without_checks(self, eqn, location):
        """The program of a `cond` without the branches that only raise; None if it has no such branch, or no other."""
        branches = eqn.params["branches"]
        raising = [_raises(branch.jaxpr) for branch in branches]
        if all(raising) or not any(raising):
            return None
        self.checks += [(check, location) for check in raising if check]
        others = [jex_core.jaxpr_as_fun(branch) for branch, check in zip(branches, raising) if not check]
        places = [sum(not check for check in raising[:i]) if not raising[i] else 0 for i in range(len(branches))]

        def program(which, *values):
            which = jnp.clip(which, 0, len(branches) - 1)
            failed = jnp.asarray([check is not None for check in raising])[which]
            results = others[0](*values) if len(others) == 1 else lax.switch(jnp.asarray(places)[which], others, *values)
            return [jnp.where(failed, jnp.nan, x).astype(x.dtype) if jnp.issubdtype(x.dtype, jnp.inexact) else x for x in results]
        return _traced(eqn, program, True)


def _lowered_by(primitive):
    """The function of JAX whose program is the primitive's lowering for every platform, as those of sparse arrays are; None if it has none."""
    rule = getattr(LOWERINGS.get(primitive), "rule", None)
    names = getattr(getattr(rule, "__code__", None), "co_freevars", ())
    if getattr(rule, "__module__", None) != LOWERINGS_OF or "fun" not in names:
        return None
    function = rule.__closure__[names.index("fun")].cell_contents
    return function if callable(function) else None


def _traced(eqn, function, several: bool):
    """The closed jaxpr of a function of an equation's operands, with the equation's place in the user's program."""
    def program(*values):
        results = function(*values)
        return list(results) if several else [results]
    avals = [jax.ShapeDtypeStruct(v.aval.shape, v.aval.dtype) for v in eqn.invars]
    with user_context(eqn.source_info.traceback, name_stack=eqn.source_info.name_stack) if user_context else contextlib.nullcontext():
        closed = jax.make_jaxpr(program)(*avals)
    wanted, found = ([(v.shape, v.dtype) for v in avals] for avals in ([v.aval for v in eqn.outvars], closed.out_avals))
    if wanted != found:
        raise TypeError(f"the program of '{eqn.primitive}' has results of other types")
    return closed


def _is_same(one, other) -> bool:
    """Whether two equations of a primitive have operands of the same types and the same parameters."""
    return [v.aval for v in one.invars] == [v.aval for v in other.invars] and one.params.keys() == other.params.keys() \
        and all(value is other.params[name] for name, value in one.params.items())


def _raises(jaxpr) -> str | None:
    """Describes the check in a jaxpr that calls a Python function which never returns; None for other jaxprs."""
    for eqn in jaxpr.eqns:
        if eqn.primitive.name == "pure_callback":
            found = _never_returns(eqn.params.get("callback"))
        elif eqn.primitive.name == "cond":
            found = [_raises(branch.jaxpr) for branch in eqn.params["branches"]]
            found = found[0] if all(found) else None
        else:
            found = next(filter(None, map(_raises, subprograms(eqn))), None) if eqn.primitive.name in CALLS else None
        if found:
            return found
    return None


def _never_returns(callback) -> str | None:
    """Describes a Python function whose code has no way to return; None for others."""
    function = getattr(callback, "callback_func", callback)
    while isinstance(function, functools.partial):
        function = function.func
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    if code is None or any(step.opname in _RETURNS for step in dis.get_instructions(code)):
        return None
    texts = [text for cell in function.__closure__ or () for text in _texts(cell)]
    said = f" ('{texts[0].splitlines()[0][:100]}')" if len(texts) == 1 else ""
    return f"the check '{function.__name__}'{said} of {code.co_filename}:{code.co_firstlineno}"


def _texts(cell) -> list[str]:
    """The texts in a variable of a function, which its message may be one of."""
    try:
        value = cell.cell_contents
    except ValueError:  # it has no value yet
        return []
    return [text for text in (value if isinstance(value, (list, tuple)) else [value]) if isinstance(text, str) and text.strip()]
