# RUN: %tessera_python %s
# REQUIRES: tessera-core
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""D2-10, D3-11: checkpoints are bit-equal after a round trip between any meshes, and what is wrong with one is named."""

import contextlib
import io
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import unittest
import warnings

import numpy as np

import tessera as ts
from tessera import ProcessMesh, Replicate, Shard, Sharding
from tessera.checkpoints import CheckpointError, LocalTensor, latest, load_checkpoint, load_distributed_checkpoint, load_state, save_checkpoint, save_state
from tessera.checkpoints import manifest
from tessera.checkpoints.__main__ import main
from tessera.layout import local_value

KILLED = """
import sys, numpy as np
from tessera.checkpoints import save_checkpoint
for step in range(int(sys.argv[2]), 10**6):
    save_checkpoint(sys.argv[1], {"w": np.full((256, 1024), step, np.float32)}, step)
    print(step, flush=True)
"""
RANK = """
import sys, numpy as np, tessera as ts
from tessera.checkpoints import LocalTensor, load_checkpoint, save_checkpoint
from tessera import ranks
me, mesh = ranks.read(), ts.ProcessMesh(list(range(ranks.read().size)), ["x"])
whole = np.arange(70, dtype=np.int32).reshape(7, 10)
sharding = ts.Sharding(mesh, (ts.Shard(0),))
rows = -(-7 // me.size)
part = LocalTensor(whole[me.rank * rows:(me.rank + 1) * rows], whole.shape, sharding, me.rank)
for step in (1, 2):
    save_checkpoint(sys.argv[1 + me.rank % (len(sys.argv) - 1)], {"w": part, "all": np.ones(3)}, step, timeout=float(5 if len(sys.argv) > 2 else 60))
"""


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def refused(self, text, function, *args, **options):
        with self.assertRaisesRegex(CheckpointError, text):
            function(*args, **options)


class RoundTrips(Case):
    def test_types(self):
        random_ = np.random.default_rng(0)
        state = {kind: np.frombuffer(random_.bytes(240), np.dtype(kind)).reshape(-1, 5) for kind in
                 "float64 float32 float16 int64 int32 int16 int8 uint64 uint32 uint16 uint8".split()}
        state |= {"bool": np.array([True, False]), "scalar": np.float64(2.5) * np.ones(()), "empty": np.zeros((0, 3)),
                  "bf16": ts.asarray([1.5, -2.0], "bfloat16"), "list": [np.arange(3), 7, None, float("inf"), "text"]}
        save_checkpoint(self.folder, state, 4)
        loaded = load_checkpoint(self.folder, state)
        self.assertEqual((loaded.step, loaded.state["list"][1:]), (4, [7, None, float("inf"), "text"]))
        for name in state:
            if name != "list":
                self.assertEqual(np.asarray(state[name]).tobytes(), np.asarray(loaded.state[name]).tobytes(), name)
                self.assertEqual(str(state[name].dtype), str(loaded.state[name].dtype))

    def test_meshes(self):
        """Each pair of placements; a rank reads no more than its part and the chunks around it."""
        value = np.arange(37 * 26, dtype=np.float32).reshape(37, 26)
        mesh, other = ProcessMesh([[0, 1], [2, 3]], ["x", "y"]), ProcessMesh([0, 1, 2], ["z"])
        for i, placements in enumerate(([Shard(0)], [Shard(1), Shard(0)], [Shard(1), Shard(1)], [Replicate(), Shard(0)], [])):
            folder = self.path(str(i))
            path = save_checkpoint(folder, {"w": ts.shard_tensor(value, mesh, placements)}, chunk=64).path
            size = sum(os.path.getsize(os.path.join(path, name)) for name in os.listdir(path) if name != "manifest.json")
            self.assertLess(size, value.nbytes + 1000)  # replicas are written once
            for placement in Shard(0), Shard(1), Replicate():
                for rank in range(3):
                    sharding = Sharding(other, (placement,))
                    part = local_value(value, sharding, rank)
                    loaded = load_checkpoint(folder, {"w": LocalTensor(np.zeros_like(part), value.shape, sharding, rank)})
                    np.testing.assert_array_equal(loaded.state["w"].array, part)
                    if placement == Shard(0):
                        self.assertLess(loaded.bytes_read, part.nbytes + 2000)

    def test_training(self):
        """Tied weights stay tied; random numbers and the loader go on."""
        w, generator = np.ones((2, 2), np.float32), np.random.default_rng(1)
        save_checkpoint(self.folder, {"a": w, "b": w}, random=generator, loader={"epoch": 3}, program="module {}")
        expected, state = generator.random(), {"a": np.zeros((2, 2), np.float32), "b": np.zeros((2, 2), np.float32)}
        loaded = load_checkpoint(self.folder, state, random=generator)
        self.assertEqual((generator.random(), loaded.loader), (expected, {"epoch": 3}))
        np.testing.assert_array_equal(loaded.state["b"], w)

    def test_distributed_checkpoint(self):
        train, predict = ProcessMesh([[0, 1], [2, 3]], ["x", "y"]), ProcessMesh([0, 1], ["z"])
        w = np.arange(24, dtype=np.float32).reshape(4, 6)
        path = save_checkpoint(self.folder, {"w": ts.shard_tensor(w, train, [Shard(0), Shard(1)])}).path
        files = [os.path.join(path, name) for name in sorted(os.listdir(path)) if name.endswith(".safetensors")]
        network = {"w": ts.asarray(np.zeros((4, 6), np.float32))}
        made = load_distributed_checkpoint(network, files, {"w": (predict, [Shard(1)])})
        np.testing.assert_array_equal(made["w"].numpy(), w)
        self.assertEqual(made["w"].placements, (Shard(1),))
        self.refused("shard-00003.*not among checkpoint_filenames, and parameter 'w'", load_distributed_checkpoint, network, files[:3])
        self.refused("no parameter 'v'", load_distributed_checkpoint, network, files, {"v": None})

    def test_asynchronous(self):
        w = np.zeros(1000)
        save = save_checkpoint(self.folder, {"w": w}, 1, asynchronous=True)
        w[:] = 1  # a copy is saved
        save.wait()
        self.assertEqual(load_checkpoint(self.folder).state["w"].numpy().max(), 0)

    def test_keep(self):
        for step in range(5):
            save_checkpoint(self.folder, {"w": np.zeros(1)}, step, keep=3)
        save_checkpoint(self.folder, {"w": np.zeros(1)}, 0, keep=3)  # what was saved last stays
        self.assertEqual(sorted(name for name in os.listdir(self.folder) if name[0] != "."), ["step-0000000000", "step-0000000003", "step-0000000004"])
        self.refused("keep 1", save_checkpoint, self.folder, {}, keep=1)

    def test_files_of_hugging_face(self):
        state = {"model": {"a": np.ones((3, 2), np.float32), "b": np.arange(4)}}
        save_checkpoint(self.path("in"), state)
        self.assertEqual(main(["convert", self.path("in"), self.path("hf"), "--strip", "model.", "--max-shard-size", "30"]), 0)
        self.assertIn("model.safetensors.index.json", os.listdir(self.path("hf")))
        loaded = load_state(self.path("hf"), {"a": np.zeros((3, 2), np.float32), "b": np.zeros(4, np.int64)})
        np.testing.assert_array_equal(loaded["b"], np.arange(4))
        self.assertEqual(main(["merge", self.path("hf"), self.path("one.safetensors")]), 0)
        self.assertEqual(set(load_state(self.path("one.safetensors"))), {"a", "b"})
        with contextlib.redirect_stdout(io.StringIO()) as out:
            self.assertEqual(main(["ls", self.path("in"), "--tensors"]), 0)
        self.assertIn("model.a: float32[3, 2]", out.getvalue())


class Refusals(Case):
    def save(self, *steps):
        for step in steps:
            path = save_checkpoint(self.folder, {"w": np.arange(500, dtype=np.float32) + step, "b": np.ones(3)}, step, chunk=256).path
        return path, os.path.join(path, "shard-00000-of-00001.safetensors")

    def test_flips(self):
        path, _ = self.save(0)
        chance = random.Random(0)
        for _ in range(int(os.environ.get("FLIPS", "300"))):
            name = os.path.join(path, chance.choice(sorted(os.listdir(path))))
            with open(name, "r+b") as file:
                at, bit = chance.randrange(os.path.getsize(name)), 1 << chance.randrange(8)
                file.seek(at)
                byte = file.read(1)[0]
                file.seek(at)
                file.write(bytes([byte ^ bit]))
                file.flush()
                with self.assertRaises(CheckpointError):
                    load_checkpoint(self.folder)
                file.seek(at)
                file.write(bytes([byte]))
        load_checkpoint(self.folder)

    def test_fallback(self):
        _, shard = self.save(1, 2)
        os.truncate(shard, 100)
        self.refused("shard-00000-of-00001.safetensors: .*100 bytes.*truncated.*tensor 'w'.*fallback=True", load_checkpoint, self.folder)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            self.assertEqual(load_checkpoint(self.folder, fallback=True).step, 1)
        self.assertIn("truncated", str(caught[0].message))
        self.assertTrue(latest(self.folder).endswith("1"))
        os.unlink(shard)
        self.refused("file is missing; tensor 'w' lies there", load_checkpoint, self.folder)

    def test_other_model(self):
        self.save(0)
        self.refused(r"'v' is missing, 'w' has shape \[500\], not \[2\], 'b' is of float64, not int8|'w' has shape", load_checkpoint, self.folder,
                     {"v": np.ones(1), "w": np.ones(2, np.float32), "b": np.ones(3, np.int8)})

    def test_manifests(self):
        """Signed again after each change, so that the checks behind the checksum are met."""
        path, _ = self.save(0)
        with open(os.path.join(path, "manifest.json"), "rb") as file:
            good = file.read()
        file = '"shard-00000-of-00001.safetensors"'
        for old, new, text in ((b'"version": 1', b'"version": 2', "version 2; this version of Tessera reads up to 1"),
                               (file.encode(), b'"../x.safetensors"', "no name of a file"),
                               (b"500", b"5000000000000", r"float32 of shape \[500\]"), (b'"step": 0', b'"step": -1', "out of range")):
            with open(os.path.join(path, "manifest.json"), "wb") as out:
                out.write(manifest._sign(manifest._PREFIX + b"0" * 64 + good.replace(old, new)[len(manifest._PREFIX) + 64:]))
            self.refused(text, load_checkpoint, self.folder)

    def test_headers(self):
        for header, text in ((b"\xff" * 8, "header has"), ((20).to_bytes(8, "little") + b'{"a":' + b" " * 15, "no JSON"), (b"12", "2 bytes"),
                             (self.header({"a": {"dtype": "F32", "shape": [1 << 40], "data_offsets": [0, 4]}}), "data_offsets|bytes"),
                             (self.header({"a": {"dtype": "F32", "shape": [-1], "data_offsets": [0, 0]}}), "no list of extents")):
            with open(self.path("x.safetensors"), "wb") as file:
                file.write(header)
            self.refused(text, load_state, self.path("x.safetensors"))

    def header(self, entries):
        text = json.dumps(entries).encode()
        return len(text).to_bytes(8, "little") + text

    def test_no_room(self):
        self.save(0)
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
        try:
            self.refused("File too large; the checkpoint was not saved", save_checkpoint, self.folder, {"w": np.zeros(10**5)}, 1)
            save = save_checkpoint(self.folder, {"w": np.zeros(10**5)}, 1, asynchronous=True)
            self.refused("File too large", save.wait)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        self.assertEqual(load_checkpoint(self.folder).step, 0)
        self.assertEqual([name for name in os.listdir(self.folder) if name.startswith(".writing")], [])


class Processes(Case):
    def test_kills(self):
        chance, acknowledged = random.Random(0), -1
        for _ in range(int(os.environ.get("KILLS", "8"))):
            process = subprocess.Popen([sys.executable, "-c", KILLED, self.folder, str(acknowledged + 1)], stdout=subprocess.PIPE, text=True)
            acknowledged = int(process.stdout.readline())
            threading.Timer(chance.random() * 0.1, process.send_signal, [signal.SIGKILL]).start()
            lines = process.stdout.read().splitlines(keepends=True)
            process.wait()
            process.stdout.close()
            acknowledged = max([acknowledged, *(int(line) for line in lines if line.endswith("\n"))])
            loaded = load_checkpoint(self.folder)
            self.assertGreaterEqual(loaded.step, acknowledged)
            self.assertTrue((loaded.state["w"].numpy() == loaded.step).all())
            acknowledged = loaded.step

    def ranks(self, size, *folders):
        started = [subprocess.Popen([sys.executable, "-c", RANK, *folders], stderr=subprocess.PIPE, text=True,
                                    env={**os.environ, "RANK": str(rank), "WORLD_SIZE": str(size)}) for rank in range(size)]
        errors = [each.communicate(timeout=120)[1] for each in started]
        return [each.returncode for each in started], errors

    def test_ranks(self):
        codes, errors = self.ranks(3, self.folder)
        self.assertEqual(codes, [0, 0, 0], errors)
        loaded = load_checkpoint(self.folder)
        self.assertEqual(loaded.step, 2)
        np.testing.assert_array_equal(loaded.state["w"].numpy(), np.arange(70).reshape(7, 10))

    def test_not_shared(self):
        codes, errors = self.ranks(2, self.path("a"), self.path("b"))
        self.assertEqual(codes, [1, 1])
        self.assertIn("has seen no file of rank 1", errors[0])
        self.assertRegex(errors[1], r"rank 1 \(host \S+\) has seen no file of rank 0 .*not shared")


if __name__ == "__main__":
    unittest.main()
