"""Checkpoints of the ranks of a process group: BACKEND FOLDER, or BACKEND FOLDER OTHER, where ranks above 0 save into OTHER."""

import sys

import numpy as np

import tessera as ts
import tessera.distributed as dist
from tessera import ProcessMesh, Shard, Sharding
from tessera.checkpoints import CheckpointError, LocalTensor, load_checkpoint, save_checkpoint

backend, *folders = sys.argv[1:]
dist.init_process_group(backend)
me, size = dist.get_rank(), dist.get_world_size()
folder = folders[min(me, 1)] if len(folders) > 1 else folders[0]
whole, rows = np.arange(70, dtype=np.float32).reshape(7, 10), Sharding(ProcessMesh(range(size), ["x"]), (Shard(0),))
columns = Sharding(ProcessMesh(range(size), ["x"]), (Shard(1),))


def part(value, sharding):
    return LocalTensor(ts.asarray(value)._placed(sharding).local_value(me), value.shape, sharding, me)


try:
    for step in (1, 2):
        state = {"w": part(whole + step, rows), "all": np.full(3, float(step)), "step": step}
        save_checkpoint(folder, state, step, asynchronous=step == 2).wait()
        total = np.array([me + 1.0])
        dist.all_reduce(total)  # the group stays usable
        assert total[0] == size * (size + 1) / 2
    loaded = load_checkpoint(folder, {"w": part(np.zeros_like(whole), columns), "all": np.zeros(3), "step": 0})
    np.testing.assert_array_equal(loaded.state["w"].array, part(whole + 2, columns).array)
    assert (loaded.step, loaded.state["step"], loaded.state["all"][0]) == (2, 2, 2.0)
    # Different states: every rank gets the error.
    for state in ({"w": np.ones(2 + me)}, {"w": np.ones(2)} if me else {"v": np.ones(2)}):
        try:
            save_checkpoint(folder, state, 3)
            print("saved", flush=True)
        except CheckpointError as error:
            print("refused", me, error, flush=True)
    dist.barrier()
    if me == 0:  # only rank 0
        save_checkpoint(folder, {"b": whole}, 4, alone=True)
    dist.barrier()
    print("good", load_checkpoint(folder).step, flush=True)
except CheckpointError as error:
    print("error", me, error, flush=True)
dist.destroy_process_group()
