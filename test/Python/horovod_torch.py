# RUN: %tessera_python %s
# REQUIRES: torch
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""D1-6: tessera.horovod.torch between processes: optimizers against one process with the whole batch, calls on tensors, states."""

import os
import tempfile
import unittest
import warnings

import torch
from torch import nn

import tessera.distributed as dist
import tessera.horovod.torch as hvd

LONG, SIZE = 120, 2


def refused(kind, words, call):
    try:
        call()
    except kind as error:
        assert words in str(error), f"{error} lacks {words}"
    else:
        raise AssertionError(f"nothing was raised where '{words}' was expected")


def model(seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))


def batches(count):
    generator = torch.Generator().manual_seed(0)
    return [(torch.randn(8, 4, generator=generator), torch.randn(8, 2, generator=generator)) for _ in range(count)]


def alone(passes=1, steps=3, clip=None):
    net = model()
    optimizer = torch.optim.Adam(net.parameters(), lr=0.1)
    for i, (x, y) in enumerate(batches(steps * passes)):
        (nn.functional.mse_loss(net(x), y) / passes).backward()
        if (i + 1) % passes == 0:
            if clip:
                nn.utils.clip_grad_norm_(net.parameters(), clip)
            optimizer.step()
            optimizer.zero_grad()
    return net


def trained(rank, passes=1, steps=3, clip=None, **options):
    net = model(rank)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.1)
    hvd.broadcast_parameters(net.state_dict(), root_rank=0)
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=net.named_parameters(), backward_passes_per_step=passes, **options)
    for i, (x, y) in enumerate(batches(steps * passes)):
        nn.functional.mse_loss(net(x[rank::SIZE]), y[rank::SIZE]).backward()
        if (i + 1) % passes == 0:
            if clip:
                optimizer.synchronize()
                nn.utils.clip_grad_norm_(net.parameters(), clip)
                with optimizer.skip_synchronize():
                    optimizer.step()
            else:
                optimizer.step()
            optimizer.zero_grad()
    return net, optimizer


def equal(net, expected, tolerance=1e-4):
    for (name, a), b in zip(net.named_parameters(), expected.parameters()):
        torch.testing.assert_close(a, b, rtol=tolerance, atol=tolerance, msg=lambda text: f"{name}: {text}")


def steps(rank, path):
    begin(rank, path)
    equal(trained(rank)[0], alone())
    equal(trained(rank, passes=2)[0], alone(passes=2))
    equal(trained(rank, clip=0.1)[0], alone(clip=0.1))
    equal(trained(rank, num_groups=2, gradient_predivide_factor=2.0)[0], alone())
    equal(trained(rank, compression=hvd.Compression.fp16)[0], alone(), 2e-2)
    net, optimizer = trained(rank)
    assert isinstance(optimizer, torch.optim.Adam)
    x, y = batches(1)[0]
    nn.functional.mse_loss(net(x), y).backward()
    refused(AssertionError, "zero_grad() was called after backward()", optimizer.zero_grad)
    refused(AssertionError, "was computed more than backward_passes_per_step (1) times", lambda: nn.functional.mse_loss(net(x), y).backward())
    optimizer.synchronize()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        optimizer.step()
    assert any("skip_synchronize" in str(each.message) for each in caught)
    refused(ValueError, "optimizer is already a DistributedOptimizer", lambda: hvd.DistributedOptimizer(optimizer))
    refused(ValueError, "named_parameters lack 4 parameters", lambda: hvd.DistributedOptimizer(torch.optim.SGD(model().parameters(), lr=1), []))
    refused(ValueError, "is not one of torch.optim", lambda: hvd.DistributedOptimizer("sgd"))


def states(rank, path):
    begin(rank, path)
    net = model(rank)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.1 if rank == 0 else 0.5)
    if rank == 0:  # as after reading a checkpoint
        net(torch.ones(1, 4)).sum().backward()
        optimizer.step()
    hvd.broadcast_parameters(net.state_dict(), root_rank=0)
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    assert optimizer.param_groups[0]["lr"] == 0.1
    said = hvd.allgather_object(optimizer.state_dict()["state"])
    for key, value in said[0].items():
        for name in value:
            torch.testing.assert_close(value[name], said[1][key][name])
    sampler = hvd.elastic.ElasticSampler(range(10), shuffle=False)
    state = hvd.elastic.TorchState(net, optimizer, sampler=sampler, batch=0)
    before = [p.clone() for p in net.parameters()]
    sampler.record_batch(0, 2)
    state.commit()
    with torch.no_grad():
        for p in net.parameters():
            p += rank + 1
    state.batch = 5
    state.restore()
    assert state.batch == 0 and all(torch.equal(a, b) for a, b in zip(before, net.parameters()))
    state.sync()
    assert sorted(sum(hvd.allgather_object(list(sampler)), [])) == [4, 5, 6, 7, 8, 9]


def calls(rank, path):
    begin(rank, path)
    for dtype in (torch.float32, torch.bfloat16, torch.float16, torch.int64):
        x = torch.arange(6).reshape(2, 3).to(dtype) + rank
        torch.testing.assert_close(hvd.allreduce(x, op=hvd.Sum), 2 * torch.arange(6).reshape(2, 3).to(dtype) + 1)
        torch.testing.assert_close(hvd.allreduce(x, op=hvd.Sum, postscale_factor=2.0), 4 * torch.arange(6).reshape(2, 3).to(dtype) + 2)
        torch.testing.assert_close(hvd.broadcast(x, 1), torch.arange(6).reshape(2, 3).to(dtype) + 1)
    x = torch.full((2, 3), float(rank)).T  # not contiguous
    assert hvd.allreduce_(x) is x
    torch.testing.assert_close(x, torch.full((3, 2), 0.5))
    torch.testing.assert_close(hvd.allgather(torch.full((rank + 1, 1), rank)), torch.tensor([[0], [1], [1]]))
    got, received = hvd.alltoall(torch.arange(3) + 10 * rank, splits=torch.tensor([1, 2]))
    torch.testing.assert_close((got, received), (torch.tensor([0, 10] if rank == 0 else [1, 2, 11, 12]), torch.tensor([1, 1] if rank == 0 else [2, 2])))
    handle = hvd.allreduce_async_(parameter := nn.Parameter(torch.ones(2) * rank), name="p")
    hvd.synchronize(handle)
    torch.testing.assert_close(parameter.data, torch.full((2,), 0.5))


def begin(rank, path):
    torch.set_num_threads(1)
    dist.init_process_group("tcp", f"file://{path}", LONG, SIZE, rank)
    hvd.init()


class Torch(unittest.TestCase):
    def job(self, body):
        with tempfile.TemporaryDirectory() as folder:
            dist.spawn(body, (os.path.join(folder, "meeting"),), SIZE)

    def test_steps_of_two_are_those_of_one(self):
        self.job(steps)

    def test_states(self):
        self.job(states)

    def test_calls(self):
        self.job(calls)


if __name__ == "__main__":
    unittest.main()
