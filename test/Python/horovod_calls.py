# RUN: %tessera_python %s
# REQUIRES: tessera-core
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""D1-6: the calls of tessera.horovod between processes, against NumPy, and error messages."""

import os
import tempfile
import unittest

import numpy as np

import tessera
import tessera.distributed as dist
import tessera.horovod as hvd

LONG = 120  # seconds until a test gives up
SIZE = 3


def data(rank, dtype=np.float32, rows=5):
    return (np.arange(rows * 2).reshape(rows, 2) * (rank + 1) % 7 + rank).astype(dtype)


def begin(rank, path, sets=None):
    dist.init_process_group("tcp", f"file://{path}", LONG, SIZE, rank)
    hvd.init(process_sets=sets)


def same(actual, expected):
    np.testing.assert_array_equal(np.asarray(actual), expected)


def refused(call, words, kind=hvd.CallError):
    try:
        call()
    except kind as error:
        assert words in str(error), f"{error!s} lacks {words}"
    else:
        raise AssertionError(f"nothing was raised where '{words}' was expected")


def reductions(rank, path):
    begin(rank, path)
    for dtype in (np.float64, np.float32, np.float16, np.int64, np.int8):
        whole = [data(other, dtype) for other in range(SIZE)]
        for op, combine in ((hvd.Sum, np.add), (hvd.Min, np.minimum), (hvd.Max, np.maximum), (hvd.Product, np.multiply)):
            same(hvd.allreduce(whole[rank], op=op), combine.reduce(whole).astype(dtype))
    whole = [data(other) for other in range(SIZE)]
    np.testing.assert_allclose(hvd.allreduce(whole[rank]), np.mean(whole, 0), rtol=1e-6)
    same(hvd.allreduce(whole[rank], op=hvd.Sum, prescale_factor=0.5, postscale_factor=4), 2 * sum(whole))
    same(hvd.allreduce(whole[rank], op=hvd.Sum, compression=hvd.Compression.fp16), sum(whole))
    x = whole[rank].copy()
    assert hvd.allreduce_(x, op=hvd.Sum) is x
    same(x, sum(whole))
    a, b, c = hvd.grouped_allreduce([whole[rank], whole[rank].astype(np.int32), whole[rank][0]], op=hvd.Sum)
    same(a, sum(whole))
    same(b, sum(whole).astype(np.int32))
    same(c, sum(whole)[0])
    tensor = hvd.allreduce(tessera.asarray(whole[rank]), op=hvd.Sum)
    assert isinstance(tensor, tessera.Tensor)
    same(tensor, sum(whole))
    handles = [hvd.allreduce_async(whole[rank] + i, op=hvd.Sum, name=str(i)) for i in (range(4) if rank else reversed(range(4)))]
    results = [hvd.synchronize(handle) for handle in (handles if rank else reversed(handles))]
    assert all(map(hvd.poll, handles))
    for i, result in enumerate(results):
        same(result, sum(whole) + SIZE * i)


def movements(rank, path):
    begin(rank, path)
    same(hvd.allgather(data(rank, rows=rank)), np.concatenate([data(other, rows=other) for other in range(SIZE)]))
    a, b = hvd.grouped_allgather([data(rank, rows=2), np.full(rank + 1, rank)])
    same(a, np.concatenate([data(other, rows=2) for other in range(SIZE)]))
    same(b, [0, 1, 1, 2, 2, 2])
    same(hvd.broadcast(data(rank), 2), data(2))
    x = data(rank)
    hvd.broadcast_(x, 1)
    same(x, data(1))
    same(hvd.alltoall(data(rank, rows=6)), np.concatenate([data(other, rows=6)[2 * rank:2 * rank + 2] for other in range(SIZE)]))
    splits = [[1, 0, 4], [2, 2, 1], [0, 5, 0]]
    got, received = hvd.alltoall(data(rank), splits=np.array(splits[rank]))
    bounds = [np.cumsum([0, *split]) for split in splits]
    same(got, np.concatenate([data(other)[bounds[other][rank]:bounds[other][rank + 1]] for other in range(SIZE)]))
    same(received, [split[rank] for split in splits])
    total = sum(data(other) for other in range(SIZE))
    same(hvd.reducescatter(data(rank), op=hvd.Sum), np.split(total, [2, 4])[rank])
    objects = {"weights": data(rank), 3: (None, {1, 2}), "text": b"\0x"} if rank == 1 else None
    got = hvd.broadcast_object(objects, 1)
    same(got["weights"], data(1))
    assert (got[3], got["text"]) == ((None, {1, 2}), b"\0x")
    assert hvd.allgather_object([rank] * rank) == [[], [1], [2, 2]]
    parameters = {"w": data(rank), "t": tessera.asarray(data(rank))}
    hvd.broadcast_parameters(parameters, root_rank=2)
    same(parameters["w"], data(2))
    same(parameters["t"], data(2))
    hvd.barrier()


def sets(rank, path):
    odd = hvd.ProcessSet([1])
    begin(rank, path, [odd])
    even = hvd.add_process_set([2, 0])
    assert (even.ranks, even.size(), even.included()) == ([0, 2], 2, rank != 1)
    if rank == 1:
        same(hvd.allreduce(data(1), op=hvd.Sum, process_set=odd), data(1))
        refused(lambda: hvd.allreduce(data(1), process_set=even), "rank 1 is not in ProcessSet", ValueError)
    else:
        same(hvd.allreduce(data(rank), op=hvd.Sum, process_set=even), data(0) + data(2))
        same(hvd.broadcast(data(rank), 2, process_set=even), data(2))
        refused(lambda: hvd.broadcast(data(rank), 1, process_set=even), "root_rank 1 is not one of the ranks [0, 2]")
    assert hvd.add_process_set([0, 2]).process_set_id == even.process_set_id
    refused(lambda: hvd.add_process_set([0, 7]), "rank 7 of [0, 7] is not in the job, which has 3 ranks")
    assert hvd.remove_process_set(even)
    refused(lambda: hvd.allreduce(data(1), process_set=even), "is not registered", ValueError)


def joins(rank, path):
    """Ranks with different numbers of batches."""
    begin(rank, path)
    for batch in range(rank + 1):
        total = sum(other + 1.0 for other in range(SIZE) if other >= batch)
        same(hvd.allreduce(np.array([rank + 1.0]), op=hvd.Sum), [total])
        same(hvd.allgather(np.array([rank])), [other for other in range(SIZE) if other >= batch])
    assert hvd.join() == SIZE - 1
    same(hvd.allreduce(np.ones(2), op=hvd.Sum), [SIZE, SIZE])


def refusals(rank, path):
    refused(hvd.rank, "call hvd.init() first", ValueError)
    refused(lambda: hvd.allreduce(np.ones(2)), "call hvd.init() first", ValueError)
    begin(rank, path)
    x = np.ones((2, 3), np.float32)
    for words, call in {
        "rank 0: allreduce 'a' of 2x3 float32 by Average; rank 1: allreduce 'a' of 3x2 float32 by Average":
            lambda: hvd.allreduce(x.T.copy() if rank == 1 else x, name="a"),
        "rank 0: allreduce 'a' of 2x3 float32 by Average; rank 1: allreduce 'b' of 2x3 float32 by Average":
            lambda: hvd.allreduce(x, name="b" if rank == 1 else "a"),
        "rank 1: allreduce of 2x3 float64 by Average": lambda: hvd.allreduce(x.astype(np.float64) if rank == 1 else x),
        "rank 0: allreduce of 2x3 float32 by Min; rank 1: allreduce of 2x3 float32 by Max": lambda: hvd.allreduce(x, op=hvd.Max if rank else hvd.Min),
        "rank 0: broadcast of 2x3 float32 from rank 0; rank 1: broadcast of 2x3 float32 from rank 1": lambda: hvd.broadcast(x, min(rank, 1)),
        "rank 0: allreduce of 2x3 float32 by Average; rank 1: allgather of 2x3 float32": lambda: hvd.allgather(x) if rank else hvd.allreduce(x),
        "rank 0: allgather of 2x3 float32; rank 1: allgather of 2x2 float32": lambda: hvd.allgather(x[:, :2] if rank else x),
        "rank 1: allreduce: unknown op 'Median'; expected one of Average, Sum, Min, Max, Product": lambda: hvd.allreduce(x, op="Median" if rank else None),
        "op Adasum is not supported; use Average": lambda: hvd.allreduce(x, op=hvd.Adasum),
        "tensor is list; expected a NumPy array, or a tensor of tessera or PyTorch": lambda: hvd.allreduce([1.0]),
        "tensor has dtype complex64; expected one of": lambda: hvd.allreduce(x.astype(np.complex64)),
        "op Average of int32; only floats can be averaged": lambda: hvd.allreduce(x.astype(np.int32)),
        "prescale_factor 'x' is not a number": lambda: hvd.allreduce(x, prescale_factor="x"),
        "splits [1, 0, 0] are not 3 parts of 2 rows": lambda: hvd.alltoall(x, [1, 0, 0]),
        "tensor is a tensor of tessera, which is immutable": lambda: hvd.allreduce_(tessera.asarray(x)),
    }.items():
        refused(call, words)
    same(hvd.allreduce(x, op=hvd.Sum), x * SIZE)  # the job continues
    refused(lambda: hvd.allreduce(x, process_set=[0]), "process_set [0] is not a ProcessSet", ValueError)
    refused(lambda: hvd.synchronize(3), "handle 3 is not the result of an _async call", ValueError)
    refused(lambda: hvd.broadcast_object(object(), 1), "rank 1 cannot send" if rank != 1 else "an object of type object cannot be sent", ValueError)


def lost(rank, path):
    begin(rank, path)
    if rank == 1:
        os._exit(0)
    refused(lambda: [hvd.allreduce(np.ones(3)) for _ in range(10**6)], "", hvd.HorovodInternalError)
    refused(lambda: hvd.allreduce(np.ones(3)), "", hvd.HorovodInternalError)


def leaves(rank, path):
    begin(rank, path)
    if rank == 1:
        return
    refused(lambda: [hvd.allreduce(np.ones(3)) for _ in range(10**6)], "rank 1 has shut down", hvd.HorovodInternalError)


class Calls(unittest.TestCase):
    def job(self, body):
        with tempfile.TemporaryDirectory() as folder:
            dist.spawn(body, (os.path.join(folder, "meeting"),), SIZE)

    def test_reductions(self):
        self.job(reductions)

    def test_movements(self):
        self.job(movements)

    def test_process_sets(self):
        self.job(sets)

    def test_ranks_with_less_data_join(self):
        self.job(joins)

    def test_refusals(self):
        self.job(refusals)

    def test_a_rank_that_is_lost(self):
        self.job(lost)

    def test_a_rank_that_shuts_down(self):
        self.job(leaves)


if __name__ == "__main__":
    unittest.main()
