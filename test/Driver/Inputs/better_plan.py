"""better_plan.py TESSERA FUZZ FOLDER FIRST LAST: modelled times of generated programs with a search and without."""
import json
import os
import subprocess
import sys

MODES = ("sharding_propagation", "recursive_programming", "dynamic_programming")


def seconds(tessera, path, *options):
    done = subprocess.run([tessera, "explain", path, "--json", "-", *options], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{path} {' '.join(options)}: {done.stderr}")
    return json.loads(done.stdout)["modelled_seconds"]


def main():
    tessera, fuzz, folder = sys.argv[1:4]
    os.makedirs(folder, exist_ok=True)
    searched = worse = 0
    for seed in range(int(sys.argv[4]), int(sys.argv[5])):
        path = os.path.join(folder, f"{seed}.mlir")
        with open(path, "w") as file:
            subprocess.run([fuzz, "--emit", f"--seed={seed}"], stdout=file, check=True)
        alone = seconds(tessera, path)
        for mode in MODES:
            own = seconds(tessera, path, "--mode", mode)
            searched += 1
            if own > alone * (1 + 2e-6):
                worse += 1
                print(f"seed {seed}, {mode}: {own} s, propagation alone {alone} s")
    print(f"{searched} searched programs, {worse} take longer")


main()
