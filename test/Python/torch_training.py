# RUN: %tessera_python %s
# REQUIRES: torch
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Training of an imported PyTorch module: frozen parameters, constants, modes."""

import contextlib
import copy
import io
import tempfile
import unittest
from unittest import mock

import numpy as np
import torch
from torch import nn

import tessera as ts
from tessera import ProcessMesh, Replicate, Shard, optim
from tessera.testing import difference

torch.manual_seed(0)


def trained(model, x, steps=3):
    """After steps towards results of 1."""
    optimizer = optim.SGD(0.05, momentum=0.9)

    @ts.jit
    def step(model, state, x):
        value, gradients = ts.value_and_grad(lambda m, x: ((m(x) - 1) ** 2).sum())(model, x)
        return *optimizer.update(model, gradients, state), value
    state = optimizer.init(model)
    for _ in range(steps):
        model, state, value = step(model, state, x.numpy())
    return model, state, value


def by_torch(module, x, steps=3):
    optimizer = torch.optim.SGD([p for p in module.parameters() if p.requires_grad], 0.05, momentum=0.9)
    for _ in range(steps):
        optimizer.zero_grad()
        value = ((module(x) - 1) ** 2).sum()
        value.backward()
        optimizer.step()
    return value


class Training(unittest.TestCase):
    def same(self, model, module):
        for name, p in module.named_parameters():
            self.assertIsNone(difference(model.weights[name].numpy(), p.detach().numpy(), 3), name)
        for name, b in module.named_buffers():
            self.assertIsNone(difference(model.constants[name].numpy(), b.numpy(), 3), name)


class Frozen(Training):
    def module(self):
        module = nn.Sequential(nn.Linear(6, 6), nn.Tanh(), nn.Linear(6, 6), nn.Linear(6, 2))
        module[0].weight.requires_grad_(False)
        module[2].requires_grad_(False)
        return module

    def test_training(self):
        module, x = self.module(), torch.randn(4, 6)
        imported = ts.from_torch(copy.deepcopy(module), (x,))
        model, state, value = trained(imported, x)
        self.assertIsNone(difference(value.numpy(), by_torch(module, x).detach().numpy()))
        self.same(model, module)
        for name in ("0.weight", "2.weight", "2.bias"):
            np.testing.assert_array_equal(model.weights[name].numpy(), imported.weights[name].numpy())
        self.assertEqual(sorted(state["velocity"]), ["weights.0.bias", "weights.3.bias", "weights.3.weight"])

    def test_gradients(self):
        x = torch.randn(4, 6)
        imported = ts.from_torch(self.module(), (x,))
        found = ts.grad(lambda m, x: m(x).sum())(imported, x.numpy())
        self.assertEqual([name for name, g in found.weights.items() if g is None], ["0.weight", "2.weight", "2.bias"])
        self.assertEqual(len(imported.parameters()), 6)
        self.assertEqual(list(imported.named_buffers()), [])
        whole = nn.Linear(6, 2).requires_grad_(False)
        with self.assertRaisesRegex(ts.ArgumentError, "no floating-point tensor in the arguments to differentiate with respect to"):
            ts.grad(lambda m, x: m(x).sum())(ts.from_torch(whole, (x,)), x.numpy())
        by_x = ts.grad(lambda m, x: m(x).sum(), 1)(ts.from_torch(whole, (x,)), x.numpy())
        self.assertIsNone(difference(by_x.numpy(), np.broadcast_to(whole.weight.numpy().sum(0), (4, 6))))

    def test_placed(self):
        """Frozen parameters are cut like others, and stay frozen."""
        module, x = self.module(), torch.randn(4, 6)
        mesh = ProcessMesh(range(2), ["tp"])
        model = optim.shard_parameters(ts.from_torch(copy.deepcopy(module), (x,)), mesh, lambda name, p: [Shard(0)] if p.ndim == 2 else None)
        self.assertEqual(model.weights["2.weight"].placements, (Shard(0),))
        by_torch(module, x)
        model, *_ = trained(model, x)
        self.same(model, module)
        self.assertEqual(model.weights["0.weight"].placements, (Shard(0),))
        self.assertEqual(model.weights["2.bias"].placements, (Replicate(),))


class Constants(Training):
    """Constants by detach() and no_grad() stay constants."""

    def check(self, function, keeps=True):
        """keeps: torch.export itself keeps what is constant."""
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.a, self.b = nn.Linear(3, 3), nn.Linear(3, 3)

            def forward(self, x):
                return function(self, x)
        module, x = Net(), torch.randn(4, 3)
        exported = torch.export.export(module, (x,))
        before = str(exported.graph)
        (module(x) ** 2).sum().backward()
        for source in (ts.from_torch(module, (x,)), ts.from_torch(exported))[:1 + keeps]:
            found = ts.grad(lambda m, x: (m(x) ** 2).sum())(source, x.numpy())
            for name, p in module.named_parameters():
                wanted = p.grad if p.grad is not None else torch.zeros_like(p)
                self.assertIsNone(difference(found.weights[name].numpy(), wanted.numpy()), name)
        self.assertEqual(str(exported.graph), before)

    def test_detach(self):
        self.check(lambda m, x: m.a(x).detach() * m.b(x) + m.a(x))

    def test_no_grad(self):
        def forward(m, x):
            with torch.no_grad():
                target = m.a(x) * 2
                ids = target.argmax(-1)
            return m.b(x) * target + ids[:, None]
        self.check(forward)

    def test_both(self):
        def forward(m, x):
            with torch.no_grad():
                y = m.a(x).detach()
            return m.b(y) + m.a(y)
        self.check(forward)

    def test_in_autocast(self):
        for enabled in (False, True):
            def detached(m, x):
                with torch.autocast("cpu", enabled=enabled, dtype=torch.bfloat16):
                    y = m.a(x).detach() if enabled else m.a(x)
                    with torch.autocast("cpu", enabled=False):
                        y = y.float()
                        return m.b(x) * (y + (y.round() - y).detach())
            self.check(detached)

        def hidden(m, x):
            with torch.autocast("cpu", enabled=False):
                y = m.a(x)
                with torch.no_grad():
                    rest = y.round() - y
                    scale = rest.clone()
                    scale.mul_(2)
                    rest = rest + scale.T[0].sum()
                return (y + rest) * m.b(x)
        self.check(hidden, keeps=False)

        def around(m, x):
            y = m.a(x)
            with torch.no_grad(), torch.autocast("cpu", enabled=False):
                rest = y.round() - y
            return (y + rest) * m.b(x)
        self.check(around)


class HiddenWrites(unittest.TestCase):
    """Writes in place that PyTorch's derivative does not see."""

    def module(self, forward):
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.linear = nn.Linear(4, 4)
                self.register_buffer("mean", torch.zeros(4))
        Net.forward = forward
        return Net()

    def refused(self, forward, message):
        with self.assertRaisesRegex(ts.Error, f"torch_training.py:.*{message}"):
            ts.from_torch(self.module(forward), (torch.randn(3, 4),))

    def test_refused(self):
        def through_detach(self, x):
            y = self.linear(x)
            y.detach()[0].add_(1)
            return y

        def without_gradients(self, x):
            y = self.linear(x)
            with torch.no_grad():
                y.mul_(2)
            return y
        self.refused(through_detach, "'aten.add_.Tensor' of 'Net' writes in place")
        self.refused(without_gradients, "'aten.mul_.Tensor' of 'Net' writes in place")
        with self.assertRaisesRegex(ts.Error, "embedding_renorm_.*writes in place.*max_norm"):
            ts.from_torch(nn.Embedding(5, 3, max_norm=0.5), (torch.tensor([1, 2]),))

    def test_buffers_and_constants(self):
        def forward(self, x):
            y = self.linear(x)
            with torch.no_grad():
                self.mean.mul_(0.5).add_(y.mean(0))
                ones = torch.ones(4)
                ones[1:].add_(2)
            return (y - self.mean) * ones
        module, x = self.module(forward), torch.randn(3, 4)
        imported = ts.from_torch(module, (x,))
        self.assertIsNone(difference(np.asarray(imported(x.numpy())), module(x).detach().numpy()))

    def test_derivatives_of_a_modules_own(self):
        class Rounded(torch.autograd.Function):
            @staticmethod
            def forward(context, x):
                return x.round()

            @staticmethod
            def backward(context, gradient):
                return gradient

        def hooked(self, x):
            y = self.linear(x)
            y.register_hook(lambda gradient: 2 * gradient)
            return y
        for forward, what in ((lambda self, x: Rounded.apply(self.linear(x)), "'Rounded' in 'Net'"), (hooked, "register_hook. in 'Net'")):
            with self.assertWarnsRegex(ts.TesseraWarning, f"{what} is not imported"):
                ts.from_torch(self.module(forward), (torch.randn(3, 4),))


