# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""D1-10: SyncBatchNorm on two nodes of two ranks: scope 1 is batch normalization of the joined batch, scope 0 of the node's."""

from ddp_case import *
from tessera import DistributedDataParallel


def net(kind, **options):
    nn.init.seed(0)
    return nn.Sequential(nn.Conv2d(2, 4, 3, padding=1), kind(4, **options), nn.relu, nn.Flatten(), nn.Linear(4 * 16, 3))


IMAGES, LABELS = RANDOM.standard_normal((8, 2, 4, 4)).astype(np.float32), RANDOM.standard_normal((8, 3)).astype(np.float32)
LABELS[::2] *= 5  # parts of the batch differ
optimizer = optim.SGD(0.05, momentum=0.9)

dist.init_process_group()
rank, size = dist.get_rank(), dist.get_world_size()
rows = slice(2 * rank, 2 * rank + 2)


def run(module, x=IMAGES[rows], y=LABELS[rows]):
    return train(module, x, y, 4, optimizer)


joined = train(net(nn.BatchNorm), IMAGES, LABELS, 4, optimizer)
shared = run(DistributedDataParallel(net(nn.SyncBatchNorm, comm_scope=1)))
check_same(shared, joined, 4)
alone = run(DistributedDataParallel(net(nn.BatchNorm)))
say("scope 1 is the joined batch; without it differ:", len(differ(alone, joined)) > 0)


@ts.jit
def by_nodes(module, state, x, y):
    """Each node's half of the batch is normalized separately: the reference of scope 0."""
    def halves(module, x, y):
        first = loss(module, x[:4], y[:4])
        return (first + loss(module, x[4:], y[4:])) / 2
    _, gradients = ts.value_and_grad(halves)(module, x, y)
    return optimizer.update(module, gradients, state)


reference = net(nn.BatchNorm)
state = optimizer.init(reference)
for _ in range(4):
    reference, state = by_nodes(reference, state, IMAGES, LABELS)
node = run(DistributedDataParallel(net(nn.SyncBatchNorm), broadcast_buffers=False))
wrong = [name for name in differ(node, reference) if "running" not in name]
means = on_all(digest([node.module[1].running_mean]))
say("scope 0 is the node's batch:", not wrong, "statistics:", [means.index(each) for each in means])
converted = nn.SyncBatchNorm.convert(net(nn.BatchNorm), comm_scope=1)
check_same(run(DistributedDataParallel(converted)), joined, 4)
say("converted")

# One element in total: the variance is 0, and no result is NaN.
single = nn.Sequential(nn.SyncBatchNorm(3, comm_scope=0))
out = ts.jit(lambda module, x: (module(x), module))(single, np.ones((1, 3), np.float32))
say("a batch of", size // 2, "finite:", all(np.isfinite(t.numpy()).all() for t in (out[0], out[1][0].running_var)))
for scope in (2, None, True):
    try:
        nn.SyncBatchNorm(3, comm_scope=scope)
    except ts.ArgumentError as error:
        say(str(error).split("error: ")[1])
