"""same.py N ARTIFACTS -- LAUNCHER...: N processes print, compute and count the same as threads."""

import json
import subprocess
import sys

split = sys.argv.index("--")
launcher = [*sys.argv[split + 1:], "-np", sys.argv[1]]


def run(artifact, words, backend):
    report = f"{artifact}.{backend}.json"
    command = [*words, "tessera-exec", artifact, "--backend", backend, "--steps", "2", "--json", report]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: {done.stdout}")
    with open(report, encoding="utf-8") as file:
        found = json.load(file)
    del found["timing"], found["backend"]
    for each in found["collectives"]:  # only processes have an algorithm
        if (each.pop("algorithms", None) is None or each.pop("sent", None) is None) and backend != "threads" and each["kind"] != "transfer":
            sys.exit(f"{artifact}: on {backend} {each['kind']} has no algorithm")
    return {"printed": done.stdout, **found}


for artifact in sys.argv[2:split]:
    threads, mpi = run(artifact, [], "threads"), run(artifact, launcher, "mpi")
    for key in threads:
        if threads[key] != mpi[key]:
            sys.exit(f"{artifact}: {key} differs:\n{threads[key]}\n{mpi[key]}")
