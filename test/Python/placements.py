# RUN: %tessera_python %s
# REQUIRES: tessera-core
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Meshes, placements, what each process holds, moves between placements; and errors with the user's line."""

import copy
import itertools
import pickle
import sys
import unittest
import warnings

import numpy as np

import tessera as ts
from tessera import Partial, ProcessMesh, Replicate, Shard, nn, optim, reshard, shard_tensor, unshard


class Refusals(unittest.TestCase):
    def refused(self, kind, message, function):
        """`function` raises `kind` with the message, and begins with the line of this file that it is called from."""
        with self.assertRaises(kind) as caught:
            function()
        text = str(caught.exception)
        self.assertIn(message, text)
        self.assertIsInstance(caught.exception, ts.Error)
        line = function.__code__.co_firstlineno
        self.assertTrue(text.startswith(f"{__file__}:{line}:"), text)


class Meshes(Refusals):
    def test_any_order(self):
        mesh = ProcessMesh([[2, 4, 5], [0, 1, 3]], ["x", "y"])
        self.assertEqual((mesh.shape, mesh.process_ids, mesh.coordinate(4)), ((2, 3), [2, 4, 5, 0, 1, 3], (0, 1)))
        x = shard_tensor(np.arange(12).reshape(4, 3), mesh, [Shard(0), Shard(1)])
        np.testing.assert_array_equal(x.local_value(4), [[1], [4]])

    def test_names(self):
        self.assertEqual(ProcessMesh([0, 1]).dim_names, ("d0",))
        self.assertEqual(ProcessMesh(np.arange(8).reshape(2, 2, 2)).shape, (2, 2, 2))
        self.assertEqual(ProcessMesh([0, 1], ["x"]), ProcessMesh([0, 1], ["x"], name="other"))

    def test_more_processes_than_there_are(self):
        mesh = ProcessMesh([[2, 4, 5], [0, 1, 3]])
        artifact = ts.jit(lambda x: x + 1).lower(ts.spec((6,), "float32", mesh, [Shard(0)])).compile()
        with self.assertRaisesRegex(ts.Error, "mesh.* 6 .*2"):
            ts.Session(artifact, devices=2)

    def test_refused(self):
        for message, ids, names in (
                ("the mesh is ragged: entry 0 has shape [2], entry 1 has [1]", [[0, 1], [2]], None),
                ("duplicate process id 1", [0, 1, 1], None), ("process id -1 is negative", [0, -1], None),
                ("process id 1.5 is not an integer", [0, 1.5], None), ("at least one process", [], None),
                ("2 names ['x', 'y'] for a mesh of 1 axes", [0, 1], ["x", "y"]), ("duplicate axis name 'x'", [[0, 1]], ["x", "x"]),
                ("got 4", 4, None)):
            self.refused(ts.MeshError, message, lambda: ProcessMesh(ids, names))
        self.refused(ts.MeshError, "no axis 'z'", lambda: ProcessMesh([0, 1], ["x"]).axis("z"))
        self.refused(ts.MeshError, "process 7 is not in the mesh", lambda: ProcessMesh([0, 1]).coordinate(7))


