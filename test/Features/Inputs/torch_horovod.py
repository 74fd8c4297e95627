# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""tessera.horovod.torch by one rank of a job: gradients through calls, sparse gradients, SyncBatchNorm, a timeline."""

import json
import sys

import torch

import tessera.horovod.torch as hvd

torch.set_num_threads(1)
hvd.init()
rank, size = hvd.rank(), hvd.size()
hvd.start_timeline(sys.argv[1])


def refused(says, call):
    try:
        call()
    except Exception as error:
        assert says in str(error), f"expected '{says}' in: {error}"
    else:
        raise AssertionError(f"nothing was refused; expected: {says}")


def gradient(x, call):
    """Of the sum of call(x), weighted by this rank's number from 1 on."""
    x = x.clone().requires_grad_()
    (call(x) * (rank + 1)).sum().backward()
    return x.grad


same, parts = torch.testing.assert_close, torch.arange(2.0 * size)
mean, numbers = (size + 1) / 2, torch.arange(1.0, size + 1).repeat_interleave(2)
same(gradient(torch.ones(3), lambda x: hvd.allreduce(x, name="a", op=hvd.Sum)), torch.full((3,), mean * size))
same(gradient(torch.ones(3), hvd.allreduce), torch.full((3,), mean))
same(gradient(torch.ones(3), lambda x: hvd.grouped_allreduce([x, x])[1]), torch.full((3,), mean))
same(gradient(torch.ones(rank + 1, 2), hvd.allgather), torch.full((rank + 1, 2), mean))
same(gradient(torch.ones(2), lambda x: hvd.broadcast(x, 1)), torch.full((2,), mean if rank == 1 else 0.0))
same(gradient(parts, hvd.alltoall), numbers)
same(gradient(parts, lambda x: hvd.alltoall(x, splits=[2] * size)[0]), numbers)
same(gradient(parts, lambda x: hvd.reducescatter(x, op=hvd.Sum)), numbers * size)
refused("allreduce by Max of a tensor that requires a gradient", lambda: hvd.allreduce(parts.clone().requires_grad_(), op=hvd.Max))
assert hvd.allreduce(parts, op=hvd.Max).equal(parts)

# Rows that several ranks look up, as sparse gradients and as dense ones.
for sparse_as_dense in (False, True):
    table = torch.nn.Embedding(6, 2, sparse=True)
    torch.nn.init.ones_(table.weight)
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(table.parameters(), lr=1.0), table.named_parameters(), sparse_as_dense=sparse_as_dense)
    optimizer.zero_grad()
    table(torch.tensor([rank, 5])).sum().backward()
    optimizer.step()
    expected = torch.ones(6, 2)
    expected[:size] -= 1 / size
    expected[5] -= 1
    same(table.weight.detach(), expected)
refused("takes a sparse tensor", lambda: hvd.sparse_allreduce_async(torch.ones(2)))

# Batches of different sizes, against the joined one.
ours, theirs = hvd.SyncBatchNorm(4), torch.nn.BatchNorm1d(4)
sizes = [each + 2 for each in range(size)]
batch = torch.randn(sum(sizes), 4, generator=torch.Generator().manual_seed(0)) * 3 + 100
mine = batch.split(sizes)[rank].clone().requires_grad_()
batch.requires_grad_()
ours(mine).pow(3).sum().backward()
theirs(batch).pow(3).sum().backward()
same(mine.grad, batch.grad.split(sizes)[rank], rtol=1e-3, atol=1e-3)
same(ours.running_mean, theirs.running_mean)
same(ours.running_var, theirs.running_var)

if rank == 0:
    refused("a timeline is already running", lambda: hvd.start_timeline(sys.argv[1]))
hvd.stop_timeline()
if rank == 0:
    with open(sys.argv[1], encoding="utf-8") as file:
        events = json.load(file)
    calls = [event for event in events if event["ph"] == "X"]
    row = next(event["tid"] for event in events if event["ph"] == "M" and event["args"]["name"] == "a")
    assert any(event["tid"] == row and event["dur"] > 0 and event["args"]["bytes"] == 12 for event in calls), events
    print("all right")
