# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""devices_fault.py SIGNAL VICTIM FOLDER: two processes with two devices each train; one gets the signal. Prints the output of the other."""

import os
import signal
import subprocess
import sys
import time


def train(folder):
    import numpy as np

    import tessera as ts
    from tessera import ProcessMesh, Shard

    @ts.jit(backend="tcp", devices=2, donate=True)
    def step(x):
        return x * 0.5 + x.sum() * 0.0

    x = ts.shard_tensor(np.ones((8, 4), np.float32), ProcessMesh(range(4), ["x"]), [Shard(0)])
    while True:
        x = step(x)
        open(f"{folder}/steps-{os.environ['TESSERA_RANK']}", "w").close()


def main(name, victim, folder):
    os.makedirs(folder, exist_ok=True)
    ranks = []
    for rank in range(2):
        environment = dict(os.environ, TESSERA_RANK=str(rank), TESSERA_SIZE="2", TESSERA_RENDEZVOUS=f"file:{folder}/meet", TESSERA_TIMEOUT="5")
        ranks.append(subprocess.Popen([sys.executable, __file__, folder], env=environment, stderr=subprocess.PIPE, text=True))
    try:
        while not all(os.path.exists(f"{folder}/steps-{rank}") for rank in range(2)) and all(each.poll() is None for each in ranks):
            time.sleep(0.05)
        ranks[victim].send_signal(getattr(signal, name))
        said = ranks[1 - victim].communicate(timeout=100)[1].strip().splitlines()
        print(f"exit {ranks[1 - victim].returncode}: {said[-1]}")
    finally:
        for each in ranks:
            each.kill()


if len(sys.argv) == 2:
    train(sys.argv[1])
else:
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
