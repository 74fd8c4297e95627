"""A training loop with checkpoints over all ranks of a job: FOLDER STEPS [ACT...]; ACT is kill:RANK:STEP or term:RANK:STEP.

Prints the losses of its steps. On the first start a rank that ACT names sends itself, or (term) its launcher, a signal after that step.
"""

import os
import signal
import sys

import numpy as np

import tessera as ts
from tessera import ProcessMesh, Shard, nn, optim, ranks, shard_tensor
from tessera.checkpoints import CheckpointManager

me, mesh = ranks.read(), ProcessMesh(range(ranks.read().size), ["dp"])
nn.init.seed(0)
model = nn.Sequential(nn.Linear(12, 20), nn.gelu, nn.Linear(20, 4))
model = optim.shard_parameters(model, mesh)  # each rank has a part of each matrix
optimizer = ts.shard_optimizer(optim.Adam(1e-2), level=1)
state = {"model": model, "state": optimizer.init(model)}


@ts.jit(donate=True, backend=os.environ.get("BACKEND", "tcp") if me.size > 1 else "threads")
def train(model, state, x, y):
    value, gradients = ts.value_and_grad(lambda model, x, y: nn.mse_loss(model(x), y))(model, x, y)
    return *optimizer.update(model, gradients, state), value


folder, steps, *acts = sys.argv[1:]
manager = CheckpointManager(folder, every=2)
loaded = manager.restore(state)
state, begin = (loaded.state, loaded.step) if loaded else (state, 0)
if me.rank == 0:
    print(f"{me.size} ranks begin behind step {begin}", flush=True)
for step in range(begin, int(steps)):
    random = np.random.default_rng(step)
    x, y = random.standard_normal((24, 12), np.float32), random.standard_normal((24, 4), np.float32)
    *new, value = train(state["model"], state["state"], shard_tensor(x, mesh, [Shard(0)]), shard_tensor(y, mesh, [Shard(0)]))
    state = dict(zip(("model", "state"), new))
    if me.rank == 0:
        print(f"loss {step} {value.item():.7g}", flush=True)
    else:
        value.item()
    manager.after(step + 1, state)
    for act, rank, at in (each.split(":") for each in acts):
        if os.environ.get("TESSERA_RESTART", "0") == "0" and (int(rank), int(at)) == (me.rank, step):
            os.kill(os.getpid(), signal.SIGKILL if act == "kill" else signal.SIGTERM)
