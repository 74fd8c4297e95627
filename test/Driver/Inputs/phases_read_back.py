# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The output of a phase can be read back, and compiles from there to the same report and values.

phases_read_back.py FOLDER PROGRAM[=FUNCTION]...: FOLDER is used for files. Prints failures; exit code 1.
"""

import json
import os
import subprocess
import sys

PHASES = ["input", "normalized", "propagated", "resharded", "planned", "partitioned", "fused", "scheduled"]
failures = 0


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        fail(" ".join(command), done.stderr)
    return done.stdout


def fail(what, why):
    global failures
    failures += 1
    print(f"{what}: {why.strip()}")


def report(path, phase, function):
    """The report without locations and origins: only the run with propagation reports origins."""
    chosen = ("--function", function) if function else ()
    text = run("tessera", "explain", path, "--compile-from", phase, "--json", "-", *chosen)
    result = json.loads(text) if text else {}
    for collective in result.get("collectives", ()):
        del collective["loc"]
    for value in (*result.get("arguments", ()), *result.get("results", ())):
        value.pop("origin", None)
    return result


def checksums(path, phase, function):
    """What a run computes, and the bytes that it sends."""
    chosen = ("--function", function) if function else ()
    text = run("tessera", "run", path, "--compile-from", phase, "--json", "-", *chosen)
    result = json.loads(text) if text else {}
    return result.get("results"), result.get("scalars"), result.get("counted_bytes_total")


folder, *programs = sys.argv[1:]
for each in programs:
    program, _, function = each.partition("=")
    end = run("tessera-opt", program, "--tessera-pipeline")
    whole = report(program, "input", function)
    values = checksums(program, "input", function)
    text = program
    for before, phase in zip(PHASES, PHASES[1:]):
        name = os.path.join(folder, f"{os.path.basename(program)}.{phase}.mlir")
        run("tessera-opt", text, f"--tessera-pipeline=compile-from={before} compile-to={phase}", "-o", name)
        text = name
        if phase in ("partitioned", "fused"):
            whole.pop("parallelisms", None)  # the local view does not have the cuts of loops
        if phase in ("propagated", "partitioned", "fused") and report(name, phase, function) != whole:
            fail(name, "compiled from here the report is another one")
        if checksums(name, phase, function) != values:
            fail(name, "compiled from here the values or bytes are others")
    if open(text).read() != end:
        fail(text, "phase by phase the end is another one")
    run("tessera-opt", text, "--emit-bytecode", "-o", text + "bc")
    if run("tessera-opt", text + "bc") != end:
        fail(text, "by way of bytecode it is another text")
print(f"{len(programs)} programs, {failures} failures")
sys.exit(failures != 0)
