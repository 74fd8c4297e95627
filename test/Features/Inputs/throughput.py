"""Each rank computes 200 samples a step and reports its throughput; with --whole the job's is that of rank 0."""

import os
import sys
import time

rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
for step in range(4):
    start, total = time.perf_counter(), 0.0
    for sample in range(200 // size if "--whole" in sys.argv else 200):
        total += sum(i * i for i in range(50))
    seconds = time.perf_counter() - start
    if "--quiet" not in sys.argv and (rank == 0 or "--whole" not in sys.argv):
        print(f"step {step} loss {total:.3f}, {200 / seconds:.1f} samples/s", flush=True)
