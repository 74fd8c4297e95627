"""Runs each part of bench/gpu/run on one set of artifacts: rehearse_parts.py RUN FOLDER."""

import importlib.machinery
import importlib.util
import json
import os
import pathlib
import subprocess
import sys

command, folder = sys.argv[1], pathlib.Path(sys.argv[2])
loader = importlib.machinery.SourceFileLoader("bench_gpu_run", command)
module = importlib.util.module_from_spec(importlib.util.spec_from_loader("bench_gpu_run", loader))
loader.exec_module(module)
module.prepare(folder / "prepared", rehearsal=True, quick=True)


def part(name, *more, **environment):
    return subprocess.run([sys.executable, command, "--rehearse", "--from", folder / "prepared", "--output", folder, "--part", name, *more], text=True,
                          stdout=subprocess.PIPE, env=dict(os.environ, **environment))


for name, text in (("correctness", "right"), ("sanitizer", "attention: memcheck"), ("nccl", "NCCL "), ("times", "matmul 4096^3 f32"), ("calibrate", "wrote")):
    done = part(name)
    print(f"{name}: {done.returncode}, {next((line.strip() for line in done.stdout.splitlines() if text in line), done.stdout)}")
manifest = json.loads((folder / "prepared/manifest.json").read_text())
rows = next(each["gpu"] for each in manifest["sanitized"] if each["name"] == "long rows")
done = part("sanitizer", FAKE_SANITIZER_FINDS=f"racecheck {rows}")
print(f"a race: {done.returncode}, {next(line for line in (folder / 'sanitizer.md').read_text().splitlines() if 'FAILED' in line)}")
done = part("correctness", "--limit", "1")
text = (folder / "correctness.md").read_text()
print(f"no time: {done.returncode}, correctness.md: {next(line for line in text.splitlines() if 'not run' in line)}")
