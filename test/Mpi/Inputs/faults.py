"""faults.py [OPTIONS] LAUNCHER...: repeatedly breaks a rank of a running job, and reports how the others end.

Every run starts `LAUNCHER... rank` with four ranks, waits until steps run, and breaks one of them. The job must end, the messages
of its ranks and its launcher must name only the broken rank, and none of its processes may survive (with --times: three seconds later). Prints one line per
fault, with --times with the longest time from the fault to the end of the last rank; fails if a run violates these rules."""

import argparse
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid

LONG = 120  # seconds until a run counts as hanging
FAULTS = ("kill", "stop", "exit", "sysexit")
MARK = "TESSERA_FAULT_MARK"
RANK = """
import os, sys, time
import numpy as np
folder = sys.argv[1]
rank = next(os.environ[name] for name in ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK") if name in os.environ)
with open(f"{folder}/pid-{rank}.new", "w") as file:
    file.write(str(os.getpid()))
os.rename(f"{folder}/pid-{rank}.new", f"{folder}/pid-{rank}")
sys.stdout = sys.stderr = open(f"{folder}/said-{rank}", "w")
os.dup2(sys.stderr.fileno(), 2)

def ends():
    if os.path.exists(f"{folder}/exit-{rank}"):
        os._exit(1)
    if os.path.exists(f"{folder}/sysexit-{rank}"):
        sys.exit(1)

def begun():
    open(f"{folder}/runs-{rank}", "w").close()

def meet():
    # The deadline is of steps: on a busy machine ranks may need longer to come so far.
    open(f"{folder}/comes-{rank}", "w").close()
    while not all(os.path.exists(f"{folder}/comes-{other}") for other in range(4)):
        time.sleep(0.01)
"""
GROUP = RANK + """
import tessera.distributed as dist
meet()
dist.init_process_group(sys.argv[3], timeout=float(sys.argv[2]))
x = np.ones(1000, np.float32)
while True:
    dist.all_reduce(x, dist.ReduceOp.MAX)
    begun()
    ends()
"""
PROGRAM = RANK + """
os.environ["TESSERA_TIMEOUT"] = sys.argv[2]
import tessera as ts
from tessera import ProcessMesh, Shard, shard_tensor
mesh = ProcessMesh(range(4), ["d"])
step = ts.jit(lambda x: (x - 0.5 * x.sum() / x.size, (x * x).sum()), mesh=mesh, backend=sys.argv[3])
x = shard_tensor(np.arange(64, dtype=np.float32), mesh, [Shard(0)])
step.lower(x).compile()  # all that takes long has been loaded
meet()
while True:
    x, loss = step(x)
    float(np.asarray(loss))
    begun()
    ends()
"""


def living(mark):
    """Processes that the job has started, except zombies."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/environ", "rb") as file:
                if f"{MARK}={mark}".encode() in file.read():
                    found.append(int(name))
        except OSError:
            pass
    return found


def waits(condition, seconds):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.005)
    return True


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def text(path):
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except OSError:
        return ""


def once(launcher, program, backend, fault, deadline, choose, settles):
    """(seconds until the last rank had ended, error)"""
    folder, mark = tempfile.mkdtemp(prefix="tessera-faults-"), uuid.uuid4().hex
    script, victim = f"{folder}/rank.py", choose.randrange(4)
    with open(script, "w", encoding="utf-8") as file:
        file.write(program)
    said = open(f"{folder}/launcher", "w", encoding="utf-8")
    words = [sys.executable] if "tessera.launch" not in launcher else []
    job = subprocess.Popen([*launcher, *words, script, folder, str(deadline), backend], stdout=said, stderr=said, stdin=subprocess.DEVNULL,
                           env={**os.environ, MARK: mark})
    wrong, seconds = [], float("nan")
    try:
        if not waits(lambda: all(os.path.exists(f"{folder}/runs-{rank}") for rank in range(4)) or job.poll() is not None, LONG):
            return seconds, ["the job does not start: " + text(f"{folder}/launcher")[-500:]]
        if job.poll() is not None:
            return seconds, ["the job ends before the fault: " + text(f"{folder}/launcher")[-500:]]
        pids = [int(text(f"{folder}/pid-{rank}")) for rank in range(4)]
        time.sleep(choose.random() * 0.3)
        began = time.monotonic()
        if fault in ("exit", "sysexit"):
            open(f"{folder}/{fault}-{victim}", "w", encoding="utf-8").close()
        else:
            os.kill(pids[victim], {"kill": signal.SIGKILL, "stop": signal.SIGSTOP}[fault])
        others = [pid for rank, pid in enumerate(pids) if rank != victim]
        if not waits(lambda: not any(map(alive, others)), deadline + LONG):
            wrong.append("other ranks go on")
        seconds = time.monotonic() - began
        try:
            job.wait(LONG)
        except subprocess.TimeoutExpired:
            wrong.append("the launcher goes on")
        waits(lambda: not living(mark), settles)
        if left := living(mark):
            wrong.append(f"{len(left)} processes are left")
        named = set()
        for rank in range(4):
            # A message begins with the rank that it blames.
            for line in re.findall(r"(?:error|Error): (.*)", text(f"{folder}/said-{rank}")):
                found = re.search(r"rank (\d+) \(", line)
                if found and rank != victim:
                    named.add(int(found[1]))
        launched = text(f"{folder}/launcher")
        if re.search(rf"\],{victim}\]|rank {victim}\b|pid {pids[victim]}|PID {pids[victim]}|process {pids[victim]}", launched):
            named.add(victim)
        # MPICH's launcher kills the others before they notice, and names no rank.
        mute = fault in ("kill", "exit") and not any(text(f"{folder}/said-{rank}") for rank in range(4))
        if named != {victim} and not (mute and not named):
            wrong.append(f"rank {victim} was broken, and {sorted(named)} are named: " + " | ".join(
                f"{rank}: {text(f'{folder}/said-{rank}').strip()[-300:]}" for rank in range(4)) + " | " + launched[-300:])
        return seconds, wrong
    finally:
        for pid in living(mark):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        job.wait()
        said.close()
        shutil.rmtree(folder, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--backend", default="tcp")
    parser.add_argument("--program", choices=("group", "compiled"), default="group")
    parser.add_argument("--faults", default=",".join(FAULTS))
    parser.add_argument("--deadline", type=float, default=2)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--times", action="store_true")
    parser.add_argument("launcher", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    launcher = options.launcher[options.launcher[:1] == ["--"]:]
    choose, failed = random.Random(options.seed), False
    for fault in options.faults.split(","):
        longest, problems = 0.0, []
        for _ in range(options.runs):
            seconds, wrong = once(launcher, {"group": GROUP, "compiled": PROGRAM}[options.program], options.backend, fault,
                                  options.deadline, choose, 3 if options.times else LONG)
            longest, problems = max(longest, seconds), problems + wrong
        times = f", at most {longest:.2f} s" if options.times else ""
        print(f"{options.program} {options.backend} {fault}: {options.runs - len(problems)} of {options.runs} as they must be{times}", flush=True)
        for each in problems:
            print("  " + each.replace("\n", " "), flush=True)
            failed = True
    sys.exit(failed)


if __name__ == "__main__":
    main()
