# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Packed sequences in exports: padded ones with a mask, since the sizes of PyTorch's depend on the lengths.

While a module is exported `pack_padded_sequence` and `pad_packed_sequence` work on these; sequences are not sorted, and
stay on their devices. Recurrent layers keep a state where the mask is False.
"""

from __future__ import annotations

import contextlib
import functools
from unittest import mock

import torch
from torch.nn.utils import rnn

from ..errors import ArgumentError
from ..source import refuse


class Padded(rnn.PackedSequence):
    """A batch of sequences: `padded` of (time, batch, features), `valid` of (time, batch)."""

    def __new__(cls, padded, valid):
        made = tuple.__new__(cls, (padded, valid, None, None))
        made.padded, made.valid = padded, valid
        return made

    def _refused(name):
        def get(self):
            raise refuse(ArgumentError, f"'{name}' of a packed sequence has a shape that depends on the lengths, which a program does not know; "
                                        "use pad_packed_sequence and a mask")
        return property(get)

    data, batch_sizes, sorted_indices, unsorted_indices = map(_refused, ("data", "batch_sizes", "sorted_indices", "unsorted_indices"))
    __getitem__ = __iter__ = lambda self, *_: self.data


def _pack(input, lengths, batch_first, enforce_sorted):
    padded = input.transpose(0, 1) if batch_first else input
    if not isinstance(lengths, torch.Tensor):  # as PyTorch, which cannot be followed where they are data
        padded = padded[:max(lengths)]
    lengths = torch.as_tensor(lengths, dtype=torch.int64)
    return Padded(padded, torch.arange(padded.shape[0])[:, None] < lengths)


def _pad(sequence, batch_first, padding_value, total_length):
    padded, valid = sequence.padded, sequence.valid
    if total_length is not None and total_length < len(padded):
        raise refuse(ArgumentError, f"total_length {total_length} of 'pad_packed_sequence' is less than the {len(padded)} steps of the padded "
                                    "sequences that were packed; slice them before")
    padded = torch.where(valid.reshape(*valid.shape, *[1] * (padded.dim() - 2)), padded, padding_value)
    if total_length is not None:
        padded = torch.nn.functional.pad(padded, [0, 0] * (padded.dim() - 1) + [0, total_length - len(padded)], value=padding_value)
    return padded.transpose(0, 1) if batch_first else padded, valid.sum(0)


@functools.cache
def _operation():
    torch.library.define("tessera::packed_rnn", "(Tensor x, Tensor[] state, Tensor[] weights, bool has_biases, int num_layers, float dropout, "
                                                "bool train, bool bidirectional, Tensor valid, str kind) -> Tensor[]")

    def described(x, state, weights, has_biases, num_layers, dropout, train, bidirectional, valid, kind):
        features = state[0].shape[2] * (2 if bidirectional else 1)
        return [x.new_empty(*x.shape[:2], features), *map(torch.empty_like, state)]
    torch.library.register_fake("tessera::packed_rnn")(described)
    torch.library.register_autograd("tessera::packed_rnn", lambda *_: None)  # it has one; programs are differentiated here
    return torch.ops.tessera.packed_rnn.default


def _forward(forward, self, input, hx=None):
    """The forward of a recurrent layer, also of Padded."""
    if not isinstance(input, Padded):
        return forward(self, input, hx)
    x, rows = input.padded, self.num_layers * (2 if self.bidirectional else 1)
    weights = [getattr(self, name) for name in self._flat_weights_names]  # those of an export, where _flat_weights has the module's
    sizes = [self.proj_size or self.hidden_size, *([self.hidden_size] if self.mode == "LSTM" else [])]
    shapes = [(rows, x.shape[1], size) for size in sizes]
    state = [x.new_zeros(shape) for shape in shapes] if hx is None else list(hx) if self.mode == "LSTM" else [hx]
    if x.dim() != 3 or x.shape[2] != self.input_size or [tuple(each.shape) for each in state] != shapes:
        raise refuse(ArgumentError, f"'{type(self).__name__}' of a packed sequence padded to {tuple(x.shape)} and states "
                                    f"{[tuple(each.shape) for each in state]}; {self.input_size} features and states {shapes} are needed")
    output, *ends = _operation()(x, state, weights, self.bias, self.num_layers, float(self.dropout), self.training, self.bidirectional,
                                 input.valid, self.mode.lower())
    return Padded(output, input.valid), tuple(ends) if self.mode == "LSTM" else ends[0]


def _pack_padded_sequence(input, lengths, batch_first=False, enforce_sorted=True):
    return _tessera_pack(input, lengths, batch_first, enforce_sorted)  # noqa: F821  a name of PyTorch's module


def _pad_packed_sequence(sequence, batch_first=False, padding_value=0.0, total_length=None):
    return _tessera_pad(sequence, batch_first, padding_value, total_length)  # noqa: F821  a name of PyTorch's module


@contextlib.contextmanager
def packed_as_padded():
    """Context manager: packed sequences are padded ones with a mask.

    The code of PyTorch's functions is exchanged, not their names, which modules import.
    """
    with contextlib.ExitStack() as stack:
        def patch(*args, **options):
            stack.enter_context(mock.patch.object(*args, **options))
        for name, function in (("_tessera_pack", _pack), ("_tessera_pad", _pad)):
            patch(rnn, name, function, create=True)
        for theirs, ours in ((rnn.pack_padded_sequence, _pack_padded_sequence), (rnn.pad_packed_sequence, _pad_packed_sequence)):
            stack.callback(setattr, theirs, "__code__", theirs.__code__)
            theirs.__code__ = ours.__code__
        for layer in (torch.nn.LSTM, torch.nn.GRU, torch.nn.RNN):
            patch(layer, "forward", functools.partialmethod(functools.partial(_forward, layer.forward)))
        yield
