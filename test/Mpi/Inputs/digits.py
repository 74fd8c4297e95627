"""Trains examples/digits by a command, and on one device: the last losses are equal within 1e-5.

    digits.py EXAMPLE FOLDER COMMAND...    COMMAND runs a program, as `mpirun -np 8 tessera run --backend mpi`
"""

import array
import os
import subprocess
import sys

example, folder, *command = sys.argv[1:]


def loss(name, program, command):
    data, out = os.path.join(example, "data"), os.path.join(folder, f"{name}.npy")
    words = ["--function", "train", "--steps", "120", "--output", f"loss={out}"]
    for parameter in ("w0", "b0", "w1", "b1"):
        words += ["--input", f"{parameter}={data}/{parameter}.npy"]
    for stream in ("images", "labels"):
        words += ["--stream", f"{stream}={data}/{stream}.npy"]
    subprocess.run([*command, os.path.join(example, program), *words], check=True, stdout=subprocess.DEVNULL)
    with open(out, "rb") as file:
        return array.array("f", file.read()[-4:])[0]


one, many = loss("one", "digits-single.mlir", ["tessera", "run"]), loss("many", "digits.mlir", command)
print(f"one device {one:.6f}, many {many:.6f}")
sys.exit(abs(one - many) > 1e-5)
