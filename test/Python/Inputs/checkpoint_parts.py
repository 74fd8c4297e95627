"""A rank of a job that trains between processes, saves, loads and continues: FOLDER. Each rank prints its saved and loaded parts."""

import os
import sys

import numpy as np

import tessera as ts
from tessera import ProcessMesh, Replicate, Shard, ranks, shard_tensor
from tessera.runtime import Session

me, folder = ranks.read(), sys.argv[1]
mesh, later = ProcessMesh(range(3), ["x"]), ProcessMesh([1, 2], ["y"])
random = np.random.default_rng(0)


def placed(shape, mesh, *placements, dtype=np.float32):
    return shard_tensor(random.standard_normal(shape).astype(dtype), mesh, list(placements))


state = {"rows": placed((7, 5), mesh, Shard(0)), "columns": placed((5, 4), mesh, Shard(1)), "whole": placed((4,), mesh, Replicate()),
         "later": placed((4, 6), later, Shard(1)), "count": shard_tensor(np.int64(0), mesh, [Replicate()])}


@ts.jit(donate=True, backend=os.environ.get("BACKEND", "tcp"))
def step(state, x):
    y = ts.tanh(ts.matmul(ts.tanh(ts.matmul(x, state["rows"])), state["columns"]) + state["whole"])
    z = ts.matmul(ts.reshard(y, later, [Replicate()]), state["later"])
    new = {"rows": state["rows"] * 0.5, "columns": state["columns"] + 1, "whole": state["whole"] - ts.sum(y, 0), "later": state["later"] * 2,
           "count": state["count"] + 1}
    return new, ts.sum(ts.reshard(z, mesh, [Replicate()]))


@ts.jit(backend=os.environ.get("BACKEND", "tcp"))
def judge(rows):
    return ts.sum(rows)


x, reads = placed((6, 7), mesh, Replicate()), []
whole = Session._read
Session._read = lambda self, index: reads.append(self.results[index].name) or whole(self, index)

state, value = step(state, x)
state, value = step(state, x)
reads.clear()
ts.save_checkpoint(folder, state, 2, chunk=64, asynchronous=os.environ.get("ASYNCHRONOUS") == "1").wait()
print("saving reads", len(reads), "whole values")
judged = judge(state["rows"]).item()  # only its part is passed to the other program
print("judging reads", reads)

loaded = ts.load_checkpoint(folder, state)
total = sum(os.path.getsize(os.path.join(loaded.path, name)) for name in os.listdir(loaded.path) if name.endswith(".safetensors"))
others = {name for name, tensor in loaded.state.items() if tensor._data is None}
print("loading reads", reads[1:], "a part of", *sorted(others), loaded.bytes_read < total)

went, _ = step(state, x)
again, _ = step(loaded.state, x)
same = all(np.array_equal(went_value, again[name].numpy()) for name, went_value in [(name, each.numpy()) for name, each in went.items()])
print("goes on alike", same, again["count"].item(), judged == judge(ts.load_checkpoint(folder, loaded.state).state["rows"]).item())
reads.clear()
unused = ts.load_checkpoint(folder, again).state
ts.save_checkpoint(folder, unused, 3)  # as it was loaded
print("saving again reads", len(reads), "whole values")
values, fresh = [loaded.state["rows"].numpy(), loaded.state["later"].numpy()], ts.load_checkpoint(folder, step=3).state
print("whole when asked", np.array_equal(values[0], fresh["rows"].numpy()), np.array_equal(values[1], fresh["later"].numpy()))
