# RUN: %tessera_python %s
# REQUIRES: tessera-core
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The suite that every backend of process groups must pass: collective x type x reduction x algorithm x even and uneven parts x 1 to 9
ranks, against NumPy. A sample with a fixed seed, or all of it:

    group_conformance.py [--whole] [--backend NAME] [--library PATH] [--ranks N] [--cuda]

With --cuda arrays have the CUDA array interface; the memory is the host's, as in the fake libraries for tests.

Without a launcher, ranks are threads if the backend is `threads` or from a library, otherwise processes of `spawn`; under mpirun
or tessera launch this process is one rank."""

import argparse
import itertools
import os
import random
import sys
import tempfile
import threading

import numpy as np

import tessera.distributed as dist
from tessera.dtypes import numpy_of

KINDS = ("all_reduce", "reduce", "broadcast", "all_gather", "gather", "reduce_scatter", "scatter", "all_to_all")
REDUCING = ("all_reduce", "reduce", "reduce_scatter")
BFLOAT16 = numpy_of("bf16")
TYPES = ("float64", "float32", "float16", *(["bfloat16"] if BFLOAT16 != np.uint16 else []), "int64", "int32", "int16", "int8", "uint64", "uint32",
         "uint16", "uint8", "bool")
REDUCTIONS = ("sum", "avg", "max", "min", "prod", "band", "bor", "bxor")
ALGORITHMS = (None, "direct", "one_shot", "ring", "halving_doubling", "tree", "hierarchical")
COUNTS = (0, 1, 7, 1000)
MOST = 9


def cases():
    """(kind, type, reduction, algorithm, elements, uneven)"""
    for kind, dtype, algorithm, count in itertools.product(KINDS, TYPES, ALGORITHMS, COUNTS):
        for op in REDUCTIONS if kind in REDUCING else (None,):
            isFloat = "float" in dtype
            if (op == "avg" and not isFloat) or (op in ("band", "bor", "bxor") and isFloat):
                continue
            for uneven in (False, True) if kind not in ("all_reduce", "reduce", "broadcast") else (False,):
                yield kind, dtype, op, algorithm, count, uneven


def data(rank, count, dtype):
    """Small whole numbers, so that sums and products are exact in all types."""
    values = (np.arange(count) * 3 + rank * 5 + 1) % 4
    return values.astype(type_of(dtype))


class OnDevice:
    """An array in host memory that claims to be in memory of a GPU."""

    def __init__(self, array):
        self.array = array

    @property
    def __cuda_array_interface__(self):
        told = dict(self.array.__array_interface__, version=3, stream=None)
        if told["typestr"].endswith("V2"):
            told["typestr"] = "<V2"
        return told


def placed(arrays, is_cuda):
    """An array, or a list of arrays, as the argument of a call."""
    if arrays is None or not is_cuda:
        return arrays
    return [OnDevice(each) for each in arrays] if isinstance(arrays, list) else OnDevice(arrays)


def type_of(name):
    return BFLOAT16 if name == "bfloat16" else np.dtype(name)


def combine(op, parts):
    dtype = parts[0].dtype
    if op == "avg":
        return (sum(part.astype(np.float64) for part in parts) / len(parts)).astype(dtype)
    if dtype == bool:
        table = {"sum": np.logical_or, "prod": np.logical_and, "max": np.logical_or, "min": np.logical_and, "band": np.logical_and,
                 "bor": np.logical_or, "bxor": np.logical_xor}
        return table[op].reduce(parts)
    table = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum, "band": np.bitwise_and, "bor": np.bitwise_or,
             "bxor": np.bitwise_xor}
    if dtype == BFLOAT16:  # added in float32, rounded once
        return table[op].reduce([part.astype(np.float32) for part in parts]).astype(dtype)
    with np.errstate(over="ignore"):
        return table[op].reduce(parts, dtype=dtype)


def check(case, rank, size, is_cuda=False):
    """Makes the call, and compares the result of this rank; all ranks reject an algorithm that does not apply."""
    kind, dtype, op, algorithm, count, uneven = case
    sizes = [count + (other % 3 if uneven else 0) for other in range(size)]
    root = (count + size) % size
    more = {"algorithm": algorithm}
    if kind in REDUCING:
        more["op"] = op
    whole = kind in ("all_reduce", "reduce", "broadcast")
    inputs = [data(other, count if whole else sizes[other], dtype) for other in range(size)]
    parts = [[data(other + to, sizes[to], dtype) for to in range(size)] for other in range(size)]  # of a rank for each other
    mine = inputs[rank].copy()
    outs = [np.zeros(sizes[other], type_of(dtype)) for other in range(size)]
    expected, found = [], []
    on = lambda arrays: placed(arrays, is_cuda)
    try:
        if kind == "all_reduce":
            dist.all_reduce(on(mine), **more)
            expected, found = [combine(op, inputs)], [mine]
        elif kind == "reduce":
            dist.reduce(on(mine), root, **more)
            expected, found = [combine(op, inputs) if rank == root else inputs[rank]], [mine]
        elif kind == "broadcast":
            dist.broadcast(on(mine), root, **more)
            expected, found = [inputs[root]], [mine]
        elif kind == "all_gather":
            dist.all_gather(on(outs), on(mine), **more)
            expected, found = inputs, outs
        elif kind == "gather":
            dist.gather(on(mine), on(outs) if rank == root else None, root, counts=sizes, **more)
            expected, found = (inputs, outs) if rank == root else ([], [])
        elif kind == "reduce_scatter":
            dist.reduce_scatter(on(mine), on(parts[rank]), **more)
            expected, found = [combine(op, [parts[other][rank] for other in range(size)])], [mine]
        elif kind == "scatter":
            dist.scatter(on(mine), on(parts[root]) if rank == root else None, root, counts=sizes, **more)
            expected, found = [parts[root][rank]], [mine]
        else:
            gets = [np.zeros(sizes[rank], type_of(dtype)) for _ in range(size)]
            dist.all_to_all(on(gets), on(parts[rank]), **more)
            expected, found = [parts[other][rank] for other in range(size)], gets
    except dist.DistributedError as error:
        if algorithm and f"algorithm '{algorithm}' does not apply" in str(error):
            return 0
        if is_cuda and (": NCCL does not support reductions of " in str(error) or ": NCCL has no reduction " in str(error)):
            return 0
        raise AssertionError(f"{case} on {size} ranks: {error}") from None
    for want, have in zip(expected, found, strict=True):
        same = np.array_equal(want, have) if op != "avg" else np.allclose(want.astype(float), have.astype(float), rtol=8e-3 if dtype == "bfloat16" else 2e-3)
        assert same, f"{case}, rank {rank} of {size}: {have} and not {want}"
    return 1


def suite(backend, method, rank, size, whole, is_cuda=False):
    dist.init_process_group(backend, method, 300, size, rank)
    try:
        return run(whole, is_cuda)
    finally:
        dist.destroy_process_group()


def run(whole, is_cuda=False):
    rank, size = dist.get_rank(), dist.get_world_size()
    chosen = [case for case in cases() if not is_cuda or case[3] is None]  # NCCL chooses algorithms
    if not whole:
        chosen = random.Random(size).sample(chosen, 120)
    done = sum(check(case, rank, size, is_cuda) for case in chosen)
    others = "reductions NCCL has not" if is_cuda else "algorithms do not apply"
    return f"{size} rank{'s' * (size > 1)}: {done} calls are right, {len(chosen) - done} {others}"


def spawned(rank, backend, path, size, whole, is_cuda):
    said = suite(backend, f"file://{path}", rank, size, whole, is_cuda)
    if rank == 0:
        print(said, flush=True)


def threads(backend, size, whole):
    said, ranks = [None] * size, []

    def main(rank):
        try:
            said[rank] = suite(backend, f"suite {size}" if backend == "threads" else f"file:///suite-{os.getpid()}-{size}", rank, size, whole)
        except BaseException as error:
            said[rank] = error
    for rank in range(size):
        ranks.append(threading.Thread(target=main, args=(rank,)))
        ranks[-1].start()
    for each in ranks:
        each.join()
    for each in said:
        if isinstance(each, BaseException):
            raise each
    print(said[0], flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--backend", default=None)
    parser.add_argument("--library")
    parser.add_argument("--ranks", type=int, nargs="*", default=None)
    parser.add_argument("--whole", action="store_true")
    parser.add_argument("--cuda", action="store_true")
    options = parser.parse_args()
    if options.library:
        dist.load_backend(options.library)
    if any(name in os.environ for name in ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK")):
        dist.init_process_group(options.backend, timeout=300)
        said = run(options.whole, options.cuda)
        if dist.get_rank() == 0:
            print(said, flush=True)
        dist.destroy_process_group()
        return
    sizes = options.ranks or (range(1, MOST + 1) if options.whole else (1, 2, 3, 5, 8, 9))
    for backend in [options.backend] if options.backend else ["threads", "tcp"]:
        for size in sizes:
            if backend != "tcp" and not options.cuda:
                threads(backend, size, options.whole)
            elif options.backend or size in (2, 3, 5):
                with tempfile.TemporaryDirectory() as folder:
                    dist.spawn(spawned, (backend, os.path.join(folder, "meeting"), size, options.whole, options.cuda), size)


if __name__ == "__main__":
    sys.exit(main())
