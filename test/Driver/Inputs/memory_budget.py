# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Requests the least memory named by an error, and the mean of that and the memory of the plan without a budget."""

import json
import re
import subprocess
import sys

error, free, tessera, program = sys.argv[1:]
least = int(re.search(r"needs .*? \((\d+) bytes\)", open(error).read()).group(1))
unbounded = json.load(open(free))
most = unbounded["peak_memory_bytes"]


def explain(budget):
    command = [tessera, "explain", program, "--devices", "8", "--mode", "dynamic_programming", "--json", "-",
               "--memory-budget", repr(budget / 2**30)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


smallest = explain(least)
if smallest["peak_memory_bytes"] <= least <= most:
    print("the least is reached")
middle = explain((least + most) // 2)
if middle["peak_memory_bytes"] <= (least + most) // 2:
    print("half way is kept to")
if all(abs(plan["search"]["memory"] / plan["peak_memory_bytes"] - 1) <= 0.1 for plan in (smallest, unbounded)):
    print("both ends are estimated within 10 %")