class Placements(Refusals):
    line = ProcessMesh([0, 1], ["x"])
    square = ProcessMesh([[0, 1], [2, 3]], ["x", "y"])

    def test_uneven(self):
        x = shard_tensor(np.arange(6).reshape(2, 3), self.line, [Shard(1)])
        self.assertEqual([x.local_value(r).tolist() for r in (0, 1)], [[[0, 1], [3, 4]], [[2], [5]]])
        y = shard_tensor(np.arange(5), self.square, [Shard(0), Shard(0)])
        self.assertEqual([y.local_value(r).tolist() for r in range(4)], [[0, 1], [2, 3], [4], []])

    def test_partial(self):
        """The value on coordinate 0, the identity elsewhere."""
        data = np.array([-3, 4], np.float32)
        for kind, identity in (("sum", 0), ("prod", 1), ("max", -np.inf), ("min", np.inf)):
            x = shard_tensor(data, self.line, [Partial(kind)])
            np.testing.assert_array_equal(x.local_value(0), data)
            np.testing.assert_array_equal(x.local_value(1), [identity] * 2)
        np.testing.assert_array_equal(shard_tensor(data, self.line, [Partial("avg")]).local_value(1), data)

    def test_all_moves(self):
        """Every pair of placements, on one axis and on two, of a shape that does not divide; also of integers."""
        def values(dtype):
            return (np.arange(15).reshape(3, 5) - 7).astype(dtype)
        one = [Replicate(), Shard(0), Shard(1), Partial(), Partial("max")]
        pairs = [([a], [c], self.line) for a, c in itertools.product(one, one)]
        some = [Replicate(), Shard(0), Shard(1), Partial()]
        both = list(itertools.product(some, some))
        pairs += [(a, c, self.square) for i, a in enumerate(both) for c in both[i % 3::3]]
        for dtype, mesh in itertools.product((np.float32, np.int64), (self.line, self.square)):
            here = [(source, target) for source, target, of in pairs if of is mesh]

            @ts.jit
            def moves(*tensors):
                return [reshard(t, mesh, target) for t, (_, target) in zip(tensors, here)]
            results = moves(*[shard_tensor(values(dtype), mesh, source) for source, _ in here])
            for result, (source, target) in zip(results, here):
                np.testing.assert_array_equal(result.numpy(), values(dtype), f"{source} to {target}")
                self.assertEqual(result.placements, tuple(target))

    def test_printed(self):
        x = shard_tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], self.line, [Shard(1)])
        self.assertEqual(repr(x).splitlines()[0], "Tensor(shape=[2, 3], dtype=float32, mesh=[2] of ['x'], placements=[Shard(1)], local_shape=[2, 2])")
        whole = reshard(x, self.line, [Replicate()])
        self.assertIn("placements=[Replicate()], local_shape=[2, 3]", repr(whole))
        np.testing.assert_array_equal(whole.numpy(), x.numpy())
        self.assertFalse(unshard(x).is_distributed)
        self.assertEqual(shard_tensor([[1, 2, 3]], self.line, [Partial()]).dtype, ts.int64)

    def test_fewer_placements(self):
        self.assertEqual(shard_tensor(np.ones(4), self.square, [Shard(0)]).placements, (Shard(0), Replicate()))
        self.assertEqual(shard_tensor(np.ones((4, 4)), self.square, [Shard(-1)]).placements[0], Shard(1))

    def test_rule_without_effect(self):
        """A rule that chooses by names, and none of them."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            kept = [optim.shard_parameters(nn.Linear(4, 4), self.line, rule) for rule in (
                lambda name, p: [Shard(0)] if name == "layers.0.weight" else None, lambda name, p: [Shard(0)] if name == "weight" else None,
                lambda name, p: None)]
            del kept
        found = [str(each.message) for each in caught if "returns None" in str(each.message)]
        self.assertEqual(found, ["the rule of shard_parameters returns None for all 2 parameters, which are replicated; it is given the names "
                                 "'weight', 'bias'"])

    def test_unused(self):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            shard_tensor(np.ones(4), self.line, [Shard(0)])
        self.assertIn("not used", str(caught[0].message))
        self.assertEqual(caught[0].lineno, sys._getframe().f_lineno - 2)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            optim.shard_parameters(nn.Linear(4, 4), self.line)
            used = optim.shard_parameters(nn.Linear(4, 4), self.line)
            optim.Adam().init(used)
            del used
        self.assertEqual(["result of shard_parameters is not used" in str(each.message) for each in caught], [True])
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")

            @ts.jit
            def program(x):
                shard_tensor(x, self.line, [Shard(0)])
                return x + 1
            program(np.ones(4, np.float32))
        self.assertIn("not used", str(caught[0].message))

    def test_states_use_parameters(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            ts.optim.SGD(0.1).init({"w": shard_tensor(np.ones(4, np.float32), self.line, [Shard(0)])})

    def test_other_libraries(self):
        x = shard_tensor(np.arange(6.0, dtype=np.float32).reshape(2, 3), self.line, [Shard(0)])
        np.testing.assert_array_equal(np.asarray(x), np.from_dlpack(x))
        np.testing.assert_array_equal(np.add(np.asarray(x), 1), x + 1)
        view = memoryview(x)
        self.assertEqual((view.shape, view.format, view.tolist()), ((2, 3), "f", x.tolist()))

    def test_copies(self):
        """Copies have the placements and types of the originals."""
        x = shard_tensor(np.arange(6.0, dtype=np.float32), self.line, [Shard(0)])
        for made in (copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
            self.assertEqual((made.placements, made.tolist()), (x.placements, x.tolist()))
            self.assertIs(made.dtype, ts.float32)
            self.assertEqual((made + ts.asarray(x.numpy())).tolist(), [2 * v for v in x.tolist()])
        with ts.nn.LazyGuard():
            lazy = ts.nn.Linear(2, 3)
        self.assertEqual(copy.deepcopy(lazy).initialize().weight.tolist(), lazy.initialize().weight.tolist())
        self.assertEqual(copy.copy(ts.spec((2, 3), "int8", self.line, [Shard(1)])).local_shape, (2, 2))

    def test_refused(self):
        x, line, square = np.ones((4, 3), np.float32), self.line, self.square
        self.refused(ts.PlacementError, "Shard(2) of a tensor of shape (4, 3), which has rank 2; dimensions are -2 to 1",
                     lambda: shard_tensor(x, line, [Shard(2)]))
        self.refused(ts.PlacementError, "Shard(-3)", lambda: shard_tensor(x, line, [Shard(-3)]))
        self.refused(ts.PlacementError, "2 placements [Shard(0), Replicate()]", lambda: shard_tensor(x, line, [Shard(0), Replicate()]))
        self.refused(ts.PlacementError, "'x' for a tensor of shape (4, 3) on axis 'x' is not a placement; use Replicate(), Shard(dim) or Partial(reduction)",
                     lambda: shard_tensor(x, line, ["x"]))
        self.refused(ts.PlacementError, "Partial('mean')", lambda: shard_tensor(x, line, [Partial("mean")]))
        self.refused(ts.PlacementError, "integers have no average", lambda: shard_tensor([1, 2], line, [Partial("avg")]))
        self.refused(ts.PlacementError, "partial by max and sum", lambda: shard_tensor(x, square, [Partial("avg"), Partial("max")]))
        self.refused(ts.PlacementError, "expected a list of placements, one per mesh axis, got ", lambda: shard_tensor(x, line, Shard(0)))
        self.refused(ts.PlacementError, "expected a list of placements, one per mesh axis, got None", lambda: reshard(x, line, None))
        self.refused(ts.PlacementError, "got [0, 1]", lambda: shard_tensor(x, [0, 1], [Shard(0)]))
        self.refused(ts.PlacementError, "Shard(5)", lambda: reshard(x, line, [Shard(5)]))
        self.refused(ts.PlacementError, "process 9 holds nothing", lambda: shard_tensor(x, line, [Shard(0)]).local_value(9))
        self.refused(ts.DTypeError, "element type complex64 is not supported", lambda: shard_tensor(np.ones(2, np.complex64), line, []))
        self.refused(ts.DTypeError, "'add' of uint64 and int64", lambda: ts.asarray(np.ones(2, np.uint64)) + ts.asarray([1, 2]))
        self.refused(ts.DTypeError, "inhomogeneous", lambda: shard_tensor([[1, 2], [3]], line, []))

    def test_two_meshes(self):
        other = ProcessMesh([2, 3], ["x"])
        a, c = shard_tensor(np.ones(4), self.line, [Shard(0)]), shard_tensor(np.ones(4), other, [Shard(0)])
        self.refused(ts.MeshError, "are on ProcessMesh(shape=[2], process_ids=[0, 1], dim_names=['x']) and ProcessMesh(shape=[2], "
                                   "process_ids=[2, 3], dim_names=['x'])", lambda: a + c)
        moved = a + reshard(c, self.line, [Shard(0)])
        np.testing.assert_array_equal(moved.numpy(), [2] * 4)


class Shapes(Refusals):
    def test_refused(self):
        x, y = ts.asarray(np.ones((4, 3), np.float32)), ts.asarray(np.ones((4, 5), np.float32))
        self.refused(ts.ShapeError, "3 columns do not match 4 rows", lambda: x @ y)
        self.refused(ts.ShapeError, "shapes (4, 3) and (4, 5) of 'add' do not broadcast: dimension -1 is 3 and 5", lambda: x + y)
        self.refused(ts.ShapeError, "'reshape' of (4, 3) (12 elements) to (5, 2)", lambda: x.reshape(5, 2))
        self.refused(ts.ShapeError, "axis 2 of 'sum' is out of range", lambda: x.sum(2))
        self.refused(ts.ShapeError, "index 4 is out of range for axis 0 of extent 4", lambda: x[4])
        self.refused(ts.ShapeError, "axis 'i' has extents 4 and 3", lambda: ts.einsum("ij,ki->jk", x, x))
        self.refused(ts.ShapeError, "'concat' takes a list of tensors, not int", lambda: ts.concat(3))
        self.refused(ts.ShapeError, "by 3: give a pair of non-negative numbers per axis", lambda: ts.pad(x, 3))
        self.refused(ts.ShapeError, "repetitions (-1,) of 'tile'", lambda: ts.tile(x, -1))
        self.refused(ts.ShapeError, "num_classes -1 of 'one_hot' is negative", lambda: ts.one_hot([1], -1))
        self.refused(ts.ShapeError, "k 4 of 'top_k' is not an integer from 0 to 3, the extent of axis 1", lambda: ts.top_k(x, 4))
        self.refused(ts.ArgumentError, "mode 'mean' of 'put_at' is not one of", lambda: ts.put_at(x, [[0]], x[:1], mode="mean"))
        self.refused(ts.ShapeError, "shapes (4, 3) and (3, 3) of 'put_along_axis' must be equal except along axis 1", lambda: ts.put_along_axis(x, np.zeros((3, 3), int), x))
        self.refused(ts.ShapeError, "'conv_transpose' of 3 channels with a weight of 4", lambda: ts.conv_transpose(ts.zeros((1, 3, 4)), ts.zeros((4, 2, 3))))
        self.refused(ts.ShapeError, "are not a permutation", lambda: ts.permute_dims(x, (0, 0)))
        self.refused(ts.ShapeError, "must be equal except along axis 0", lambda: ts.concat([x, y]))
        self.refused(ts.DTypeError, "'add' of float32 and int64", lambda: x + ts.asarray([1, 2, 3]))
        self.refused(ts.DTypeError, "indices of 'take' are float32", lambda: ts.take(x, x))

    def test_traced(self):
        """In a recorded function an error has the line of the operation, not of the call."""
        def program(x):
            return x @ x
        with self.assertRaises(ts.ShapeError) as caught:
            ts.jit(program)(np.ones((2, 3), np.float32))
        self.assertIn(f"{__file__}:{program.__code__.co_firstlineno + 1}:", str(caught.exception))
        kept = []
        ts.jit(lambda x: kept.append(x) or x)(np.ones(3, np.float32))
        self.refused(ts.TraceError, "is used after it has ended", lambda: ts.jit(lambda x: x + kept[0])(np.ones(3, np.float32)))
        ones = np.ones(3, np.float32)
        self.refused(ts.TraceError, "'bool' needs the value of a tensor of shape (), but it is traced: tensors have no values inside jit; choose "
                     "between values with ts.where(condition, a, b)", lambda: ts.jit(lambda x: 1 if x[0] > 0 else 2)(ones))
        self.refused(ts.TraceError, "'float' needs the value of a tensor", lambda: ts.jit(lambda x: float(x.sum()))(ones))
        self.refused(ts.TraceError, "choose by its value with ts.where", lambda: ts.jit(lambda x: int(x.sum()))(ones))
        self.refused(ts.TraceError, "'item' needs the value of a tensor of shape (), but it is traced", lambda: ts.jit(lambda x: x.sum().item())(ones))

    def test_functions_of_numpy(self):
        """The message names the function that is called and the one to use, at the user's line."""
        def norm(x):
            return np.linalg.norm(
                x)
        ones, named = np.ones(3, np.float32), hasattr(norm.__code__, "co_positions")  # Python 3.11 on
        self.refused(ts.TraceError, "'np.sin' needs the value of a tensor of shape (3,), but it is traced: tensors have no values inside jit; use ts.sin"
                     if named else "'numpy' needs the value", lambda: ts.jit(lambda x: np.sin(x))(ones))
        with self.assertRaises(ts.TraceError) as caught:
            ts.jit(norm)(ones)
        self.assertIn(f"{__file__}:{norm.__code__.co_firstlineno + 1}:", str(caught.exception))
        self.assertIn("; compute on tensors with functions of tessera", str(caught.exception))
        np.testing.assert_array_equal(np.sin(ts.asarray(ones)), np.sin(ones))

    def test_misspelt_names(self):
        for module, name, meant in ((ts, "from_torhc", "from_torch"), (ts, "matmull", "matmul"), (ts.nn, "Lineer", "Linear"), (ts.ops, "einsun", "einsum"),
                                    (ts.distributed, "all_gathr", "all_gather")):
            with self.assertRaisesRegex(AttributeError, rf"^module '{module.__name__}' has no attribute '{name}'; did you mean '{meant}'\?$"):
                getattr(module, name)
        with self.assertRaisesRegex(AttributeError, "^module 'tessera' has no attribute 'qqqqqq'$"):
            ts.qqqqqq


if __name__ == "__main__":
    unittest.main()
