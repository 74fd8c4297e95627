# RUN: %tessera_python %s
# REQUIRES: tessera-core
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Samplers, loaders, and the placement of batches."""

import unittest

import numpy as np

import tessera as ts
from tessera import ProcessMesh, Replicate, Shard, data


class Counting:
    """A dataset that counts how often it is read."""

    def __init__(self, n):
        self.n, self.reads = n, 0

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        self.reads += 1
        return np.float32(i), i % 3


class Case(unittest.TestCase):
    def refused(self, kind, message, function):
        with self.assertRaises(kind) as caught:
            function()
        self.assertIn(message, str(caught.exception))
        self.assertIn(f"{__file__}:{function.__code__.co_firstlineno}:", str(caught.exception))


class Samplers(Case):
    def test_parts(self):
        """All ranks have one permutation and equal lengths; together they cover the dataset with few duplicates."""
        for n in (12, 13, 3):
            parts = [list(data.DistributedSampler(range(n), 4, r)) for r in range(4)]
            self.assertEqual({len(p) for p in parts}, {-(-n // 4)})
            self.assertEqual(set().union(*parts), set(range(n)))
            dropped = [list(data.DistributedSampler(range(n), 4, r, drop_last=True)) for r in range(4)]
            self.assertEqual(sum(len(set(p)) for p in dropped), n // 4 * 4)

    def test_epochs(self):
        sampler = data.DistributedSampler(range(50), 2, 0)
        first = list(sampler)
        self.assertEqual(first, list(sampler))
        sampler.set_epoch(1)
        self.assertNotEqual(first, list(sampler))
        self.assertEqual(list(data.DistributedSampler(range(6), 2, 1, shuffle=False)), [1, 3, 5])

    def test_groups(self):
        groups = list(data.BatchSampler(range(100), 8))
        self.assertEqual((len(groups), len(groups[-1])), (13, 4))
        self.assertEqual(len(list(data.BatchSampler(range(100), 8, drop_last=True))), 12)
        shuffled = data.BatchSampler(range(100), 8, shuffle=True)
        self.assertEqual(sorted(sum(shuffled, [])), list(range(100)))

    def test_lazy(self):
        dataset = Counting(10)
        loader = data.DataLoader(dataset, data.BatchSampler(dataset, 4))
        self.assertEqual(dataset.reads, 0)
        batches = list(loader)
        self.assertEqual((dataset.reads, [b[0].shape for b in batches]), (10, [(4,), (4,), (2,)]))
        np.testing.assert_array_equal(batches[1][1], [1, 2, 0, 1])

    def test_sampled(self):
        dataset = data.TensorDataset(np.arange(8), np.arange(8) * 2)
        sampler = data.DistributedSampler(dataset, 2, 1, shuffle=False)
        x, y = next(iter(data.DataLoader(dataset, data.BatchSampler(sampler, 4))))
        self.assertEqual((x.tolist(), y.tolist()), ([1, 3, 5, 7], [2, 6, 10, 14]))

    def test_refused(self):
        self.refused(ts.ArgumentError, "rank 4 is not one of 4 replicas", lambda: data.DistributedSampler(range(9), 4, 4))
        self.refused(ts.ArgumentError, "rank 'a' is not one of 2 replicas", lambda: data.DistributedSampler(range(9), 2, "a"))
        self.refused(ts.ArgumentError, "the dataset is empty", lambda: data.DistributedSampler([], 4, 0))
        self.refused(ts.ArgumentError, "batch_size 0 is not a positive integer", lambda: data.BatchSampler(range(9), 0))
        self.refused(ts.ArgumentError, "equal lengths, not [3, 4]", lambda: data.TensorDataset(np.ones(3), np.ones(4)))


class Placed(Case):
    mesh = ProcessMesh([[0, 1], [2, 3]], ["x", "y"])

    def loader(self):
        return data.DataLoader(data.TensorDataset(np.arange(24, dtype=np.float32).reshape(6, 4), np.arange(6)), batch_size=4)

    def test_cut(self):
        batches = list(ts.shard_dataloader(self.loader(), self.mesh, "x"))
        x, y = batches[0]
        self.assertEqual((x.placements, x.local_shape, y.local_shape), ((Shard(0), Replicate()), (2, 4), (2,)))
        np.testing.assert_array_equal(x.local_value(2), x.numpy()[2:])
        self.assertEqual(batches[1][0].local_value(3).shape, (1, 4))
        self.assertEqual(next(iter(ts.shard_dataloader(self.loader(), self.mesh)))[0].placements, (Replicate(), Replicate()))

    def test_two_meshes(self):
        """Inputs on the first, labels on the last."""
        first, last = ProcessMesh([0, 1], ["x"]), ProcessMesh([2, 3], ["x"])
        x, y = next(iter(ts.shard_dataloader(self.loader(), [first, last], "x")))
        self.assertEqual((x.mesh, y.mesh), (first, last))
        batches = [{"text": np.ones((4, 2)), "label": np.ones(4), "more": np.ones(4)}]
        batch, = ts.shard_dataloader(batches, [first, last], [0, None], ["text", "label"])
        self.assertEqual((list(batch), batch["text"].placements, batch["label"].placements), (["text", "label"], (Shard(0),), (Replicate(),)))

    def test_strategies(self):
        batch = np.ones((8, 4), np.float32), np.ones(8, np.float32)
        for strategy, shapes in (("data_parallel", [(2, 4), (2,)]), ("full_batch", [(8, 4), (8,)]), (((2, 2), (4,)), [(4, 2), (2,)])):
            self.assertEqual([t.local_shape for t in data.place_batch(batch, self.mesh, strategy)], shapes)

    def test_refused(self):
        x = np.ones((8, 3), np.float32)
        self.refused(ts.StrategyError, "dataset_strategy 3;", lambda: data.place_batch([x], self.mesh, 3))
        self.refused(ts.ArgumentError, "takes a list of inputs, not ndarray", lambda: data.place_batch(x, self.mesh))
        self.refused(ts.ArgumentError, "takes a loader of batches, not 5", lambda: ts.shard_dataloader(5, self.mesh))
        self.refused(ts.ArgumentError, "takes meshes, not 5", lambda: ts.shard_dataloader([], 5))
        self.refused(ts.StrategyError, "dataset_strategy 'half'", lambda: data.place_batch([x], self.mesh, "half"))
        self.refused(ts.StrategyError, "2 tuples for 1 inputs", lambda: data.place_batch([x], self.mesh, ((1, 1), (1, 1))))
        self.refused(ts.StrategyError, "input 0 of the dataset has 1 cuts for shape (8, 3)", lambda: data.place_batch([x], self.mesh, ((4,),)))
        self.refused(ts.StrategyError, "2 parts do not divide dimension 1 of extent 3", lambda: data.place_batch([x], self.mesh, ((1, 2),)))
        self.refused(ts.StrategyError, "makes 8 parts, which do not divide 4 devices", lambda: data.place_batch([x], self.mesh, ((8, 1),)))
        self.refused(ts.MeshError, "no axis 'z'", lambda: ts.shard_dataloader(self.loader(), self.mesh, "z"))
        self.refused(ts.ArgumentError, "the mesh has 2 axes", lambda: ts.shard_dataloader(self.loader(), self.mesh, 5))
        self.refused(ts.ArgumentError, "the batch has no 'image'", lambda: list(ts.shard_dataloader([{"x": x}], self.mesh, None, ["image"])))


if __name__ == "__main__":
    unittest.main()
