"""Two hosts on this machine: network namespaces with a virtual cable, and separate host names and mounts. Needs root.

two_hosts.py bytes|cut: `bytes` compares the bytes of collectives between the hosts, by the kernel's counters of the cable, with the
prediction; `cut` pulls the cable while a job runs. The ranks are started by two `tessera launch`."""

import json
import os
import subprocess
import sys
import tempfile
import time

HOSTS = (("tessera-a", "10.77.0.1"), ("tessera-b", "10.77.0.2"))
DEADLINE = 4
RANK = """
import json, os, subprocess, sys, time
import numpy as np
import tessera.distributed as dist
dist.init_process_group("tcp", timeout=float(sys.argv[2]))
rank, size = dist.get_rank(), dist.get_world_size()

def again():
    # Bytes that TCP of this host has sent once more: where the other end is late, it does so though nothing was lost.
    with open("/proc/net/snmp", encoding="ascii") as file:
        names, values = (line.split() for line in file if line.startswith("Tcp:"))
    return int(dict(zip(names, values))["RetransSegs"]) * 1448  # 1500 less the heads of IP and TCP

def sent():
    shown = json.loads(subprocess.run(["ip", "-s", "-j", "link", "show", "dev", "cable"], capture_output=True, check=True).stdout)
    return shown[0]["stats64"]["tx"]["bytes"] - again()
"""
BYTES = RANK + """
MiB = 1 << 20
count = 2 * MiB  # elements: 8 MiB
x, part, whole = np.ones(count, np.float32), np.ones(count // size, np.float32), np.ones(count, np.float32)
n, here = size, size // 2
# Bytes from this host to the other one, of `direct`: each rank sends each other one its part.
across = here * (n - here)
back = (n - here) * 4 * count  # what a broadcast sends; the other way go acknowledgements alone
cases = {
    "all_reduce": (lambda: dist.all_reduce(x, algorithm="direct"), 2 * across * 4 * count // n),
    "reduce_scatter": (lambda: dist.reduce_scatter_tensor(part, whole, algorithm="direct"), across * 4 * count // n),
    "all_gather": (lambda: dist.all_gather_into_tensor(whole, part, algorithm="direct"), across * 4 * count // n),
    "broadcast": (lambda: dist.broadcast(x, 0, algorithm="direct"), back if rank < here else 0),
    "all_to_all": (lambda: dist.all_to_all_single(x, whole, algorithm="direct"), across * 4 * count // n),
}
for name, (call, predicted) in cases.items():
    dist.barrier()
    time.sleep(0.1)  # until what the barrier has sent is counted
    before = sent()
    dist.barrier()
    call()
    dist.barrier()
    time.sleep(0.1)
    found = sent() - before
    if rank in (0, here):
        print(json.dumps({"case": name, "host": rank // here, "predicted": predicted, "found": found, "peers": across,
                          "moved": max(predicted, back if name == "broadcast" else 0)}), flush=True)
dist.destroy_process_group()
"""
CUT = RANK + """
x = np.ones(1000, np.float32)
open(f"{sys.argv[1]}/runs-{rank}", "w").close()
try:
    while True:
        dist.all_reduce(x, dist.ReduceOp.MAX)
except dist.DistributedError as error:
    print(f"rank {rank} is told: {error}", flush=True)
    sys.exit(1)
"""


def run(*words):
    subprocess.run(words, check=True, capture_output=True, text=True)


class Host:
    def __init__(self, name):
        self.process = subprocess.Popen(["unshare", "--net", "--uts", "--mount", "sh", "-c", f"hostname {name} && echo ready && exec sleep 1000"],
                                        stdout=subprocess.PIPE, text=True)
        if self.process.stdout.readline() != "ready\n":
            sys.exit(f"there is no namespace for {name}")
        self.enter = ["nsenter", "-t", str(self.process.pid), "-n", "-u", "-m"]

    def start(self, words, out):
        return subprocess.Popen([*self.enter, *words], stdout=out, stderr=out, stdin=subprocess.DEVNULL, cwd=os.getcwd())


