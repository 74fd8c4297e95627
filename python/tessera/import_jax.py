# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Imports a JAX program as MLIR for `tessera`.

    python -m tessera.import_jax train.py:step -o step.mlir
    python -m tessera.import_jax programs.py:SUITE.mlp_dp --devices 8

The object after the colon (a path of attributes and keys), or its result when called without arguments, describes the
program: attributes, keys or a tuple of fn, args, in_shardings (or specs), out_shardings (or out), mesh.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import os
import sys
import traceback

from .errors import Error
from .source import nearest

FIELDS = (("fn",), ("args",), ("in_shardings", "specs"), ("out_shardings", "out"), ("mesh",))


def load(target: str):
    """The object named by `FILE.py:PATH` or `MODULE:PATH`. Exits if there is none."""
    place, _, path = target.rpartition(":")
    if not place or not path:
        raise SystemExit(f"error: '{target}' is not FILE.py:OBJECT or MODULE:OBJECT")
    if place.endswith(".py"):
        name = os.path.splitext(os.path.basename(place))[0]
        spec = importlib.util.spec_from_file_location(name, place)
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        sys.path.insert(0, os.path.dirname(os.path.abspath(place)))
        spec.loader.exec_module(module)
    else:
        module = importlib.import_module(place)
    value, where = module, place
    for part in path.split("."):
        known = [str(key) for key in value] if isinstance(value, dict) else [name for name in dir(value) if not name.startswith("_")]
        if part not in known and (isinstance(value, dict) or not hasattr(value, part)):
            raise SystemExit(f"error: '{where}' has no '{part}'" + (f"; {nearest(part, known, 'it has')}" if known else ""))
        value, where = value[part] if isinstance(value, dict) else getattr(value, part), part
    return value


def describe(value) -> dict:
    """fn, args, in_shardings, out_shardings and mesh of a described program. Exits if it has neither fn nor args."""
    if isinstance(value, tuple):
        return dict(zip([names[0] for names in FIELDS], value))

    def get(name):
        return value.get(name) if isinstance(value, dict) else getattr(value, name, None)
    found = {names[0]: next((v for v in map(get, names) if v is not None), None) for names in FIELDS}
    if found["fn"] is None or found["args"] is None:
        if callable(value):
            return describe(value())
        raise SystemExit(f"error: {type(value).__name__} describes no program: it has neither fn nor args")
    return found


def user_line(error: BaseException) -> str:
    """`file:line: ` of the last frame in user code."""
    frames = [f for f in traceback.extract_tb(error.__traceback__)
              if "site-packages" not in f.filename and os.path.dirname(__file__) not in f.filename and not f.filename.startswith("<")]
    return f"{frames[-1].filename}:{frames[-1].lineno}: " if frames else ""


def main(arguments=None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tessera.import_jax", description=__doc__.split("\n")[0])
    parser.add_argument("target", help="FILE.py:OBJECT or MODULE:OBJECT")
    parser.add_argument("-o", "--output", default="-", help="output file; default: standard output")
    parser.add_argument("--devices", type=int, default=8, help="virtual CPU devices of JAX; default: 8")
    parser.add_argument("--no-feeds", action="store_true", help="do not feed results back into arguments")
    parser.add_argument("--range", action="append", default=[], metavar="NAME=LO:HI", help="range of the random values of an integer argument")
    options = parser.parse_args(arguments)
    flag = f"--xla_force_host_platform_device_count={options.devices}"
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {flag}".strip()
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    try:
        from .jax import to_module
    except ModuleNotFoundError as error:
        print(f"error: {error}; install jax", file=sys.stderr)
        return 1
    ranges = {}
    for text in options.range:
        name, _, bounds = text.partition("=")
        low, _, high = bounds.partition(":")
        try:
            ranges[name] = (int(low), int(high))
        except ValueError:
            parser.error(f"--range {text} is not NAME=LO:HI")
    try:
        program = describe(load(options.target))
        module, *_ = to_module(program.pop("fn"), program.pop("args"), **program, ranges=ranges,
                               feeds=None if options.no_feeds else "auto")
    except Error as error:
        print(_as_error(error), file=sys.stderr)
        return 1
    except Exception as error:
        print(f"{user_line(error)}error: {error}", file=sys.stderr)
        return 1
    text = str(module)
    if options.output == "-":
        sys.stdout.write(text)
    else:
        with open(options.output, "w") as file:
            file.write(text)
    return 0


def _as_error(error):
    location = getattr(error, "location", None)
    if location is None:
        return str(error) if ": error: " in str(error) and not hasattr(error, "message") else f"error: {getattr(error, 'message', error)}"
    return f"{location.file}:{location.line}:{location.column}: error: {error.message}"


if __name__ == "__main__":
    sys.exit(main())
