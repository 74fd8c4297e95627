# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The programs of bench/gpu/run without a GPU.

    bench_programs.py FOLDER equal      at reduced sizes, kernels on the emulated GPU against the CPU's, in several orders
    bench_programs.py FOLDER schemes    at full size, the number of launches per scheme
"""

import collections
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, sys.argv[1])
import programs  # noqa: E402
import workloads  # noqa: E402


NORMALIZED = "compile-from=normalized "


def texts(small):
    """Names, texts and options of the pipeline."""
    for name, _, _, text in programs.benchmarks(small=small):
        yield name, text, ""
    for workload in workloads.workloads(small=small):
        yield workload.name, workloads.program(workload).lower("normalized"), NORMALIZED
    if small:
        yield from ((name, text, "") for name, text in programs.sanitized())
        yield from ((name, text, "") for name, text, _ in programs.extras())
        yield "two ranks", programs.TWO_RANKS, ""


def equal(name, path, options):
    # Attentions are one operation whatever their size.
    done = subprocess.run(["tessera-opt", path, "--dist-recognize-attention-backward=recomputed-scores=0", f"--tessera-pipeline={options}gpu=true", "--codegen=gpu=true", "--tessera-check-gpu-kernels", "-o", os.devnull],
                          capture_output=True, text=True)
    lines = re.findall(r"^\S+:(.*) equal$", done.stdout, re.M)
    wrong = [line for line in done.stderr.splitlines() if "error:" in line]
    schemes = sorted({scheme for line in lines for scheme in line.split()})
    print(f"{name}: {len(lines)} kernels equal{', ' * bool(schemes)}{', '.join(schemes)}")
    if done.returncode or wrong:
        print("\n".join(wrong) or done.stderr)


def schemes(name, path, options):
    # Attentions are one operation whatever their size.
    done = subprocess.run(["tessera-opt", path, "--dist-recognize-attention-backward=recomputed-scores=0", f"--tessera-pipeline={options}gpu=true", "--codegen=gpu=true",
                           "--tessera-compile-gpu-kernels=arch=compute_80", "-o", os.devnull], capture_output=True, text=True)
    if done.returncode or done.stderr:
        print(name, "failed:", done.stderr)
        return
    found = collections.Counter(re.findall(r"^  (\w+): grid ", done.stdout, re.M))
    print(f"{name}: serial {found['serial']}, loops {found['loops']}, others {sum(found.values()) - found['serial'] - found['loops']}")


for name, text, options in texts(small=sys.argv[2] == "equal"):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "p.mlir")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        {"equal": equal, "schemes": schemes}[sys.argv[2]](name, path, options)