class InferenceMode(Training):
    def test_import(self):
        """Says nothing about a module that is imported in it; one whose parameters were made in it is refused."""
        module, x = nn.Linear(3, 2), torch.randn(8, 3)
        with torch.inference_mode():
            model = ts.from_torch(module, (x,))
            with self.assertRaisesRegex(ts.Error, r"'Linear': its parameters were made in torch.inference_mode\(\); make the module outside"):
                ts.from_torch(nn.Linear(3, 2), (x,))
        model, _, _ = trained(model, x)
        by_torch(module, x)
        self.same(model, module)


class InLists(Training):
    def test_parameters_and_modules(self):
        """Parameters, buffers and modules that the module's own lists and functions hold are trained as such."""
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.scale, self.linear = nn.Parameter(torch.rand(4) + 0.5), nn.Linear(4, 4)
                self.register_buffer("shift", torch.rand(4))
                self.parts, self.function = [self.scale, self.shift], lambda x: self.linear(x)

            def forward(self, x):
                return self.function(x) * self.parts[0] + self.parts[1]
        module, x = Net(), torch.randn(8, 4)
        model = ts.from_torch(module, (x,))
        self.assertEqual(sorted(model.state_dict()), ["linear.bias", "linear.weight", "scale", "shift"])
        model, _, _ = trained(model, x)
        by_torch(module, x)
        self.same(model, module)

    def test_detached(self):
        class Net(nn.Module):
            def __init__(self, keep):
                super().__init__()
                self.scale = nn.Parameter(torch.rand(4))
                self.kept = keep(self.scale)

            def forward(self, x):
                return x * self.scale
        for keep in (lambda p: [p.detach()], lambda p: p.data):
            with self.assertRaisesRegex(ts.Error, "'kept' of 'Net' keeps a detached 'scale'; write scale.detach\\(\\) in forward"):
                ts.from_torch(Net(keep), (torch.randn(8, 4),))


