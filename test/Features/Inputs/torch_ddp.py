# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""DistributedDataParallel of modules of PyTorch, by one rank of a job, against one process with the joined batch."""

import contextlib
import copy

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import tessera.distributed as dist
from tessera import DistributedSampler
from tessera.torch import DistributedDataParallel

torch.set_num_threads(1)
dist.init_process_group()
rank, size = dist.get_rank(), dist.get_world_size()
X, Y = torch.randn(size * 6, 5, generator=torch.Generator().manual_seed(0)).double(), torch.arange(size * 6) % 3
mine = slice(rank * 6, rank * 6 + 6)


def say(*words):
    if rank == 0:
        print(*words, flush=True)


def net(seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 3)).double()


def train(model, x, y, steps=4):
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(steps):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    return model


def on_all(value):
    said = [None] * size
    dist.all_gather_object(said, value)
    return said


def refused(says, call):
    try:
        call()
    except Exception as error:
        assert says in str(error), f"rank {rank}: expected '{says}' in: {error}"
    else:
        raise AssertionError(f"rank {rank} was not refused; expected: {says}")


# Parameters are bitwise equal on all ranks, and equal those of the joined batch.
alone = train(net(), X, Y)
for options in ({}, {"bucket_cap_mb": 0}, {"find_unused_parameters": True}, {"device_ids": [0], "output_device": 0}):
    model = train(DistributedDataParallel(net(seed=rank), **options), X[mine], Y[mine])
    bits = on_all([p.detach().numpy().tobytes() for p in model.parameters()])
    assert all(each == bits[0] for each in bits), options
    for a, b in zip(model.module.parameters(), alone.parameters()):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-12)
say("equal bits, equal to one process")

# The first all-reduce starts before the backward pass reaches the first layer.
events, all_reduce = [], dist.all_reduce
model = DistributedDataParallel(net(), bucket_cap_mb=0)
for name, layer in model.module.named_children():
    layer.register_full_backward_hook(lambda layer, *_, name=name: events.append(f"backward {name}"))
dist.all_reduce = lambda tensor, *args, **options: (events.append("all_reduce"), all_reduce(tensor, *args, **options))[1]
model(X[mine].requires_grad_()).sum().backward()
dist.all_reduce = all_reduce
say("buckets", model.buckets)
say("overlap", events.index("all_reduce") < events.index("backward 0"), events.count("all_reduce"))

# no_sync: the first steps send nothing; nested, and with an exception inside.
model, whole = DistributedDataParallel(net()), net()
events.clear()
dist.all_reduce = lambda tensor, *args, **options: (events.append("all_reduce"), all_reduce(tensor, *args, **options))[1]
with contextlib.suppress(KeyError), model.no_sync():
    with model.no_sync():
        model(X[mine][:2]).square().sum().backward()
    model(X[mine][2:4]).square().sum().backward()
    raise KeyError
assert model.require_backward_grad_sync and not events, events
model(X[mine][4:]).square().sum().backward()
dist.all_reduce = all_reduce
whole(X).square().sum().backward()
for a, b in zip(model.parameters(), whole.parameters()):
    torch.testing.assert_close(a.grad * size, b.grad)
say("no_sync", len(events))


class Two(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(5, 2), nn.Linear(5, 2)
        self.register_buffer("seen", torch.zeros(1))

    def forward(self, x, both):
        self.seen += 1 + rank
        return self.a(x) + (self.b(x) if both else 0)


# A parameter that a rank does not use is an error on all ranks, without a hang; then training continues.
x = X[mine].float()
for options in ({}, {"bucket_cap_mb": 0}):
    model = DistributedDataParallel(Two(), **options)
    refused("the loss does not use 'b.weight', 'b.bias'; give find_unused_parameters=True", lambda: model(x, rank != 0).sum().backward())
    model.zero_grad()
    model(x, True).sum().backward()
model = DistributedDataParallel(Two(), find_unused_parameters=True)
model(x, rank == 0).sum().backward()
torch.testing.assert_close(model.module.b.bias.grad, torch.full((2,), 6 / size))
model.zero_grad()
model(x, False).sum().backward()
assert model.module.b.bias.grad is None and model.module.a.bias.grad is not None
say("unused")

# Buffers: rank 0's when a forward pass begins, or each rank's own.
for broadcast_buffers in (True, False):
    model = DistributedDataParallel(Two(), broadcast_buffers=broadcast_buffers)
    for _ in range(2):
        model(x, True).sum().backward()
    say("buffers", broadcast_buffers, [value[0] for value in on_all(model.module.seen.tolist())])

# One rank loads; one rank saves, for a plain model.
state = net(seed=5).state_dict()
plain = net(seed=rank)
if rank == 0:
    plain.load_state_dict(state)
model = DistributedDataParallel(plain)
other = net(seed=9)
other.load_state_dict(model.module.state_dict())
assert all((a == b).all() for a, b in zip(other.state_dict().values(), state.values()))

# A copy trains independently, in the same group.
model = DistributedDataParallel(net())
twin = train(copy.deepcopy(model), X[mine], Y[mine])
bits = on_all([p.detach().numpy().tobytes() for p in twin.parameters()])
assert all(each == bits[0] for each in bits)
assert all((a == b).all() for a, b in zip(model.module.parameters(), net().parameters()))

# PyTorch's loader takes the sampler.
loader = DataLoader(TensorDataset(X, Y), batch_size=4, sampler=DistributedSampler(X))
loader.sampler.set_epoch(1)
assert sorted(y for part in on_all([int(y) for _, ys in loader for y in ys]) for y in part) == sorted(Y.tolist())

refused("models differ: rank 0 has 'weight' float32 (4, 3) where rank 1 has 'weight' float32 (5, 3)",
        lambda: DistributedDataParallel(nn.Linear(3, 4 + min(rank, 1))))
refused("no parameter of the module requires a gradient", lambda: DistributedDataParallel(nn.ReLU()))
refused("wraps a module of PyTorch, not int", lambda: DistributedDataParallel(3))
refused("device_ids [0, 1] of", lambda: DistributedDataParallel(nn.Linear(2, 2), device_ids=[0, 1]))
refused("output_device 1 is not the device 0", lambda: DistributedDataParallel(nn.Linear(2, 2), device_ids=[0], output_device=1))
refused("bucket_cap_mb -1", lambda: DistributedDataParallel(nn.Linear(2, 2), bucket_cap_mb=-1))
refused("find_unused_parameters 1", lambda: DistributedDataParallel(nn.Linear(2, 2), find_unused_parameters=1))
sparse = DistributedDataParallel(nn.Embedding(5, 3, sparse=True))
refused("the gradient of 'weight' is sparse", lambda: sparse(torch.tensor([1, 2])).sum().backward())
say("refused")
dist.destroy_process_group()