def launch(hosts, folder, script, ranks):
    """Runs a launcher on each host; returns their output."""
    with open(f"{folder}/token", "w", encoding="utf-8") as file:
        file.write("a secret of both hosts")
    os.chmod(f"{folder}/token", 0o600)
    started = []
    for node, host in enumerate(hosts):
        words = [sys.executable, "-m", "tessera.launch", "--nnodes", "2", "--node_rank", str(node), "--nproc_per_node", str(ranks),
                 "--master_addr", HOSTS[0][1], "--token_file", f"{folder}/token", "--timeout", "20", script, folder, str(DEADLINE)]
        started.append(host.start(words, open(f"{folder}/node-{node}", "w", encoding="utf-8")))
    return started


def said(folder, node):
    with open(f"{folder}/node-{node}", encoding="utf-8") as file:
        return file.read()


def compare(hosts, folder, script):
    with open(script, "w", encoding="utf-8") as file:
        file.write(BYTES)
    wrong = False
    for ranks in (1, 2):
        for each in launch(hosts, folder, script, ranks):
            if each.wait(120) != 0:
                sys.exit(said(folder, 0) + said(folder, 1))
        for line in (said(folder, 0) + said(folder, 1)).splitlines():
            if "{" in line:
                found = json.loads(line[line.index("{"):])
                off = found["found"] - found["predicted"]
                fits = -4096 * found["peers"] <= off <= 0.01 * found["moved"] + 4096 * found["peers"]
                wrong |= not fits
                print(f"{ranks} a host, {found['case']} from host {found['host']}: {found['predicted']} predicted, "
                      f"{'fits' if fits else 'off'}" + (f" ({off:+d}, {off / max(found['predicted'], 1):+.2%})" if "--figures" in sys.argv or not fits else ""))
    return wrong


def cut(hosts, folder, script):
    with open(script, "w", encoding="utf-8") as file:
        file.write(CUT)
    started = launch(hosts, folder, script, 2)
    end = time.monotonic() + 60
    while not all(os.path.exists(f"{folder}/runs-{rank}") for rank in range(4)):
        time.sleep(0.05)
        if time.monotonic() > end:
            sys.exit("the job does not start: " + said(folder, 0) + said(folder, 1))
    time.sleep(0.5)
    began = time.monotonic()
    run(*hosts[0].enter, "ip", "link", "set", "cable", "down")
    told, ended = {}, {}
    while time.monotonic() < began + 60 and len(ended) < 2:
        for node in (0, 1):
            for line in said(folder, node).splitlines():
                if " is told: " in line:
                    told.setdefault(line, time.monotonic() - began)
            if started[node].poll() is not None:
                ended.setdefault(node, time.monotonic() - began)
        time.sleep(0.02)
    figures = "--figures" in sys.argv
    for line in sorted(told):
        print(line + (f" ({told[line]:.2f} s)" if figures else ""))
    for node in (0, 1):
        print(f"the launcher of host {node} {'ends' if node in ended else 'goes on'}" + (f" ({ended.get(node, 0):.2f} s)" if figures else ""))
        if "--figures" in sys.argv:
            print(said(folder, node))
    for each in started:
        each.kill()
    return len(ended) < 2


def main():
    with tempfile.TemporaryDirectory(prefix="tessera-hosts-") as folder:
        os.chmod(folder, 0o755)
        hosts = [Host(name) for name, _ in HOSTS]
        try:
            run("ip", "link", "add", f"ts{os.getpid()}a", "type", "veth", "peer", "name", f"ts{os.getpid()}b")
            for host, (_, address), end in zip(hosts, HOSTS, "ab"):
                run("ip", "link", "set", f"ts{os.getpid()}{end}", "netns", str(host.process.pid))
                run(*host.enter, "ip", "link", "set", f"ts{os.getpid()}{end}", "name", "cable")
                run(*host.enter, "ip", "addr", "add", f"{address}/24", "dev", "cable")
                run(*host.enter, "ip", "link", "set", "lo", "up")
                run(*host.enter, "ip", "link", "set", "cable", "up")
            return {"bytes": compare, "cut": cut}[sys.argv[1]](hosts, folder, f"{folder}/rank.py")
        finally:
            for host in hosts:
                host.process.kill()
                host.process.wait()


if __name__ == "__main__":
    sys.exit(main())
