# RUN: %tessera_python %s --flips 300
# REQUIRES: tessera-core
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""D2-10, D3-11: checkpoints are bit-equal after a round trip between any meshes, and errors name the damage."""

import argparse
import contextlib
import io
import json
import os
import random
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import unittest
import warnings
from unittest import mock

import numpy as np

import tessera as ts
from tessera import Open, ProcessMesh, Replicate, Shard, Sharding, nn, optim
from tessera.checkpoints import CheckpointError, LocalTensor, latest, load_checkpoint, load_distributed_checkpoint, load_state, save_checkpoint, save_state
from tessera.checkpoints import manifest
from tessera.checkpoints.__main__ import main
from tessera.layout import local_value

FLIPS = 300
FULL = """
import os, subprocess, sys, numpy as np
from tessera.checkpoints import CheckpointError, load_checkpoint, save_checkpoint
folder, good, large = sys.argv[1], {"w": np.arange(1000.0)}, {"w": np.zeros(500_000)}
save_checkpoint(folder, good, 1)
try:
    save_checkpoint(folder, large, 2)
except CheckpointError as error:
    print(error, flush=True)
rank = '''
import sys, numpy as np, tessera as ts
from tessera.checkpoints import CheckpointError, save_checkpoint
try:  # rank 1 writes it
    save_checkpoint(sys.argv[1], {"w": ts.shard_tensor(np.zeros(500_000), ts.ProcessMesh([1], ["x"]), [ts.Replicate()])}, 3)
except CheckpointError as error:
    print(error, flush=True)
'''
started = [subprocess.Popen([sys.executable, "-c", rank, folder], env={**os.environ, "RANK": str(i), "WORLD_SIZE": "2"}) for i in (0, 1)]
assert [each.wait() for each in started] == [0, 0]
loaded = load_checkpoint(folder)
assert loaded.step == 1 and (loaded.state["w"].numpy() == good["w"]).all()
assert not [name for name in os.listdir(folder) if name.startswith(".writing")]
save_checkpoint(folder, good, 4)  # there is room again
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
        """Tied weights stay tied; random numbers and the loader resume."""
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
        self.refused("shard-00003.*not among checkpoint_filenames, and holds parameter 'w'", load_distributed_checkpoint, network, files[:3])
        self.refused("no parameter 'v'", load_distributed_checkpoint, network, files, {"v": None})
        self.refused(r"shard-00001\S+: the file is missing", load_distributed_checkpoint, network, [files[0], files[1] + "x"])
        self.refused(r"shard-00001\S+: the file is missing", self._without, files[1], network, path)
        self.refused("'w' has shape \\[4, 6\\], not \\[4, 5\\]", load_distributed_checkpoint, {"w": np.zeros((4, 5), np.float32)}, files)
        self.refused("'v' is missing, 'w' is unexpected", load_distributed_checkpoint, {"v": np.zeros((4, 6), np.float32)}, files)
        self.refused("predict_strategy: 3 of 'w' is neither a Sharding nor \\(ProcessMesh", load_distributed_checkpoint, network, files, {"w": 3})
        self.refused("predict_strategy 3 is not a dictionary", load_distributed_checkpoint, network, files, 3)

    def _without(self, file, *args):
        os.rename(file, file + ".away")
        try:
            load_distributed_checkpoint(*args)
        finally:
            os.rename(file + ".away", file)

    def test_training_for_inference(self):
        """D3-10, D3-11: trained on 2 x 2 devices, used on 1, 2 and 8 with the layout that the compiler infers; one output."""
        nn.init.seed(0)
        net = nn.Sequential(nn.Linear(8, 16), nn.relu, nn.Linear(16, 4))
        x = np.random.default_rng(0).standard_normal((8, 8)).astype(np.float32)
        mesh = ProcessMesh([[0, 1], [2, 3]], ["dp", "tp"])
        cut = {"layers.0.weight": [Replicate(), Shard(1)], "layers.0.bias": [Replicate(), Shard(0)], "layers.2.weight": [Replicate(), Shard(0)]}
        net = optim.shard_parameters(net, mesh, lambda name, p: cut.get(name))
        expected = np.asarray(ts.jit(lambda net, x: net(x))(net, x))
        path = save_checkpoint(self.folder, net).path
        files = [os.path.join(path, name) for name in os.listdir(path) if name.endswith(".safetensors")]
        fresh = nn.Sequential(nn.Linear(8, 16), nn.relu, nn.Linear(16, 4))
        whole = load_distributed_checkpoint(fresh, files, train_strategy_filename=os.path.join(path, "manifest.json"))
        self.assertEqual([p.placements for p in whole.parameters()], [None] * 4)
        np.testing.assert_allclose(np.asarray(whole(x)), expected, rtol=1e-5)
        for size in (1, 2, 8):
            line = ProcessMesh(range(size), ["x"])
            layout = optim.shard_parameters(fresh, line, lambda name, p: [Shard(1)] if name == "layers.0.weight" else [Open()]).infer_predict_layout(x) \
                if size > 1 else fresh.infer_predict_layout(x)
            placed = load_distributed_checkpoint(fresh, files, layout)
            for name, parameter in placed.named_parameters():
                self.assertEqual(parameter.sharding, layout[name].sharding, name)
                self.assertEqual("" if size == 1 else str(parameter.sharding), "" if size == 1 else layout[name])
            if size > 1:
                self.assertEqual(dict(placed.named_parameters())["layers.0.weight"].placements, (Shard(1),))
            np.testing.assert_allclose(np.asarray(ts.jit(lambda net, x: net(x))(placed, x)), expected, rtol=1e-5)

    def test_of_a_wrapped_model(self):
        """D2-10: a checkpoint of rank 0 of a data-parallel training loads into a plain model, which computes the same."""
        nn.init.seed(0)
        x, y = np.ones((8, 6), np.float32), np.zeros((8, 3), np.float32)
        model, optimizer = ts.DistributedDataParallel(nn.Linear(6, 3), ProcessMesh(range(4), ["dp"])), optim.SGD(0.1)

        @ts.jit
        def step(model, state, x, y):
            value, gradients = ts.value_and_grad(lambda model, x, y: nn.mse_loss(model(x), y))(model, x, y)
            return *optimizer.update(model, gradients, state), value
        model, *_ = step(model, optimizer.init(model), x, y)
        save_checkpoint(self.folder, model.module.state_dict(), alone=True)
        plain = nn.Linear(6, 3)
        plain.load_state_dict(load_checkpoint(self.folder, plain.state_dict()).state)
        np.testing.assert_allclose(np.asarray(plain(x)), np.asarray(ts.jit(lambda m, x: m(x))(model, x)), rtol=1e-6)

    def test_asynchronous(self):
        w = np.zeros(1000)
        save = save_checkpoint(self.folder, {"w": w}, 1, asynchronous=True)
        w[:] = 1  # a copy is saved
        save.wait()
        self.assertEqual(load_checkpoint(self.folder).state["w"].numpy().max(), 0)

    def test_keep(self):
        for step in range(5):
            save_checkpoint(self.folder, {"w": np.zeros(1)}, step, keep=3)
        save_checkpoint(self.folder, {"w": np.zeros(1)}, 0, keep=3)  # the last checkpoint stays
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
        for _ in range(FLIPS):
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
        self.refused("file is missing; it holds tensor 'w'", load_checkpoint, self.folder)

    def test_nothing_to_load(self):
        self.refused("no such file or folder", load_checkpoint, self.path("x"))
        with open(self.path("pytorch_model.bin"), "wb") as file:
            file.write(b"PK\x03\x04" + bytes(100))
        self.refused("no complete checkpoint, no model.safetensors.index.json and no model.safetensors; 'pytorch_model.bin' is pickled", load_checkpoint, self.folder)
        self.refused("the file is pickled, as torch.save writes it", load_checkpoint, self.path("pytorch_model.bin"))
        with open(self.path("manifest.json"), "w", encoding="utf-8") as file:
            file.write('{"format": "other", "version": 1}')
        self.refused("the format is 'other'; expected 'tessera checkpoint'", load_checkpoint, self.folder)
        with open(self.path("manifest.json"), "w", encoding="utf-8") as file:
            file.write('{"format": "tessera checkpoint", "version": 7, "signature": "of another kind"}')
        self.refused("version 7; this version of Tessera reads up to 1", load_checkpoint, self.folder)

    def test_ranks_are_named(self):
        self.save(0)
        with mock.patch.dict(os.environ, RANK="3", WORLD_SIZE="4"):
            self.refused(r"rank 3 \(host \S+\): .*step-0000000000: the checkpoint does not match the state: 'v' is missing", load_checkpoint, self.folder,
                         {"v": np.ones(1)}, strict=True)

    def test_arguments_in_another_order(self):
        self.refused("folder is a dict, not a path", save_checkpoint, {"w": np.ones(2)}, self.folder)

    def test_other_model(self):
        self.save(0)
        self.refused(r"'v' is missing, 'w' has shape \[500\], not \[2\], 'b' has dtype float64, not int8|'w' has shape", load_checkpoint, self.folder,
                     {"v": np.ones(1), "w": np.ones(2, np.float32), "b": np.ones(3, np.int8)})

    def test_manifests(self):
        """Manifests get a new checksum after each change, so that later checks are reached."""
        path, _ = self.save(0)
        with open(os.path.join(path, "manifest.json"), "rb") as file:
            good = file.read()
        file = '"shard-00000-of-00001.safetensors"'
        for old, new, text in ((b'"version": 1', b'"version": 2', "version 2; this version of Tessera reads up to 1"),
                               (file.encode(), b'"../x.safetensors"', "not a file name"),
                               (b"500", b"5000000000000", r"float32 of shape \[500\]"), (b'"step": 0', b'"step": -1', "out of range")):
            with open(os.path.join(path, "manifest.json"), "wb") as out:
                out.write(manifest._sign(manifest._PREFIX + b"0" * 64 + good.replace(old, new)[len(manifest._PREFIX) + 64:]))
            self.refused(text, load_checkpoint, self.folder)

    def test_a_file_of_another_format(self):
        path = os.path.join(self.folder, "x.npy")
        np.save(path, np.ones(3))
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            self.assertEqual(main(["verify", path]), 1)
        self.assertTrue(out.getvalue().startswith(f"{path}: not a safetensors file, or truncated: "), out.getvalue())

    def test_headers(self):
        for header, text in ((b"\xff" * 8, "header has"), ((20).to_bytes(8, "little") + b'{"a":' + b" " * 15, "invalid JSON"), (b"12", "2 bytes"),
                             (self.header({"a": {"dtype": "F32", "shape": [1 << 40], "data_offsets": [0, 4]}}), "data_offsets|bytes"),
                             (self.header({"a": {"dtype": "F32", "shape": [-1], "data_offsets": [0, 0]}}), "not a list of extents")):
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
            self.refused(r"shard-\S+: File too large: the tensors of the file need 800000 bytes, and files of this process are limited to 100000 .ulimit -f.; "
                         "the checkpoint was not saved", save_checkpoint, self.folder, {"w": np.zeros(10**5)}, 1)
            save = save_checkpoint(self.folder, {"w": np.zeros(10**5)}, 1, asynchronous=True)
            self.refused("File too large", save.wait)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        self.assertEqual(load_checkpoint(self.folder).step, 0)
        self.assertEqual([name for name in os.listdir(self.folder) if name.startswith(".writing")], [])

    def test_full_disk(self):
        """A file system of 2 MiB: one process, and two ranks of which one has no space."""
        own = ["unshare", "-rm", "sh", "-c", 'mount -t tmpfs -o size=2m none "$0" && exec "$@"', self.folder]
        if subprocess.run([*own, "true"], capture_output=True).returncode:
            self.skipTest("no namespace with a file system of its own can be made here")
        done = subprocess.run([*own, sys.executable, "-c", FULL, self.folder], capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        alone, ranks = done.stdout.splitlines()[0], done.stdout.splitlines()[1:]
        self.assertRegex(alone, r"shard-00000-of-00001.safetensors: No space left on device: the tensors of the file need 4000000 bytes, and the file system "
                                r"has \d+ for it; the checkpoint was not saved; older ones are unchanged$")
        self.assertEqual(len(ranks), 2, ranks)
        for line in ranks:
            self.assertRegex(line, r"shard-00001-of-00002.safetensors: No space left on device: the tensors of the file need 4000000 bytes")
        self.assertTrue(any(re.search(r"rank 1 \(host \S+\): ", line) for line in ranks), ranks)


class Processes(Case):
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
    parser = argparse.ArgumentParser()
    parser.add_argument("--flips", type=int, default=FLIPS, help="bits that are changed, one at a time")
    options, rest = parser.parse_known_args()
    FLIPS = options.flips
    unittest.main(argv=[sys.argv[0], *rest])
