# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""D2-4: a master with the parameters, in one process. D2-5: several devices of a process, replicated or split inside."""

from ddp_case import *
from tessera import DataParallel, DistributedDataParallel, ProcessMesh, Replicate, Shard, shard_tensor

momentum = optim.SGD(0.1, momentum=0.9)
plain = train(model(), X, Y, 5, momentum)
nbytes = sum(p.nbytes for p in plain.parameters())


def wire(net, count):
    """Bytes through the device that has the most of them, without those of activations."""
    step, state = stepper(momentum), momentum.init(net)
    sizes = {p.nbytes for p in inner(net).parameters()}
    return [c for c in step.explain(net, state, X, Y)["collectives"] if c["wire_bytes"] in sizes or c["kind"] == "all_reduce"]


for count in (2, 3, 4):
    many = DataParallel(model(), range(count))
    check_same(train(many, X, Y, 5, momentum), plain, 5)
    check_same(train(DistributedDataParallel(model(), range(count)), X, Y, 5, momentum), plain, 5)
    master = sum(c["wire_bytes"] for c in wire(many, count))
    ring = sum(c["wire_bytes"] for c in wire(DistributedDataParallel(model(), range(count)), count))
    print(f"{count} devices: master {master / nbytes / 2:.0f} x 2 sizes, DDP {ring / nbytes:.1f} sizes")
uneven = train(DataParallel(model(), [2, 5, 7]), X[:7], Y[:7], 2)
check_same(uneven, train(model(), X[:7], Y[:7], 2), 2)
print("uneven parts")
for arguments in (([],), ([0, 0],), ([0, 1], 1)):
    try:
        DataParallel(model(), *arguments)
    except ts.Error as error:
        print(str(error).split("error: ")[1])

# D2-5: a process that owns two devices: replicated inside, and the model split inside.
inside = ProcessMesh([0, 1], ["device"])
check_same(train(DistributedDataParallel(model(), inside), X, Y, 5), train(model(), X, Y, 5), 5)
print("replicated inside")
split = model()
split[0].weight = shard_tensor(split[0].weight, inside, [Shard(1)])
split = train(split, X, Y, 5)
check_same(split, train(model(), X, Y, 5), 5)
print("split inside:", split[0].weight.local_shape)
