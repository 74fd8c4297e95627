#!/usr/bin/env python3
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Prints collectives and wire bytes of whole training steps: by hand, Tessera, and peers.

    training_steps.py [NAME...]

Ratios are wire bytes over the best known by hand (workloads/*_plans). Peers' figures are those of data/; with --live JAX
is compiled for 8 virtual devices and measured again. PYTHONPATH must have the build's python folder.
"""

import argparse
import json
import os
import sys
import time

os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=8".strip()
os.environ.setdefault("JAX_PLATFORMS", "cpu")
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)


def tessera_plan(program, objective):
    """Count, wire bytes and seconds of Tessera's plan."""
    import tessera
    imported = tessera.from_jax(program.fn, program.args, program.specs, program.out, mesh=program.mesh,
                                feeds="auto" if program.out is not None else None)
    begin = time.perf_counter()
    report = imported.explain(objective=objective)
    return dict(count=report["collective_count_total"], wire_bytes=report["wire_bytes_total"], seconds=time.perf_counter() - begin)


def jax_plan(program):
    """The same for JAX, from its compiled HLO."""
    import jax
    from hlo_stats import collectives
    from workloads import shardings
    more = dict(out_shardings=shardings(program.mesh, program.out)) if program.out is not None else {}
    compiled = jax.jit(program.fn, in_shardings=shardings(program.mesh, program.specs), **more).lower(*program.args).compile()
    return collectives(compiled.as_text(), program.mesh.size)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="workloads; default all")
    parser.add_argument("--live", action="store_true", help="measure JAX again")
    parser.add_argument("--json", help="write the figures here")
    parser.add_argument("--objective", default="time", help="what reshard plans minimize: time or bytes")
    options = parser.parse_args()
    try:
        from workloads import SUITE
    except ModuleNotFoundError as error:
        print(f"training_steps.py: {error}; the workloads are JAX programs, install jax", file=sys.stderr)
        return 1
    unknown = [name for name in options.names if name not in SUITE]
    if unknown:
        parser.error(f"there is no workload {', '.join(unknown)}; there are {', '.join(SUITE)}")
    with open(os.path.join(HERE, "data", "training_steps_peers.json")) as file:
        peers = json.load(file)

    print("whole training steps: collectives and wire bytes of a device; ratios over the best known by hand")
    live = "  JAX live" if options.live else ""
    print(f"{'':24}{'by hand':>20}   {'Tessera':>20} {'ratio':>7} {'s':>6}   {'JAX':>6} {'DTensor':>14}{live}")
    rows = {}
    for name in options.names or SUITE:
        program = SUITE[name]()
        row = rows[name] = dict(hand=program.ref)
        hand = program.ref["wire_bytes"]
        try:
            own = row["tessera"] = tessera_plan(program, options.objective)
            text = f"{own['count']:>5} {own['wire_bytes']:>14,.0f} {own['wire_bytes'] / hand:>7.3f} {own['seconds']:>6.2f}"
        except Exception as error:
            row["error"] = str(error)
            text = f"{str(error).splitlines()[0][:34]:>34}"
        recorded = peers["jax"]["ratio"].get(name)
        other = peers["dtensor"]["ratio"].get(name)
        count = peers["dtensor"]["count"].get(name)
        line = f"{name:24}{program.ref['count']:>5} {hand:>14,.0f}   {text}   {f'{recorded:.2f}' if recorded else '':>6}"
        line += f" {f'{other:.2f}' + (f' ({count})' if count else '') if other else '':>14}"
        if options.live:
            measured = row["jax"] = jax_plan(program)
            line += f"  {measured['wire_bytes'] / hand:.2f} ({measured['count']})"
        print(line, flush=True)
    if options.json:
        with open(options.json, "w") as file:
            json.dump(rows, file, indent=1)
    return 1 if any("error" in row for row in rows.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