class Modes(Training):
    def norm(self):
        return nn.Sequential(nn.Linear(6, 6), nn.BatchNorm1d(6))

    def test_batch_normalisation(self):
        """eval() and train() change the computation and keep the trained values."""
        module, x = self.norm(), torch.randn(8, 6)
        model = ts.from_torch(copy.deepcopy(module), (x,))
        run = ts.jit(lambda m, x: m(x))
        model, *_ = trained(model, x)
        by_torch(module, x)
        self.same(model, module)
        for mode in (False, True, False):
            model.train(mode), module.train(mode)
            self.assertEqual(model.training, mode)
            self.assertIsNone(difference(run(model, x.numpy()).numpy(), module(x).detach().numpy()), mode)
            self.same(model, module)
        self.assertFalse(model._origin.module[1].training is None)

    def test_cumulative_batch_normalisation(self):
        """momentum=None: the average over all batches, whose number is a buffer."""
        parts = nn.BatchNorm1d(6, momentum=None), nn.Sequential(nn.Unflatten(1, (2, 3)), nn.BatchNorm1d(2, momentum=None), nn.Flatten())
        for part in parts:
            module, x = nn.Sequential(nn.Linear(6, 6), part), torch.randn(8, 6)
            model, *_ = trained(ts.from_torch(copy.deepcopy(module), (x,)), x)
            by_torch(module, x)
            self.same(model, module)
            model.eval(), module.eval()
            self.assertIsNone(difference(model(x.numpy()).numpy(), module(x).detach().numpy()))

    def test_inside_of_a_module(self):
        class Outer(ts.nn.Module):
            def __init__(self, inner):
                super().__init__()
                self.inner = inner

            def forward(self, x):
                return self.inner(x)
        module, x = self.norm(), torch.randn(8, 6)
        outer = Outer(ts.from_torch(copy.deepcopy(module), (x,)))
        with ts.nn.module.eval_mode(outer):
            self.assertIsNone(difference(outer(x.numpy()).numpy(), module.eval()(x).detach().numpy()))
        self.assertTrue(outer.inner.training)
        self.assertIsNone(difference(outer(x.numpy()).numpy(), module.train()(x).detach().numpy()))

    def test_parts_in_other_modes(self):
        module, x = self.norm(), torch.randn(8, 6)
        module.train()[1].eval()
        model = ts.from_torch(module, (x,))
        self.assertIsNone(difference(model(x.numpy()).numpy(), module(x).detach().numpy()))
        model.train()
        self.assertFalse(module[1].training)  # PyTorch's module is unchanged
        self.assertIsNone(difference(model(x.numpy()).numpy(), copy.deepcopy(module).train()(x).detach().numpy()))

    def test_refused(self):
        x = torch.randn(8, 6)
        model = ts.from_torch(torch.export.export(self.norm().eval(), (x,)))
        for call in (model.train, model.eval):
            with self.assertRaisesRegex(ts.ArgumentError, r"torch_training.py:\d+:\d+: error: \w+\(\) of 'ExportedProgram'.* has one mode; export the module after"):
                call()


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.norm, self.head, self.beside = nn.Embedding(5, 3), nn.BatchNorm1d(3), nn.Linear(3, 5, bias=False), nn.Linear(2, 2)
        self.head.weight = self.embed.weight
        self.register_buffer("mask", torch.ones(3), persistent=False)

    def forward(self, i):
        return self.head(self.norm(self.embed(i) * self.mask + torch.tensor([1.0, 2.0, 3.0])))


