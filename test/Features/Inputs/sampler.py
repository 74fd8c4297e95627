# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""D2-9 and D0-18: the indices of ranks partition the data; D4-14: lazy loading in batches; D4-10: slices on meshes."""

import numpy as np

import tessera as ts
from tessera import BatchSampler, DataLoader, DistributedSampler, ProcessMesh, shard_dataloader
from tessera.data import TensorDataset


class Counted:
    """A dataset that counts how often it is read."""

    def __init__(self, size):
        self.size, self.reads = size, 0

    def __len__(self):
        return self.size

    def __getitem__(self, index):
        self.reads += 1
        return np.array([index, index]), index % 3


def refused(function):
    try:
        function()
    except ts.Error as error:
        return str(error).split("error: ")[1]


for size, ranks, drop in ((10, 4, False), (10, 4, True), (3, 5, False), (12, 3, False)):
    data = Counted(size)
    parts = [list(DistributedSampler(data, ranks, rank, drop_last=drop)) for rank in range(ranks)]
    together = sum(parts, [])
    print(f"{size} over {ranks}, drop_last={drop}:", [len(part) for part in parts], "of", len(set(together)), "twice", len(together) - len(set(together)))
sampler = DistributedSampler(Counted(100), 4, 1)
orders = [list(sampler)]
for epoch in (0, 1, 1, 2):
    sampler.set_epoch(epoch)
    orders.append(list(sampler))
print("epoch 0 again:", orders[0] == orders[1], "epoch 1 differs:", orders[1] != orders[2], "repeats:", orders[2] == orders[3], "seed:",
      list(DistributedSampler(Counted(100), 4, 1, seed=1)) == orders[2])
print("without shuffle:", list(DistributedSampler(Counted(7), 3, 2, shuffle=False)))
print(refused(lambda: DistributedSampler(Counted(4), 2, 2)))
print(refused(lambda: DistributedSampler(Counted(0), 2, 0)))

data = Counted(50)
loader = DataLoader(data, batch_size=4, sampler=DistributedSampler(data, 4, 3))
print("constructed:", data.reads)
sizes = [len(x) for x, _ in loader]
print("batches:", sizes, "reads:", data.reads, "length:", len(loader))
loader.set_epoch(1)
seen = [x[:, 0].tolist() for x, _ in loader]
print("of the sampler:", sum(seen, []) == list(loader.sampler), "a list:", [x[:, 0].tolist() for x, _ in DataLoader(data, batch_size=2, sampler=[4, 1, 3])])
print(refused(lambda: DataLoader(data, sampler=[1], shuffle=True)))

data = Counted(100)
groups = list(BatchSampler(data, 8))
loader = DataLoader(data, BatchSampler(data, 8))
print("groups:", len(groups), "last:", len(groups[-1]), "reads:", data.reads, "dropped:", len(BatchSampler(data, 8, drop_last=True)))
first = next(iter(loader))
print("lazy:", data.reads, first[0].shape)
print(refused(lambda: BatchSampler(data, 0)))
print(refused(lambda: BatchSampler(data, 8, drop_last=3)))

inputs, labels = ProcessMesh([[0, 1], [2, 3]], ["x", "y"]), ProcessMesh([[4, 5], [6, 7]], ["x", "y"])
arrays = np.arange(24, dtype=np.float32).reshape(12, 2), np.arange(12)
loader = DataLoader(TensorDataset(*arrays), batch_size=4)
for dims in ("x", 0, ["x", None]):
    for i, (x, y) in enumerate(shard_dataloader(loader, [inputs, labels], dims)):
        rows = slice(4 * i, 4 * i + 4)
        for rank in range(4):
            part = slice(4 * i + 2 * (rank // 2), 4 * i + 2 * (rank // 2) + 2)
            assert np.array_equal(x.local_value(rank), arrays[0][part])
            assert np.array_equal(y.local_value(rank + 4), arrays[1][rows if dims == ["x", None] else part])
        assert (x.mesh, y.mesh) == (inputs, labels)
    print("slices by", dims)
print(refused(lambda: shard_dataloader(loader, [inputs, labels], "z")))
x, y = next(iter(shard_dataloader(DataLoader(TensorDataset(*arrays), batch_size=3), inputs, "x")))
print("uneven:", [len(x.local_value(rank)) for rank in range(4)])
named = [{"image": arrays[0], "label": arrays[1]}]
batch = next(iter(shard_dataloader(named, [inputs, labels], "x", ["image", "label"])))
print("keys:", batch["image"].mesh == inputs, batch["label"].mesh == labels)
print(refused(lambda: next(iter(shard_dataloader(named, inputs, "x", ["picture"])))))
