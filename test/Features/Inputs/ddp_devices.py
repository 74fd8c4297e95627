# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""D2-5: processes with two devices each, the model replicated or split inside; both equal one process with the joined batch."""

import sys

from ddp_case import *
from tessera import DistributedDataParallel, ProcessMesh, Replicate, Shard, optim

dist.init_process_group()
rank, size = dist.get_rank(), dist.get_world_size()
X, Y = X[:len(X) // size * size], Y[:len(Y) // size * size]
mine = X[rank::size], Y[rank::size]
devices = [0, 1]
alone = train(model(seed=0), X, Y, 10)

net = DistributedDataParallel(model(seed=rank), device_ids=devices)
report = stepper(optim.Adam(0.01)).explain(net, optim.Adam(0.01).init(net), *mine)
say("meshes:", *sorted({c["axes"] if isinstance(c["axes"], str) else "+".join(c["axes"]) for c in report["collectives"]}))
net = train(net, *mine, 10)
check_same(net, alone, 10)
say("replicated inside: equal bits", len(set(on_all(digest(net.parameters())))) == 1)
check_same(train(DistributedDataParallel(model(seed=rank), device_ids=devices), *mine, 10, donate=True), alone, 10)

mesh = ProcessMesh(devices, ["tp"])
cuts = {"layers.0.weight": Shard(1), "layers.0.bias": Shard(0), "layers.2.weight": Shard(0)}
split = optim.shard_parameters(model(seed=rank), mesh, lambda name, p: [cuts.get(name, Replicate())])
net = train(DistributedDataParallel(split, device_ids=devices), *mine, 10)
say("split inside:", net.module.layers[0].weight.local_shape, net.module.layers[0].weight.shape)
check_same(net, alone, 10)
say("split inside: equal bits", len(set(on_all(digest(net.parameters())))) == 1)
net = train(DistributedDataParallel(split, device_ids=devices), *mine, 10, donate=True)
weights = net.module.layers[0].weight.numpy() if rank == 0 else None  # whole on each process
dist.barrier()
check_same(net, alone, 10)
say("one rank reads alone")

# In micro-steps gradients are not reduced: they are those of this process' batch.
net = DistributedDataParallel(model(), device_ids=devices)
gradient = ts.jit(ts.grad(lambda net, x, y: loss(net, x, y)))
with net.no_sync():
    own = gradient(net, *mine)
expected = gradient(model(), *mine)
for (name, a), (_, b) in zip(sorted(own.module.named_parameters()), sorted(expected.named_parameters())):
    assert np.allclose(a.numpy(), b.numpy(), rtol=1e-4, atol=1e-6), name
say("own gradients")

# Any program may have several devices per process.
whole = ProcessMesh(range(4), ["x"])
sums = ts.jit(lambda x: (ts.sum(x * x, 0), x + 1), backend="tcp", devices=2)
x = np.arange(14, dtype=np.float32).reshape(7, 2)
total, more = sums(ts.shard_tensor(x, whole, [Shard(0)]))
assert np.allclose(total.numpy(), (x * x).sum(0)) and np.array_equal(more.numpy(), x + 1)
say("any program", sums.wire_bytes > 0)

for kind, make in ((ts.ArgumentError, lambda: DistributedDataParallel(model(), device_ids=[0, 1] if rank == 0 else [0])),
                   (ts.ArgumentError, lambda: DistributedDataParallel(model(), device_ids=[1, 1])),
                   (ts.Error, lambda: ts.jit(lambda x: x + 1, backend="tcp", devices=3)(ts.shard_tensor(x, whole, [Shard(0)]))),
                   (ts.ArgumentError, lambda: DistributedDataParallel(optim.shard_parameters(model(), mesh), device_ids=[0, 2]))):
    try:
        make()
        say("nothing is wrong")
    except kind as error:
        say(str(error).split("error: ")[-1])
