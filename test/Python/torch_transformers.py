# RUN: %tessera_python %s
# REQUIRES: transformers
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Unmodified small models of the package transformers: imported, trained some steps, and compared with PyTorch."""

import copy
import unittest

import numpy as np
import torch
import transformers

import tessera as ts
from tessera import ProcessMesh, Replicate, Shard, optim, shard_tensor
from tessera.testing import difference

transformers.logging.set_verbosity_error()
SYMBOLS = 31


def small(model, **settings):
    torch.manual_seed(0)
    return model(model.config_class(vocab_size=SYMBOLS, bos_token_id=0, eos_token_id=0, pad_token_id=0, use_cache=False, **settings)).eval()


class Logits(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, tokens):
        return self.model(tokens).logits


class Models(unittest.TestCase):
    tokens = torch.randint(0, SYMBOLS, (4, 6), generator=torch.Generator().manual_seed(1))

    def check(self, module, steps=2, place=None):
        """Losses and weights after steps of SGD, on one device and on four."""
        source = copy.deepcopy(module)
        imported = ts.from_torch(source, (self.tokens,))
        optimizer, by_torch = optim.SGD(0.1), torch.optim.SGD(module.parameters(), 0.1)

        def loss(model, tokens):
            logits = model(tokens).logits
            return ts.nn.cross_entropy(logits[:, :-1].reshape((-1, SYMBOLS)), tokens[:, 1:].reshape((-1,)))

        @ts.jit
        def step(model, state, tokens):
            value, gradients = ts.value_and_grad(loss)(model, tokens)
            return *optimizer.update(model, gradients, state), value
        wanted = []
        for _ in range(steps):
            by_torch.zero_grad()
            value = module(self.tokens, labels=self.tokens).loss
            value.backward()
            by_torch.step()
            wanted.append(value.item())
        mesh = ProcessMesh(np.arange(4).reshape(2, 2), ["dp", "tp"])
        cut = optim.shard_parameters(imported, mesh, lambda name, p: [Replicate(), Shard(0)] if p.ndim == 2 else None)
        for model, tokens in ((imported, self.tokens.numpy()), (cut, shard_tensor(self.tokens.numpy(), mesh, [Shard(0)]))):
            state = optimizer.init(model)
            for value in wanted:
                model, state, found = step(model, state, tokens)
                self.assertAlmostEqual(found.item(), value, delta=1e-4 * abs(value))
            for name, p in module.named_parameters():
                if name in model.weights:  # of tied ones the first
                    self.assertIsNone(difference(model.weights[name].numpy(), p.detach().numpy(), 10), name)

    def test_gpt2(self):
        self.check(small(transformers.GPT2LMHeadModel, n_layer=2, n_head=2, n_embd=16, n_positions=12))

    def test_llama(self):
        """With fewer heads of keys than of queries."""
        self.check(small(transformers.LlamaForCausalLM, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, hidden_size=16,
                         intermediate_size=24, max_position_embeddings=12))

    def test_bert(self):
        """With a mask that excludes padding."""
        torch.manual_seed(0)
        config = transformers.BertConfig(vocab_size=SYMBOLS, num_hidden_layers=2, num_attention_heads=2, hidden_size=16, intermediate_size=24,
                                         max_position_embeddings=12, num_labels=3)
        module = transformers.BertForSequenceClassification(config).eval()
        mask = (torch.arange(6) < torch.tensor([[6], [3], [5], [1]])).long()
        imported = ts.from_torch(module, (self.tokens, mask))
        found = ts.jit(lambda m, t, a: m(t, a).logits)(imported, self.tokens.numpy(), mask.numpy())
        self.assertIsNone(difference(found.numpy(), module(self.tokens, mask).logits.detach().numpy()))

    def forward(self, model, **settings):
        """The logits of the model as it comes, which fills a cache of keys and values by default."""
        torch.manual_seed(0)
        module = Logits(model(model.config_class(vocab_size=SYMBOLS, pad_token_id=0, **settings)).eval())
        imported = ts.from_torch(module, (self.tokens,))
        found = ts.jit(lambda m, t: m(t))(imported, self.tokens.numpy())
        self.assertIsNone(difference(found.numpy(), module(self.tokens).detach().numpy()))

    def test_cache_as_a_result(self):
        model = transformers.LlamaForCausalLM(transformers.LlamaConfig(vocab_size=SYMBOLS, num_hidden_layers=1, num_attention_heads=4, hidden_size=16,
                                                                       intermediate_size=24, max_position_embeddings=12))
        with self.assertRaisesRegex(ts.Error, "a result is of transformers.cache_utils.DynamicCache; return tensors .* pass use_cache=False"):
            ts.from_torch(model.eval(), (self.tokens,))

    def test_cache_of_the_default(self):
        """A cache begins as a tensor without elements, of rank 1."""
        self.forward(transformers.LlamaForCausalLM, num_hidden_layers=1, num_attention_heads=4, num_key_value_heads=2, hidden_size=16,
                     intermediate_size=24, max_position_embeddings=12)

    def test_experts(self):
        """A mixture of experts: tokens sorted by expert, and a product of groups of rows."""
        for experts in 3, 8:
            self.forward(transformers.MixtralForCausalLM, num_hidden_layers=1, num_attention_heads=4, num_key_value_heads=2, hidden_size=16,
                         intermediate_size=24, max_position_embeddings=12, num_local_experts=experts, num_experts_per_tok=2)

    def test_tokens_stay_where_they_are(self):
        """With the batch cut, only the choices of experts are sent; sorted rows are those of the device."""
        model = transformers.MixtralModel(transformers.MixtralConfig(
            vocab_size=SYMBOLS, num_hidden_layers=1, num_attention_heads=4, num_key_value_heads=2, hidden_size=16, intermediate_size=24,
            max_position_embeddings=12, num_local_experts=4, num_experts_per_tok=2, use_cache=False)).eval()

        class Last(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.model = model

            def forward(self, tokens):
                return self.model(tokens).last_hidden_state
        tokens = shard_tensor(self.tokens.numpy(), ProcessMesh(np.arange(4), ["dp"]), [Shard(0)])
        report = ts.jit(lambda m, t: m(t)).explain(ts.from_torch(Last(), (self.tokens,)), tokens)
        self.assertEqual([c for c in report["collectives"] if not c["dtype"].startswith("i")], [])

    def test_transforms(self):
        """A Fourier transform in place of attention."""
        self.forward(transformers.FNetForMaskedLM, num_hidden_layers=1, hidden_size=16, intermediate_size=24, max_position_embeddings=12)

    def test_dropout_of_the_default(self):
        """In training mode a default model has dropout: results differ from those in evaluation, and from call to call."""
        module = small(transformers.GPT2LMHeadModel, n_layer=1, n_head=2, n_embd=16, n_positions=12).train()
        model = ts.from_torch(module, (self.tokens,))
        tokens = self.tokens.numpy()
        first, second = (model(tokens).logits.numpy() for _ in range(2))
        self.assertTrue(np.isfinite(first).all())
        self.assertGreater(abs(first - second).max(), 0)
        expected = module.eval()(self.tokens).logits.detach().numpy()
        np.testing.assert_allclose(model.eval()(tokens).logits.numpy(), expected, atol=1e-4)


if __name__ == "__main__":
    unittest.main()
