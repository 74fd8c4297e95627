# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""tessera.torch.SyncBatchNorm by one rank of two nodes of two ranks, against BatchNorm on the joined batch of those that share."""

import torch
from torch import nn

import tessera.distributed as dist
from tessera.torch import DistributedDataParallel, SyncBatchNorm

torch.set_num_threads(1)
dist.init_process_group()
rank, size = dist.get_rank(), dist.get_world_size()
sizes = [3, 2, 4, 3]
batch = torch.randn(sum(sizes), 5, 2, 3, generator=torch.Generator().manual_seed(0)).double() * 2 + 50
parts = batch.split(sizes)


def net():
    torch.manual_seed(1)
    return nn.Sequential(nn.Conv2d(5, 4, 1), nn.BatchNorm2d(4), nn.Tanh()).double()


for scope, shared in ((1, range(size)), (0, range(rank // 2 * 2, rank // 2 * 2 + 2))):
    alone, ours = net(), SyncBatchNorm.convert_sync_batchnorm(net(), comm_scope=scope)
    mine, joined = parts[rank].clone().requires_grad_(), torch.cat([parts[i] for i in shared]).requires_grad_()
    there = list(shared).index(rank)
    result, expected = ours(mine), alone(joined)
    result.pow(2).sum().backward()
    expected.pow(2).sum().backward()
    each = [sizes[i] for i in shared]
    torch.testing.assert_close(result, expected.split(each)[there])
    torch.testing.assert_close(mine.grad, joined.grad.split(each)[there])
    torch.testing.assert_close(ours[1].running_var, alone[1].running_var)
    torch.testing.assert_close(ours[1].running_mean, alone[1].running_mean)
    total = ours[1].weight.grad.clone()
    dist.all_reduce(total, group=ours[1].process_group)
    torch.testing.assert_close(total, alone[1].weight.grad)
    ours.eval(), alone.eval()
    torch.testing.assert_close(ours(mine), alone(mine))

# In a wrapped model the gradients of the joined batch's mean loss.
alone, ours = net(), DistributedDataParallel(SyncBatchNorm.convert_sync_batchnorm(net()))
equal = batch.split(3)
ours(equal[rank]).pow(2).mean().backward()
alone(batch).pow(2).mean().backward()
for a, b in zip(ours.parameters(), alone.parameters()):
    torch.testing.assert_close(a.grad, b.grad)

# A batch of one row in total.
norm = SyncBatchNorm(4)
y = norm(torch.randn(int(rank == 0), 4).requires_grad_())
y.sum().backward()
assert torch.isfinite(y).all() and torch.isfinite(norm.running_var).all() and torch.isfinite(norm.weight.grad).all()
for scope in (2, None, True):
    try:
        SyncBatchNorm(4, comm_scope=scope)
    except Exception as error:
        assert f"comm_scope {scope!r} of SyncBatchNorm is not 0" in str(error), error
    else:
        raise AssertionError(scope)
if rank == 0:
    print("both scopes")
dist.destroy_process_group()