class States(unittest.TestCase):
    """state_dict and checkpoints of an imported module have the names of PyTorch's state_dict."""

    def pair(self):
        module, x = Tied(), torch.tensor([1, 4, 2])
        return module, ts.from_torch(module, (x,)), x

    def same(self, state, module):
        expected = module.state_dict()
        self.assertEqual(sorted(state), sorted(expected))
        for name, value in expected.items():
            np.testing.assert_array_equal(np.asarray(state[name]), value.numpy(), name)

    def test_names(self):
        module, model, x = self.pair()
        other, another, _ = self.pair()
        self.same(model.state_dict(), module)
        other.load_state_dict({name: torch.as_tensor(value) for name, value in model.state_dict().items()})
        self.assertIsNone(difference(module(x).detach().numpy(), other(x).detach().numpy()))
        another.load_state_dict(module.state_dict())
        self.same(another.state_dict(), module)
        with self.assertRaisesRegex(ts.ArgumentError, "the state has no 'embed.weight', which the module has"):
            model.load_state_dict({})

    def test_old_names(self):
        """By position, as in older checkpoints."""
        module, model, _ = self.pair()
        _, other, _ = self.pair()
        old = {name: value.numpy() for name, value in (*model.named_parameters(), *model.named_buffers())}
        self.assertIn("weights.embed.weight", old)
        self.same(other.load_state_dict(old).state_dict(), module)
        with tempfile.TemporaryDirectory() as folder:
            ts.save_checkpoint(folder, {"model": old})
            _, other, _ = self.pair()
            self.same(ts.load_checkpoint(folder, {"model": other}).state["model"].state_dict(), module)

    def test_checkpoints(self):
        module, model, _ = self.pair()
        other, another, _ = self.pair()
        with tempfile.TemporaryDirectory() as folder:
            ts.save_checkpoint(folder, {"model": model})
            other.load_state_dict(ts.load_checkpoint(folder, {"model": other.state_dict()}).state["model"])
            self.same(model.state_dict(), other)
            self.same(ts.load_checkpoint(folder, {"model": another}).state["model"].state_dict(), module)
            ts.save_checkpoint(folder, {"model": module.state_dict()}, 1)
            _, another, _ = self.pair()
            self.same(ts.load_checkpoint(folder, {"model": another}).state["model"].state_dict(), module)


