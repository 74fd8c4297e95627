"""One rank of a process group makes a different call. Each rank prints its error; the group stays usable.

group_mismatch.py [BACKEND [threads]]: with `threads`, three threads of this process are the ranks."""

import sys
import threading
import time

import numpy as np

import tessera.distributed as dist

backend = sys.argv[1] if len(sys.argv) > 1 else None
lock = threading.Lock()


def case(name, first, other):
    """The errors on the ranks when the last one makes the other call."""
    rank = dist.get_rank()
    try:
        (other if rank == dist.get_world_size() - 1 else first)(np.zeros(4, np.float32))
        said = "nothing"
    except dist.DistributedError as error:
        said = str(error)
    with lock:
        print(f"{name}, rank {rank}: {said}", flush=True)
    if name != "absent":
        dist.barrier()


def main(rank=-1):
    dist.init_process_group(backend, None if rank < 0 else "mismatch", timeout=60, rank=rank, world_size=3 if rank >= 0 else -1)
    case("op", dist.all_reduce, lambda x: dist.all_reduce(x, dist.ReduceOp.MAX))
    case("dtype", dist.all_reduce, lambda x: dist.all_reduce(x.astype(np.int32)))
    case("kind", dist.all_reduce, lambda x: dist.broadcast(x, 0))
    case("count", dist.all_reduce, lambda x: dist.all_reduce(x[:3]))
    case("root", lambda x: dist.broadcast(x, 0), lambda x: dist.broadcast(x, 1))
    time.sleep(0.5)  # until all ranks have left the barrier
    case("absent", dist.all_reduce, lambda x: dist.destroy_process_group())


if sys.argv[2:] == ["threads"]:
    ranks = [threading.Thread(target=main, args=(rank,)) for rank in range(3)]
    for each in ranks:
        each.start()
    for each in ranks:
        each.join()
else:
    main()
