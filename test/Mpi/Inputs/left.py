"""A rank waits for a message of one that has left the group and stays alive: BACKEND FOLDER. The timeout is long."""

import os
import sys
import time

import numpy as np

import tessera.distributed as dist

dist.init_process_group(sys.argv[1], timeout=600)
rank, x, told = dist.get_rank(), np.zeros(4, np.float32), os.path.join(sys.argv[2], "told")
if rank == 1:
    for number in (1, 2):
        dist.send(x + number, 2)
    dist.destroy_process_group()
elif rank == 2:
    time.sleep(0.5)  # rank 1 may have left, but its message still arrives
    for number in (1, 2):
        dist.recv(x, 1)
        assert x[0] == number, x
    try:
        dist.recv(x, 1)
    except dist.DistributedError as error:
        print(f"told: {error}", flush=True)
    open(told, "w").close()
else:
    try:
        dist.recv(x)  # from any rank
    except dist.DistributedError:
        pass
while not os.path.exists(told):  # a launcher ends all as soon as one of them has ended
    time.sleep(0.05)
os._exit(1)
