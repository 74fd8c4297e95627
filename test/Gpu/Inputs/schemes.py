# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiles training steps of realistic sizes for a GPU and prints the number of launches per scheme, and those without one.

    schemes.py NAME...    names of PROGRAMS
"""

import collections
import os
import re
import subprocess
import sys
import tempfile

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"  # the plans of the models name 8 devices
ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, os.pardir, os.pardir)
sys.path.insert(0, os.path.join(ROOT, "bench", "search"))

import models  # noqa: E402

import tessera  # noqa: E402

PROGRAMS = {
    "GPT-2": lambda: models.gpt(layers=12, d=768, heads=12, seq=1024, batch=8, ffn=3072, vocab=50257),
    "Llama": lambda: models.llama_block(d=4096, heads=32, groups=8, seq=2048, batch=4, ffn=11008),
    "ResNet-50": models.resnet50,
    "DLRM": lambda: models.dlrm(rows=1000000, width=128),
}


def main():
    for name in sys.argv[1:]:
        model = PROGRAMS[name]()
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "step.mlir")
            with open(path, "w", encoding="utf-8") as file:
                file.write(str(tessera.from_jax(model.step, model.args)))
            done = subprocess.run(["tessera", "compile", path, "--no-cache", "--target=cuda", "--arch", "compute_80", "--kernels",
                                   "-o", os.path.join(folder, "step.tsra")], capture_output=True, text=True)
        if done.returncode != 0 or done.stderr:
            print(name, "failed:", done.stderr)
            continue
        kernels = re.findall(r"^kernel \S+  ([a-z ]+?)(?:  \((.*)\))?$", done.stdout, re.M)
        schemes = collections.Counter(scheme for launches, _ in kernels for scheme in launches.split())
        reasons = collections.Counter(reason for launches, reason in kernels if {"loops", "serial"} & set(launches.split()))
        print(f"{name}: serial {schemes['serial']}, loops {schemes['loops']}, others", sum(schemes.values()) - schemes["serial"] - schemes["loops"])
        for reason, count in sorted(reasons.items()):
            print(f"  {count} x {reason}")


main()
