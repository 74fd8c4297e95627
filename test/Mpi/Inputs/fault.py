"""fault.py SIGNAL VICTIM FOLDER COMMAND...: four ranks meet in the folder; the victim gets the signal while steps run. All others end, each
with a message about the victim, and leave a dump."""

import glob
import os
import signal
import subprocess
import sys
import time

name, victim, folder, command = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4:]
os.makedirs(folder, exist_ok=True)
ranks = []
for rank in range(4):
    environment = dict(os.environ, TESSERA_RANK=str(rank), TESSERA_SIZE="4", TESSERA_RENDEZVOUS=f"file:{folder}/meet")
    ranks.append(subprocess.Popen(command + ["--dump-dir", f"{folder}/dumps"], env=environment, stdout=subprocess.DEVNULL,
                                  stderr=subprocess.PIPE, text=True))


def seconds(pid):
    """What a process has computed."""
    with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        return sum(map(int, file.read().rpartition(")")[2].split()[11:13])) / os.sysconf("SC_CLK_TCK")


while seconds(ranks[victim].pid) < 0.5 and ranks[victim].poll() is None:
    time.sleep(0.05)  # until steps run
ranks[victim].send_signal(getattr(signal, name))
try:
    for rank, process in enumerate(ranks):
        if rank == victim:
            continue
        error = process.communicate(timeout=60)[1]
        print(f"rank {rank} exits with {process.returncode}: {error.strip()}")
finally:
    for process in ranks:
        process.kill()
print("dumps:", *sorted(os.path.basename(path) for path in glob.glob(f"{folder}/dumps/*")))
