# RUN: %tessera_python %s
# REQUIRES: tessera-core
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""D1-6: training with tessera.horovod: optimizers and trainers against one process with the whole batch, jobs of the launcher, and
elastic training with a rank that is killed."""

import os
import tempfile
import unittest

import numpy as np

import tessera
import tessera.distributed as dist
import tessera.horovod as hvd
from launch_case import LONG, LaunchCase
from tessera import optim
from tessera.testing import difference

SIZE, STEPS = 2, 3


def gradients(parameters, x, y):
    """Of the mean square error of x @ w + b."""
    w, b = np.asarray(parameters["w"]), np.asarray(parameters["b"])
    error = 2 * (x @ w + b - y) / y.size
    return {"w": (x.T @ error).astype(np.float32), "b": error.sum(0).astype(np.float32)}


def batches():
    random = np.random.default_rng(0)
    return [(random.standard_normal((8, 4)).astype(np.float32), random.standard_normal((8, 2)).astype(np.float32)) for _ in range(2 * STEPS)]


def start(seed=1):
    random = np.random.default_rng(seed)
    return {"w": tessera.asarray(random.standard_normal((4, 2)).astype(np.float32)), "b": tessera.asarray(np.zeros(2, np.float32))}


def alone(passes=1, make=lambda: optim.SGD(0.1, momentum=0.9)):
    """The parameters after training on whole batches, with `passes` batches per step."""
    parameters, optimizer = start(), make()
    state, data = optimizer.init(parameters), batches()
    for i in range(0, STEPS * passes, passes):
        found = [gradients(parameters, *batch) for batch in data[i:i + passes]]
        parameters, state = optimizer.update(parameters, {name: sum(each[name] for each in found) / passes for name in found[0]}, state)
    return parameters


def equal(parameters, expected):
    for name, value in expected.items():
        assert not (text := difference(np.asarray(parameters[name]), np.asarray(value), STEPS)), f"{name}: {text}"


def trains(rank, path):
    dist.init_process_group("tcp", f"file://{path}", LONG, SIZE, rank)
    hvd.init()
    for passes, options in ((1, {}), (2, {"backward_passes_per_step": 2}), (1, {"gradient_predivide_factor": 2.0})):
        parameters = hvd.broadcast_parameters(start(seed=1 + rank), root_rank=0)
        optimizer = hvd.DistributedOptimizer(optim.SGD(0.1, momentum=0.9), **options)
        state = hvd.broadcast_optimizer_state(optimizer.init(parameters))
        for x, y in batches()[:STEPS * passes]:
            parameters, state = optimizer.update(parameters, gradients(parameters, x[rank::SIZE], y[rank::SIZE]), state)
        equal(parameters, alone(passes))
    parameters = start(seed=1 + rank)
    hvd.broadcast_parameters(parameters, root_rank=0)
    trainer = hvd.DistributedTrainer(parameters, "adam", {"learning_rate": 0.1})
    for x, y in batches()[:STEPS]:
        part = gradients(parameters, x[rank::SIZE], y[rank::SIZE])
        trainer.step({name: value * len(x[rank::SIZE]) for name, value in part.items()}, batch_size=len(x[rank::SIZE]))
    equal(parameters, alone(make=lambda: optim.Adam(0.1)))
    for words, call in {"optimizer str is not one of tessera.optim": lambda: hvd.DistributedOptimizer("sgd"),
                        "unknown optimizer 'rms'; expected one of sgd, adam, adamw": lambda: hvd.DistributedTrainer(parameters, "rms"),
                        "backward_passes_per_step 0 is not a whole number from 1": lambda: hvd.DistributedOptimizer(optim.SGD(1), backward_passes_per_step=0),
                        "gradient_predivide_factor 2.0 needs op Average, not Sum":
                            lambda: hvd.DistributedOptimizer(optim.SGD(1), op=hvd.Sum, gradient_predivide_factor=2.0)}.items():
        try:
            call()
        except tessera.Error as error:
            assert words in str(error), error
        else:
            raise AssertionError(words)


# A script for Horovod; only the import is of this package.
SCRIPT = """
import numpy as np
import tessera.horovod as hvd
hvd.init()
x = np.arange(3, dtype=np.float32) + hvd.rank()
mean = hvd.allreduce(x, name="x")
rows = hvd.allgather(np.full((hvd.rank() + 1, 1), hvd.rank()))
weights = {"w": np.full(2, float(hvd.rank()))}
hvd.broadcast_parameters(weights, root_rank=0)
print(hvd.rank(), hvd.size(), hvd.local_rank(), hvd.local_size(), hvd.cross_rank(), hvd.cross_size(), mean.tolist(),
      rows.ravel().tolist(), weights["w"].tolist(), flush=True)
