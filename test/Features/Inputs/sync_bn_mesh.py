# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""D1-10 in one program of all devices: statistics over mesh axes. And a batch of one element in a job of one process."""

from ddp_case import *
from tessera import ProcessMesh, Shard, shard_tensor

mesh = ProcessMesh([[0, 1], [2, 3]], ["node", "local"])


def net(kind, **options):
    nn.init.seed(0)
    return nn.Sequential(nn.Linear(8, 16), kind(16, **options), nn.gelu, nn.Linear(16, 4))


cut = [shard_tensor(array, mesh, [Shard(0, 0), Shard(0, 1)]) for array in (X, Y)]
optimizer = optim.SGD(0.1, momentum=0.9)
whole = train(net(nn.SyncBatchNorm, comm_scope=1), *cut, 4, optimizer)
check_same(whole, train(net(nn.BatchNorm), X, Y, 4, optimizer), 4)
print("scope 1 is the whole batch")


@ts.jit
def halves(module, state, x, y):
    def both(module, x, y):
        first = loss(module, x[:8], y[:8])
        return (first + loss(module, x[8:], y[8:])) / 2
    return optimizer.update(module, ts.grad(both)(module, x, y), state)


nodes = train(net(nn.SyncBatchNorm), *cut, 4, optimizer)
reference = net(nn.BatchNorm)
state = optimizer.init(reference)
for _ in range(4):
    reference, state = halves(reference, state, X, Y)
print("scope 0 is the node's:", [name for name in differ(nodes, reference) if "running" not in name])
step = stepper(optimizer)
for scope in (0, 1):
    module = net(nn.SyncBatchNorm, comm_scope=scope)
    print(f"scope {scope}:", sorted({tuple(c["axes"]) for c in step.explain(module, optimizer.init(module), *cut)["collectives"]}))
single = nn.SyncBatchNorm(3, comm_scope=1)
y, single = ts.jit(lambda module, x: (module(x), module))(single, np.full((1, 3), 2, np.float32))
print("a batch of 1:", y.numpy(), single.running_var.numpy())
