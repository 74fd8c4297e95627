# RUN: %tessera_python %s
# REQUIRES: tessera-core
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Process groups, with ranks that are threads: every collective against NumPy, and error messages."""

import re
import threading
import unittest
import warnings

import numpy as np

import tessera.distributed as dist
from tessera.errors import ArgumentError, TesseraWarning

NAMES = iter(range(10**6))


def run(ranks, body, timeout=60):
    """The result or exception of body(rank) on each rank of a new job."""
    name, results = f"job {next(NAMES)}", [None] * ranks

    def main(rank):
        try:
            dist.init_process_group("threads", name, timeout, ranks, rank)
            try:
                results[rank] = body(rank)
            finally:
                dist.destroy_process_group()
        except Exception as error:
            results[rank] = error
    threads = [threading.Thread(target=main, args=(rank,)) for rank in range(ranks)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    return results


def data(rank, count=7, dtype=np.float32):
    return (np.arange(count) * (rank + 1) % 5 + rank).astype(dtype)


class Case(unittest.TestCase):
    def same(self, results, expected):
        for rank, (result, wanted) in enumerate(zip(results, expected)):
            if isinstance(result, Exception):
                raise result
            np.testing.assert_array_equal(result, wanted, f"rank {rank}")

    def refused(self, results, message):
        for result in results:
            self.assertIsInstance(result, dist.DistributedError)
            self.assertEqual(re.sub(r", at [^;:]*/groups\.py:\d+", "", str(result)), message)


class Collectives(Case):
    def test_all_reduce(self):
        ops = {"sum": sum, "prod": np.multiply.reduce, "max": np.maximum.reduce, "min": np.minimum.reduce}
        for dtype in (np.float64, np.float32, np.int64, np.int32, np.int16, np.int8, np.uint8, np.uint32, np.uint64):
            for op, combine in ops.items():
                def body(rank):
                    x = data(rank, dtype=dtype)
                    dist.all_reduce(x, op)
                    return x
                expected = combine([data(rank, dtype=dtype) for rank in range(3)]).astype(dtype)
                self.same(run(3, body), [expected] * 3)

    def test_average_and_bitwise(self):
        def body(rank):
            x, y = data(rank), data(rank, dtype=np.int32)
            dist.all_reduce(x, dist.ReduceOp.AVG)
            dist.all_reduce(y, dist.ReduceOp.BXOR)
            return [*x, *y]
        whole = [data(rank) for rank in range(4)]
        expected = [*np.mean(whole, 0), *np.bitwise_xor.reduce([x.astype(np.int32) for x in whole])]
        self.same(run(4, body), [expected] * 4)

    def test_half_is_added_in_single(self):
        def body(rank):
            x = np.array([2048 if rank == 0 else 1], np.float16)  # 2048 + 1 is 2048 in half
            dist.all_reduce(x)
            return x
        self.same(run(5, body), [np.array([2052], np.float16)] * 5)

    def test_algorithms(self):
        for algorithm in ("direct", "one_shot", "ring", "halving_doubling", "tree"):
            def body(rank):
                x = data(rank, 100, np.int64)
                dist.all_reduce(x, algorithm=algorithm)
                return x
            self.same(run(5, body), [sum(data(rank, 100, np.int64) for rank in range(5))] * 5)

    def test_reduce_and_broadcast_have_a_root(self):
        def body(rank):
            x, y = data(rank), data(rank)
            dist.reduce(x, 2, "max")
            dist.broadcast(y, 1)
            return [*x, *y]
        highest = np.maximum.reduce([data(rank) for rank in range(4)])
        self.same(run(4, body), [[*(highest if rank == 2 else data(rank)), *data(1)] for rank in range(4)])

    def test_all_gather(self):
        def body(rank):
            parts = [np.zeros(other + 1, np.int32) for other in range(3)]  # of different sizes
            dist.all_gather(parts, data(rank, rank + 1, np.int32))
            whole = np.zeros((3, 7), np.int32)
            dist.all_gather_into_tensor(whole, data(rank, dtype=np.int32))
            return [*np.concatenate(parts), *whole.ravel()]
        expected = [*np.concatenate([data(rank, rank + 1) for rank in range(3)]), *np.concatenate([data(rank) for rank in range(3)])]
        self.same(run(3, body), [expected] * 3)

    def test_reduce_scatter(self):
        def body(rank):
            parts = np.split(data(rank, 9), [2, 2])
            mine = np.zeros_like(parts[rank])
            dist.reduce_scatter(mine, parts)
            equal = np.zeros(3, np.float32)
            dist.reduce_scatter_tensor(equal, data(rank, 9))
            return [*mine, *equal]
        total = sum(data(rank, 9) for rank in range(3))
        self.same(run(3, body), [[*np.split(total, [2, 2])[rank], *np.split(total, 3)[rank]] for rank in range(3)])

    def test_gather_of_scatter_is_the_same(self):
        for counts in (None, [3, 0, 5]):
            def body(rank):
                sizes = counts or [4, 4, 4]
                whole = np.arange(sum(sizes), dtype=np.float64)
                parts = np.split(whole, np.cumsum(sizes)[:-1]) if rank == 1 else None
                mine = np.zeros(sizes[rank])
                dist.scatter(mine, parts, 1, counts=counts)
                back = [np.zeros(size) for size in sizes] if rank == 2 else None
                dist.gather(mine, back, 2, counts=counts)
                return np.array_equal(np.concatenate(back), whole) if rank == 2 else True
            self.same(run(3, body), [True] * 3)

    def test_all_to_all(self):
        def body(rank):
            ins = [np.full(other + rank, 10 * rank + other) for other in range(3)]
            outs = [np.zeros(rank + other, int) for other in range(3)]
            dist.all_to_all(outs, ins)
            single = np.zeros((3, 2), int)
            dist.all_to_all_single(single, np.arange(6).reshape(3, 2) + 100 * rank)
            return [*np.concatenate(outs), *single.ravel()]
        expected = [[*np.concatenate([np.full(rank + other, 10 * other + rank) for other in range(3)]),
                     *np.concatenate([[2 * rank + 100 * other, 2 * rank + 1 + 100 * other] for other in range(3)])] for rank in range(3)]
        self.same(run(3, body), expected)

    def test_works_are_asynchronous(self):
        def body(rank):
            arrays = [data(rank) * step for step in range(10)]
            works = [dist.all_reduce(array, async_op=True) for array in arrays]
            for work in works:
                work.wait()
            return [all(work.is_completed() for work in works), *np.concatenate(arrays)]
        total = sum(data(rank) for rank in range(3))
        self.same(run(3, body), [[True, *np.concatenate([total * step for step in range(10)])]] * 3)

    def test_other_arrays(self):
        def body(rank):
            memory = bytearray([rank, 1])
            dist.all_reduce(memory)
            return list(memory)
        self.same(run(3, body), [[3, 3]] * 3)


class Messages(Case):
    def test_around_the_ring(self):
        def body(rank):
            got = np.zeros(3)
            works = dist.batch_isend_irecv([dist.P2POp(dist.isend, np.full(3, float(rank)), (rank + 1) % 4),
                                            dist.P2POp(dist.irecv, got, (rank - 1) % 4)])
            for work in works:
                work.wait()
            return got
        self.same(run(4, body), [np.full(3, float((rank - 1) % 4)) for rank in range(4)])

    def test_tags_and_any_source(self):
        def body(rank):
            if rank:
                dist.send(np.array([rank, 1]), 0, tag=1)
                if rank == 1:
                    dist.send(np.array([rank, 2]), 0, tag=2)
                return [0]
            later, got, found = np.zeros(2, int), np.zeros(2, int), []
            dist.recv(later, 1, tag=2)
            for _ in range(2):
                source = dist.recv(got, tag=1)
                found.append((source, *got))
            return [*later, sorted(found) == [(1, 1, 1), (2, 2, 1)]]
        self.same(run(3, body), [[1, 2, True], [0], [0]])

    def test_objects(self):
        def body(rank):
            objects, shared = [None] * 3, [{"a": [1, 2.5, None]}, b"\0\xff"] if rank == 1 else [None, None]
            dist.all_gather_object(objects, {"rank": rank, "text": "ü" * rank})
            dist.broadcast_object_list(shared, 1)
            return objects == [{"rank": other, "text": "ü" * other} for other in range(3)] and shared == [{"a": [1, 2.5, None]}, b"\0\xff"]
        self.same(run(3, body), [True] * 3)

    def test_objects_of_one_rank(self):
        def body(rank):
            gathered, mine = [None] * 3 if rank == 1 else None, [None]
            dist.gather_object({"rank": rank, "text": "x" * rank}, gathered, dst=1)
            dist.scatter_object_list(mine, [[other, "y" * other] for other in range(3)] if rank == 2 else None, src=2)
            return mine == [[rank, "y" * rank]] and (rank != 1 or gathered == [{"rank": other, "text": "x" * other} for other in range(3)])
        self.assertEqual(run(3, body), [True] * 3)

    def test_objects_of_one_rank_refused(self):
        self.refused(run(2, lambda rank: dist.gather_object(1, [None] if rank == 0 else None)),
                     "rank 0: gather_object: object_gather_list of rank 0 must be a list of length 2, the number of ranks")
        self.refused(run(2, lambda rank: dist.gather_object(1, [None] * 2)),
                     "rank 1: gather_object: object_gather_list is given on rank 1, and dst is 0")
        self.refused(run(2, lambda rank: dist.scatter_object_list([None], [1] if rank == 0 else None)),
                     "rank 0: scatter_object_list: scatter_object_input_list of rank 0 must be a list of 2 objects, one for each rank")

    def test_places(self):
        def body(rank):
            group = dist.new_group([0, 2])
            if rank == 1:
                dist.barrier(dist.group.WORLD)
                return dist.is_available()
            for wrong, says in ((lambda: dist.get_global_rank(group, 2), "group_rank 2 of a group of 2"), (lambda: dist.get_group_rank(group, 1), "global_rank 1 is not")):
                try:
                    wrong()
                except ArgumentError as error:
                    assert says in str(error), error
                else:
                    return False
            dist.barrier(dist.group.WORLD)
            return (dist.get_global_rank(group, 1), dist.get_group_rank(group, 2)) == (2, 1)
        self.assertEqual(run(3, body), [True] * 3)

    def test_objects_are_never_executed(self):
        def body(rank):
            dist.all_gather_object([None] * 2, object() if rank else 1)
        self.refused(run(2, body), "rank 1: all_gather_object: an object of type object cannot be sent; expected None, bool, int, float, "
                                   "str, bytes, or lists and dicts (with str keys) of these")


class Subgroups(Case):
    def test_groups_of_some_ranks(self):
        def body(rank):
            even, odd = dist.new_group([2, 0]), dist.new_group([1, 3])
            mine, other = (even, odd) if rank % 2 == 0 else (odd, even)
            x = np.array([rank])
            dist.all_reduce(x, group=mine)
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                if rank == 0:
                    self.assertIsNone(dist.all_reduce(x, group=other))
                    self.assertEqual([each.category for each in caught], [TesseraWarning])
            return [x[0], dist.get_rank(mine), dist.get_world_size(mine), dist.get_rank(other), dist.get_rank(), *mine.ranks]
        self.same(run(4, body), [[2, 0, 2, -1, 0, 0, 2], [4, 0, 2, -1, 1, 1, 3], [2, 1, 2, -1, 2, 0, 2], [4, 1, 2, -1, 3, 1, 3]])

    def test_ranks_that_are_none(self):
        self.refused(run(2, lambda rank: dist.new_group([0, 5])), "rank 0: new_group of [0, 5]: rank 5 is not in the group [0, 1]")


class Refused(Case):
    def test_calls_that_differ(self):
        def body(rank):
            x = np.ones(4 + (rank == 2), np.float32)
            dist.broadcast(x, 0) if rank == 1 else dist.all_reduce(x)
        self.refused(run(3, body), "the ranks of the group make different calls: rank 0: all_reduce of 4 f32 by sum; rank 1: broadcast "
                                   "of 4 f32, from rank 0; rank 2: all_reduce of 5 f32 by sum")

    def test_arguments_of_one_rank_are_named_on_all(self):
        table = {
            "broadcast: src 7 is not a rank of the group [0, 1]": lambda x, rank: dist.broadcast(x, 7 * rank),
            "all_reduce: unknown reduction 'median'; there are sum, avg, max, min, prod, band, bor, bxor":
                lambda x, rank: dist.all_reduce(x, "median" if rank else "sum"),
            "all_reduce: unknown algorithm 'star'; there are direct, one_shot, ring, halving_doubling, tree, hierarchical":
                lambda x, rank: dist.all_reduce(x, algorithm="star" if rank else None),
            "all_reduce: tensor is not contiguous; copy it, for example with numpy.ascontiguousarray":
                lambda x, rank: dist.all_reduce(x[::2] if rank else x),
            "all_reduce: tensor has dtype complex64; expected one of float64, float32, float16, bfloat16, int64, int32, int16, int8, uint64, "
            "uint32, uint16, uint8, bool": lambda x, rank: dist.all_reduce(x.astype(np.complex64) if rank else x),
            "all_gather: output_tensor has 7 elements; 2 ranks with 4 each give 8":
                lambda x, rank: dist.all_gather_into_tensor(np.zeros(8 - rank, np.float32), x),
            "all_gather: tensor_list is a list of 1 arrays; expected one array for each of the 2 ranks of the group":
                lambda x, rank: dist.all_gather([x] * (2 - rank), x),
            "reduce_scatter: input has 3 elements; 2 ranks with outputs of 2 each take 4":
                lambda x, rank: dist.reduce_scatter_tensor(x[:2], x[:4 - rank]),
            "scatter: scatter_list is given on rank 1, and src is 0": lambda x, rank: dist.scatter(x, [x, x], 0),
            "all_gather: input_tensor is f32 and output_tensor is f64; they must have the same dtype":
                lambda x, rank: dist.all_gather_into_tensor(np.zeros(8, np.float64 if rank else np.float32), x),
        }
        for message, call in table.items():
            with self.subTest(message):
                self.refused(run(2, lambda rank: call(np.ones(4, np.float32), rank)), f"rank 1: {message}")

    def test_averages_of_integers(self):
        self.refused(run(2, lambda rank: dist.all_reduce(np.ones(2, np.int32), "avg")),
                     "rank 0: all_reduce: avg of i32; averages need floats")

    def test_who_does_not_call(self):
        def body(rank):
            if rank < 2:
                dist.all_reduce(np.ones(4, np.float32))
            else:
                done.wait()
        done = threading.Event()
        threading.Timer(2, done.set).start()
        results = run(4, body, timeout=0.5)
        self.refused(results[:2], "all_reduce of 4 f32 by sum: it took too long; ranks 2, 3 have not called it")

    def test_before_and_twice(self):
        with self.assertRaisesRegex(dist.DistributedError, "^there is no process group; call init_process_group first$"):
            dist.all_reduce(np.ones(2))
        twice = run(1, lambda rank: dist.init_process_group("threads", "again", 1, 1, 0))
        self.refused(twice, "init_process_group was already called; call destroy_process_group first")

    def test_how_a_job_begins(self):
        for message, options in {
            "no backend 'gloo'; there are tcp, threads": dict(backend="gloo"),
            "no backend 'gloo'; there are tcp, threads, mpi, and nccl for 'cuda'": dict(backend="cpu:gloo,cuda:nccl"),
            "backend 'cpu:tcp,xla:tcp'; expected a name, or one for each of 'cpu' and 'cuda'": dict(backend="cpu:tcp,xla:tcp"),
            "no backend 'tcp' for 'cuda'; there is nccl": dict(backend="cuda:tcp"),
            "timeout 0 is neither a number of seconds above 0": dict(timeout=0),
            "rank 3 of world_size 2; give both, and count ranks from 0": dict(rank=3, world_size=2),
            "init_method 'http://x' is not env://, tcp://HOST:PORT or file://PATH": dict(init_method="http://x", rank=0, world_size=2),
            "init_method 'tcp://x:1' of backend 'tcp' needs rank and world_size": dict(init_method="tcp://x:1"),
        }.items():
            with self.assertRaises(ArgumentError) as caught:
                dist.init_process_group(**{"backend": "tcp", **options})
            self.assertTrue(str(caught.exception).startswith(message), caught.exception)
        with self.assertRaisesRegex(dist.DistributedError, r"^waited 0 s for ranks 1, 2 of 3$"):
            dist.init_process_group("threads", "alone", 0.1, 3, 0)


if __name__ == "__main__":
    unittest.main()
