# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""D2-12: k micro-steps of which one communicates: bytes divided by k, the same weights; no_sync nests and survives exceptions."""

import warnings

from ddp_case import *
from tessera import DistributedDataParallel, accumulate

warnings.simplefilter("error")
dist.init_process_group()
rank, size = dist.get_rank(), dist.get_world_size()
K = 4
pieces = [(X[i::K][rank::size], Y[i::K][rank::size]) for i in range(K)]
gradient = ts.jit(ts.value_and_grad(loss), feeds=False)
apply = lambda net, total: optim.SGD(0.1).update(net, ts.tree.map(lambda g: g / K, total), {"count": ts.zeros((), "int32")})[0]


@ts.jit
def last(net, total, x, y):
    """The last micro-step, which reduces the sum of all."""
    return apply(net, accumulate(total, ts.grad(loss)(net, x, y)))


@ts.jit
def each(net, *batches):
    """Every micro-step reduces."""
    total = None
    for x, y in zip(batches[::2], batches[1::2]):
        total = accumulate(total, ts.tree.map(lambda g: g * 1.0, ts.grad(loss)(net, x, y)))
    return apply(net, total)


def wire(function):
    return function.wire_bytes


wrapped = DistributedDataParallel(model())
total = None
with wrapped.no_sync():
    for x, y in pieces[:-1]:
        value, g = gradient(wrapped, x, y)
        total = accumulate(total, g)
quiet = wire(gradient)
net = last(wrapped, total, *pieces[-1])
size_of = sum(p.nbytes for p in wrapped.parameters())
say("micro-steps:", quiet, "last:", wire(last) == 2 * size_of * (size - 1) // size, [c["kind"] for c in last.explain(wrapped, total, *pieces[-1])["collectives"]])
loud = each(wrapped, *[part for piece in pieces for part in piece])
say("divided by", wire(each) // wire(last))
check_same(net, loud)
plain = model()
expected = apply(plain, optim.accumulated(ts.value_and_grad(loss), K)(plain, X, Y)[1])
total = None
for i in range(K):
    total = accumulate(total, ts.grad(loss)(plain, X[i::K], Y[i::K]))
check_same(net, apply(plain, total))
say("equal to one process")

# All micro-steps inside; whatever uses the sum reduces it, here outside of jit.
before = wire(gradient)
total = None
with wrapped.no_sync():
    for x, y in pieces:
        total = accumulate(total, gradient(wrapped, x, y)[1])
state = optim.SGD(0.1).init(wrapped)
check_same(optim.SGD(0.1 / K).update(wrapped, total, state)[0], net)
say("outside of jit:", wire(gradient) - before)

try:
    with wrapped.no_sync(), wrapped.no_sync():
        raise KeyError
except KeyError:
    say("after an exception:", wrapped.synchronised)
with wrapped.no_sync():
    with wrapped.no_sync():
        pass
    say("nested:", wrapped.synchronised)