class Exports(unittest.TestCase):
    def test_what_pytorch_refuses(self):
        """Errors of export and of decompositions name the module and PyTorch's reason."""
        x = torch.randn(4, 3)
        with mock.patch("torch.export.ExportedProgram.run_decompositions", side_effect=RuntimeError("no kernel\nfor it")):
            with self.assertRaisesRegex(ts.Error, r"torch_training.py:\d+:\d+: error: PyTorch's run_decompositions fails for 'Linear': no kernel$"):
                ts.from_torch(nn.Linear(3, 2), (x,))

        class Guarded(nn.Module):
            def forward(self, x):
                return x * 2 if x.sum() > 0 else x
        printed = io.StringIO()
        with contextlib.redirect_stderr(printed), self.assertRaisesRegex(
                ts.Error, r"^\S+torch_training.py:\d+:\d+: error: torch.export refuses 'Guarded': its Python code depends on the value .*torch.where"):
            ts.from_torch(Guarded(), (x,))
        self.assertEqual(printed.getvalue(), "")  # PyTorch prints its graph

    def test_causal_mask_of_transformer(self):
        """PyTorch compares the mask's values in Python."""
        model = nn.Transformer(8, 2, 1, 1, 16, dropout=0.0, batch_first=True).eval()
        x, y, mask = torch.randn(2, 5, 8), torch.randn(2, 4, 8), nn.Transformer.generate_square_subsequent_mask(4)

        class Masked(nn.Module):
            def __init__(self):
                super().__init__()
                self.model = model

            def forward(self, x, y, mask):
                return self.model(x, y, tgt_mask=mask)
        for given in (mask, torch.randn(4, 4)):
            np.testing.assert_allclose(np.asarray(ts.from_torch(Masked(), (x, y, given))(x, y, given)), Masked()(x, y, given).detach(), atol=1e-5)

    def test_keywords(self):
        class Net(nn.Module):
            def forward(self, x, *, scale, shift=None):
                return x * scale + (0 if shift is None else shift)
        x, scale = torch.randn(4, 3), torch.tensor(2.0)
        model = ts.from_torch(Net(), (x,), {"scale": scale})
        self.assertIsNone(difference(model(x.numpy(), scale=scale.numpy()).numpy(), (2 * x).numpy()))
        with self.assertRaisesRegex(ts.ArgumentError, "'Net' was exported with the keyword arguments scale, got shift"):
            model(x.numpy(), shift=scale.numpy())

    def test_a_result_without_a_rule(self):
        class Net(nn.Module):
            def forward(self, x):
                return torch.ops.aten._embedding_bag.default(x, torch.tensor([0, 1]), torch.tensor([0]))[1]
        with self.assertRaisesRegex(ts.Error, r"torch_training.py:\d+:1: error: result 1 of 'aten._embedding_bag.default' is not supported"):
            ts.from_torch(Net(), (torch.randn(3, 4),))(torch.randn(3, 4))

    def test_a_fault(self):
        class Net(nn.Module):
            def forward(self, x):
                return torch.tanh(x)
        model = ts.from_torch(Net(), (torch.randn(3),))
        with mock.patch.dict("tessera.torch.registry.RULES", {"tanh.default": lambda x: Exports.fault()}):
            with self.assertRaisesRegex(KeyError, "user"):  # in a rule of the user
                model(np.ones(3, np.float32))
        with mock.patch.dict("tessera.torch.registry.RULES", {"tanh.default": ts.ops.linear.einsum}):
            with self.assertRaisesRegex(ts.Error, rf"torch_training.py:{Net.forward.__code__.co_firstlineno + 1}:1: error: "):
                model(np.ones(3, np.float32))

    @staticmethod
    def fault():
        raise KeyError("user")


if __name__ == "__main__":
    unittest.main()
