#!/usr/bin/env python3
"""Runs the example programs on the stub backend, over numbers of devices and seeds of schedules.

    examples_on_stub.py EXAMPLES [--devices 1,2,4,8] [--seeds N] [--only NAME] [--kernels]

Each program is compiled once for each number of devices, run on `threads`, and on `stub` with every seed. All results
must be those of `threads` bit for bit: the stub combines contributions in the same order. A hazard between streams is a
separate error. With --kernels the GPU's kernels run emulated: their results must equal those of one device of
the CPU within the tolerance of all checks, and be bitwise equal for every seed.
"""

import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stderr}")
    return done.stdout


def shape_for(shape, devices):
    """The mesh's shape for another number of devices, the last axes first: [2, 4] for 2 is [1, 2]."""
    shape = list(shape)
    for axis in range(len(shape)):
        while shape[axis] > 1 and eval("*".join(map(str, shape))) > devices:
            shape[axis] //= 2
    while eval("*".join(map(str, shape))) < devices:
        shape[-1] *= 2
    return shape


def variants(text, counts):
    """The program with its mesh for each number of devices; unchanged if it has several meshes."""
    meshes = re.findall(r"dist\.process_mesh @\w+\(shape = \[([\d, ]+)\]", text)
    if len(meshes) != 1:
        yield "as it is", text
        return
    shape = [int(each) for each in meshes[0].split(",")]
    for count in counts:
        new = shape_for(shape, count)
        yield f"{count} devices", text.replace(f"shape = [{meshes[0]}]", f"shape = {new}", 1)


def programs(examples):
    """Names, texts, and options of the compiler."""
    for path in sorted(examples.glob("*/*.mlir")):
        text = path.read_text()
        functions = re.findall(r"^func\.func @(\w+)", text, re.M)
        if path.parent.name == "digits":
            functions = ["train", "accuracy"]
        else:
            functions = functions[:1]
        for function in functions:
            yield f"{path.stem}:{function}", text, ["--function", function]
    gpt = run(sys.executable, str(examples / "gpt" / "gpt.py"), *"--layers 1 --d 32 --heads 4 --seq 16 --batch 4".split(),
              *"--vocab 64 --mesh 2x4".split())
    yield "gpt", gpt, []


def results(artifact, *options):
    report = json.loads(run("tessera-exec", artifact, "--json", "-", *options))
    return {each["name"]: each["checksum"] for each in report["results"]}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("examples", type=pathlib.Path)
    parser.add_argument("--devices", default="1,2,4,8")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", default="")
    parser.add_argument("--kernels", action="store_true")
    options = parser.parse_args()
    counts = [int(each) for each in options.devices.split(",")]
    runs = 0
    with tempfile.TemporaryDirectory() as folder:
        artifact = f"{folder}/program.tsra"
        for name, text, flags in programs(options.examples):
            if options.only not in name:
                continue
            for what, program in variants(text, counts):
                source = pathlib.Path(folder, "program.mlir")
                source.write_text(program)
                if options.kernels:
                    run("tessera", "compile", str(source), "-o", artifact, *flags, "--target=stub")
                    run("tessera", "run", str(source), *flags, "--backend", "stub", "--check")
                    expected = results(artifact, "--backend", "stub")
                else:
                    run("tessera", "compile", str(source), "-o", artifact, *flags)
                    expected = results(artifact)
                for seed in range(options.seeds):
                    found = results(artifact, "--backend", "stub", "--schedule-seed", str(seed))
                    if found != expected:
                        sys.exit(f"{name}, {what}, seed {seed}: {found} instead of {expected}")
                    runs += 1
            print(f"{name}: ok", flush=True)
    print(f"{runs} runs, 0 hazards, 0 differences")


if __name__ == "__main__":
    main()