hvd.shutdown()
"""

# Counts to 6; the process of rank 1 is killed once, in step 4.
ELASTIC = """
import os, signal
import numpy as np
import tessera.horovod as hvd
hvd.init()

@hvd.elastic.run
def train(state):
    for state.step in range(state.step, 6):
        state.weights = state.weights + hvd.allreduce(np.full(2, hvd.rank() + 1.0), op=hvd.Sum, name="w")
        if state.step == 4 and hvd.rank() == 1 and os.environ["TESSERA_RESTART"] == "0":
            os.kill(os.getpid(), signal.SIGKILL)
        if state.step % 2:
            state.step += 1
            state.commit()
            state.step -= 1
        print("step", state.step, "start", os.environ["TESSERA_RESTART"], flush=True)
    return state.weights

state = hvd.elastic.ObjectState(step=0, weights=np.zeros(2))
state.register_reset_callbacks([lambda: print("reset", flush=True)])
print("weights", train(state).tolist(), flush=True)
"""

# Three ranks make two steps; rank 1 is lost before the third, which two make, and two more.
SHRINKING = """
import os
import numpy as np
import tessera.horovod as hvd
hvd.init()

@hvd.elastic.run
def train(state):
    while state.step < 5:
        if state.step == 2 and hvd.rank() == 1 and hvd.size() == 3:
            os.abort()
        state.weights += hvd.allreduce(np.ones(1), name="gradient", op=hvd.Sum)
        state.step += 1
        state.commit()
    return state.weights

state = hvd.elastic.ObjectState(step=0, weights=np.ones(1))
state.register_reset_callbacks([lambda: print("reset", hvd.size(), flush=True)])
print("weights", train(state)[0], "on", hvd.size(), flush=True)
"""

INTERRUPTED = """
import numpy as np
import tessera.horovod as hvd
hvd.init()

@hvd.elastic.run
def train(state):
    state.calls += 1
    if state.calls == 1 and hvd.rank() == 1:
        state.on_hosts_updated()
    state.commit()
    if state.calls == 2:
        state.lost += 1
        raise hvd.HorovodInternalError("a fault of the network")
    return state.calls, state.lost

print(train(hvd.elastic.ObjectState(calls=0, lost=0)), flush=True)
"""


class Training(unittest.TestCase):
    def test_steps_of_two_are_those_of_one(self):
        with tempfile.TemporaryDirectory() as folder:
            dist.spawn(trains, (os.path.join(folder, "meeting"),), SIZE)


class Jobs(LaunchCase):
    def test_a_script_of_horovod(self):
        code, out, err = self.launch("--nproc_per_node=3", "--master_port=0", self.script(SCRIPT))
        self.assertEqual(code, 0, err)
        self.assertEqual(out, [f"[rank {rank}] {rank} 3 {rank} 3 0 1 [1.0, 2.0, 3.0] [0, 1, 1, 2, 2, 2] [0.0, 0.0]" for rank in range(3)])

    def test_elastic(self):
        code, out, err = self.launch("--nproc_per_node=2", "--master_port=0", "--max_restarts=1", self.script(ELASTIC), TMPDIR=self.folder)
        self.assertEqual(code, 0, err)
        for rank in range(2):
            said = [line for line in out if line.startswith(f"[rank {rank}]")]
            for line in ("step 3 start 0", "reset", "step 4 start 1", "step 5 start 1", "weights [18.0, 18.0]"):
                self.assertIn(f"[rank {rank}] {line}", said)
            self.assertNotIn(f"[rank {rank}] step 3 start 1", said)
        self.assertEqual([name for name in os.listdir(self.folder) if "elastic" in name], [])

    def test_elastic_with_fewer_ranks(self):
        code, out, err = self.launch("--nproc_per_node=3", "--master_port=0", "--max_restarts=1", "--min_ranks=2", self.script(SHRINKING),
                                     TMPDIR=self.folder)
        self.assertEqual(code, 0, err)
        self.assertEqual(sorted(line for line in out if "weights" in line), [f"[rank {rank}] weights 13.0 on 2" for rank in range(2)])
        self.assertIn("[rank 0] reset 2", out)

    def test_interrupts(self):
        code, out, err = self.launch("--nproc_per_node=2", "--master_port=0", self.script(INTERRUPTED), TMPDIR=self.folder)
        self.assertEqual(code, 0, err)
        self.assertEqual(out, [f"[rank {rank}] (3, 0)" for rank in range(2)])


if __name__ == "__main__":
    unittest.main()
