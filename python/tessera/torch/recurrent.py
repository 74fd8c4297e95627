# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Recurrent layers as loops over time: PyTorch's decompositions write one step after the other."""

from __future__ import annotations

import functools

from .. import control, ops, random
from ..nn import functional as F
from .random import RANDOM
from .registry import rule


def _lstm(inputs, state, recur, project):
    h, c = state
    i, f, g, o = ops.split(inputs + recur(h), 4, -1)
    c = F.sigmoid(f) * c + F.sigmoid(i) * ops.tanh(g)
    return project(F.sigmoid(o) * ops.tanh(c)), c


def _gru(inputs, state, recur, _):
    h, = state
    (xr, xz, xn), (hr, hz, hn) = ops.split(inputs, 3, -1), ops.split(recur(h), 3, -1)
    new = ops.tanh(xn + F.sigmoid(xr + hr) * hn)
    return new + F.sigmoid(xz + hz) * (h - new),


def _plain(activation, inputs, state, recur, _):
    return activation(inputs + recur(*state)),


_CELLS = {"lstm": _lstm, "gru": _gru, "rnn_tanh": functools.partial(_plain, ops.tanh), "rnn_relu": functools.partial(_plain, F.relu)}


def _direction(cell, x, state, weights, valid, reverse):
    """One direction of a layer over x of (time, batch, features): the outputs, and the last state, a tuple.

    `state`: tensors of (batch, hidden). `weights`: of the input, of the state, two biases or none, a projection of h or none.
    `valid`: bool of (time, batch, 1), or None; the state stays where it is False.
    """
    of_input, of_state, *rest = weights
    projection = rest.pop() if len(rest) % 2 else None

    def recur(h):
        return F.linear(h, of_state.T, rest[1] if rest else None)

    def project(h):
        return h if projection is None else ops.matmul(h, projection.T)

    def step(state, slices):
        new = cell(slices[0], state, recur, project)
        for here in slices[1:]:
            new = tuple(ops.where(here, after, before) for after, before in zip(new, state))
        return new, new[0]
    over = [F.linear(x, of_input.T, rest[0] if rest else None), *([] if valid is None else [valid])]
    state, outputs = control.scan(step, tuple(state), [ops.flip(each, 0) for each in over] if reverse else over)
    return ops.flip(outputs, 0) if reverse else outputs, state


def _layers(kind, key, x, state, weights, layers, dropout, bidirectional, valid=None):
    """Outputs of the last layer, and the last states of all. `state`: tensors of (layers x directions, batch, hidden).

    `key`: of the draws for dropout between layers, or None.
    """
    directions = 2 if bidirectional else 1
    each, ends = len(weights) // (layers * directions), []
    for layer in range(layers):
        outputs = []
        for direction in range(directions):
            at = layer * directions + direction
            output, end = _direction(_CELLS[kind], x, [s[at] for s in state], weights[at * each:(at + 1) * each], valid, direction == 1)
            outputs.append(output)
            ends.append(end)
        x = outputs[0] if directions == 1 else ops.concat(outputs, -1)
        if key is not None and layer == 0:
            drawn = random.uniform(key, (layers - 1, *x.shape))
        if key is not None and layer + 1 < layers:
            x = ops.where(drawn[layer] >= dropout, x / (1 - dropout), 0) if dropout < 1 else ops.zeros_like(x)
    return x, *(ops.stack(parts, 0) for parts in zip(*ends))


def _with_draws(name, implementation):
    """Registers a rule: `implementation(key or None, *arguments)`."""
    rule(name)(functools.partial(implementation, None))
    RANDOM[name] = implementation


def _recurrent(kind, key, x, state, weights, has_biases, layers, dropout, train, bidirectional, batch_first):
    state = state if isinstance(state, (list, tuple)) else [state]
    x, *ends = _layers(kind, key, ops.swapaxes(x, 0, 1) if batch_first else x, state, weights, layers, dropout, bidirectional)
    return ops.swapaxes(x, 0, 1) if batch_first else x, *ends


def _packed(key, x, state, weights, has_biases, layers, dropout, train, bidirectional, valid, kind):
    valid = ops.expand_dims(valid, 2)
    x = ops.where(valid, x, 0)  # padding may be anything
    return list(_layers(kind, key, x, state, weights, layers, dropout, bidirectional, valid))


for _kind in _CELLS:
    _with_draws(f"{_kind}.input", functools.partial(_recurrent, _kind))
_with_draws("tessera.packed_rnn.default", _packed)
