"""fault.py SIGNAL VICTIM FOLDER COMMAND...: four ranks meet in the folder; the victim gets the signal when rank 0 has printed a step. All others end,
each with a message about the victim, and leave a dump."""

import glob
import os
import signal
import subprocess
import sys
import time

name, victim, folder, command = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4:]
os.makedirs(folder, exist_ok=True)
ranks, steps = [], open(f"{folder}/steps", "w", encoding="utf-8")
for rank in range(4):
    environment = dict(os.environ, TESSERA_RANK=str(rank), TESSERA_SIZE="4", TESSERA_RENDEZVOUS=f"file:{folder}/meet")
    ranks.append(subprocess.Popen(command + ["--dump-dir", f"{folder}/dumps"], env=environment, stdout=subprocess.DEVNULL if rank else steps,
                                  stderr=subprocess.PIPE, text=True))


def has_steps():
    with open(f"{folder}/steps", encoding="utf-8") as file:
        return any(line.startswith("step") for line in file)


while not has_steps() and all(each.poll() is None for each in ranks):
    time.sleep(0.05)
ranks[victim].send_signal(getattr(signal, name))
try:
    for rank, process in enumerate(ranks):
        if rank == victim:
            continue
        error = process.communicate(timeout=200)[1]
        print(f"rank {rank} exits with {process.returncode}: {' | '.join(error.strip().splitlines())}")
finally:
    for process in ranks:
        process.kill()
print("dumps:", *sorted(os.path.basename(path) for path in glob.glob(f"{folder}/dumps/*")))
