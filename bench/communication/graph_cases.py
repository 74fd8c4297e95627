# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Bags of embeddings and networks on graphs, for operations.py: values, edges and nodes cut over 8 devices, tables in each way."""

import jax
import jax.numpy as jnp

WORDS, BAGS, VALUES, WIDTH = 65536, 512, 8192, 64
NODES, EDGES = 1024, 8192
sum_at = jax.ops.segment_sum


def bags(table, values, bag):
    """Sums of rows: each value is in one bag."""
    return sum_at(table[values], bag, BAGS)


def bags_step(table, values, bag, y):
    return table - 0.1 * jax.grad(lambda table: ((bags(table, values, bag) - y) ** 2).mean())(table)


def pooled(table, queries, values, bag, y):
    """Means of rows by a softmax within each bag, of their products with its query."""
    rows = table[values]
    scores = 0.1 * (rows * queries[bag]).sum(-1)
    shares = jnp.exp(scores - jax.lax.stop_gradient(jax.ops.segment_max(scores, bag, BAGS))[bag])
    means = sum_at(shares[:, None] * rows, bag, BAGS) / jnp.maximum(sum_at(shares, bag, BAGS), 1e-6)[:, None]
    return ((means - y) ** 2).mean()


def attended_history(table, w, items, candidate, y):
    """A step for a user's interest: a sum of the items of the history, by a network of each with the candidate."""
    def loss(table, w):
        rows, wanted = table[items], table[candidate]
        shares = jax.nn.sigmoid(jnp.concatenate([rows, rows * wanted[:, None]], -1) @ w[0]) @ w[1]
        return (((shares * rows).sum(1) * wanted).sum(-1) - y).var()
    return jax.tree.map(lambda a, g: a - 0.1 * g, (table, w), jax.grad(loss, (0, 1))(table, w))


def messages(weights, h, e, source, target):
    """Layers in which a message of both ends and of the edge is added up at the target."""
    for ends, own in weights:
        message = jnp.tanh(jnp.concatenate([h[source], h[target], e], -1) @ (0.1 * ends))
        h = jnp.tanh(h @ (0.1 * own) + sum_at(message, target, NODES))
    return h


def attended(weights, h, source, target):
    """Layers of a graph attention network with 8 heads: a softmax over the edges of each target."""
    for w, left, right in weights:
        z = (h @ (0.1 * w)).reshape(NODES, 8, -1)
        scores = jax.nn.leaky_relu((z * left).sum(-1)[source] + (z * right).sum(-1)[target], 0.2)
        most = jax.lax.stop_gradient(jax.ops.segment_max(scores, target, NODES))
        shares = jnp.exp(scores - most[target])
        shares = shares / sum_at(shares, target, NODES)[target]
        h = jnp.tanh(sum_at(z[source] * shares[..., None], target, NODES).reshape(NODES, -1))
    return h


def convolved(weights, h, source, target):
    """Layers of a graph convolution; indices out of range read NaN."""
    for w in weights:
        h = jnp.tanh(sum_at(jnp.take(h @ (0.1 * w), source, axis=0, mode="fill"), target, NODES))
    return h


def graph_cases(Case):
    shape = lambda *extents: jax.ShapeDtypeStruct(extents, jnp.float32)
    i32 = lambda *extents: jax.ShapeDtypeStruct(extents, jnp.int32)
    sent = lambda elements: elements * 4 * 7 // 8  # gathered, scattered; of an all-to-all, the elements of a device
    part = lambda elements: sent(elements // 8)
    reduced = lambda elements: 2 * sent(elements)
    columns, graph = (None, "s"), [i32(EDGES), i32(EDGES)]
    jagged = [shape(WORDS, WIDTH), i32(VALUES), i32(VALUES)]
    target, sums, nodes = shape(BAGS, WIDTH), BAGS * WIDTH, NODES * WIDTH
    layer = (shape(3 * WIDTH, WIDTH), shape(WIDTH, WIDTH))
    heads = (shape(WIDTH, WIDTH), shape(8, WIDTH // 8), shape(8, WIDTH // 8))
    squares = lambda net: jax.grad(lambda *a: (net(*a) ** 2).mean())
    return {
        "bags, table by rows": Case(bags, jagged, 2 * sent(VALUES) + sent(sums), "indices to all, contributions to the sums scattered"),
        "bags, table by rows, step": Case(bags_step, [*jagged, target], 2 * sent(VALUES) + 2 * sent(sums),
                                          "the same, their gradients to all", out="s"),
        "bags, table by columns": Case(bags, jagged, 2 * sent(VALUES) + part(sums), "indices to all, columns of the sums to bags",
                                       cut=[columns, "s", "s"]),
        "bags, table by columns, step": Case(bags_step, [*jagged, target], 2 * sent(VALUES) + part(sums),
                                             "indices to all, y to columns", cut=[columns, "s", "s", "s"], out=columns),
        "bags, table whole, step": Case(bags_step, [*jagged, target], 2 * sent(VALUES) + part(sums) + sent(sums),
                                        "sums by columns, y to columns, gradients of the sums to all; the table's is larger", cut=[None, "s", "s", "s"], out=None),
        "bags by attention, table whole, gradients": Case(
            jax.grad(pooled, (0, 1)), [shape(WORDS, WIDTH), target, *jagged[1:], target],
            2 * sent(VALUES) + 3 * part(sums) + 4 * sent(VALUES) + 4 * sent(BAGS) + 2 * sent(sums),
            "indices to all; queries and y to columns, their gradients back; scores scattered, shares to all, the same of gradients; "
            "maxima and sums; queries and gradients of sums to all", cut=[None, *"ssss"], out=(None, "s")),
        "histories, table whole, step": Case(
            attended_history, [shape(WORDS, WIDTH), [shape(2 * WIDTH, 32), shape(32, 1)], i32(BAGS, 16), i32(BAGS), shape(BAGS)],
            sent(BAGS * 17 * (1 + WIDTH)) + reduced(2 * WIDTH * 32 + 32) + 2 * reduced(1),
            "indices and gradients of the rows of both look-ups to all; the table's is larger; those of the weights, mean and variance",
            cut=[None, None, "s", "s", "s"], out=None),
        "graph: messages, 2 layers": Case(
            messages, [[layer] * 2, shape(NODES, WIDTH), shape(EDGES, WIDTH), *graph], 4 * sent(nodes),
            "nodes to all, their sums scattered, of each layer", cut=[None, "s", "s", "s", "s"]),
        "graph: messages, 2 layers, gradients": Case(
            squares(messages), [[layer] * 2, shape(NODES, WIDTH), shape(EDGES, WIDTH), *graph],
            7 * sent(nodes) + 2 * reduced(4 * WIDTH * WIDTH),
            "the same; gradients of sums to all, those of nodes scattered, but of the first layer's; those of the weights",
            cut=[None, "s", "s", "s", "s"], out=None),
        "graph: convolution, 2 layers": Case(
            convolved, [[layer[1]] * 2, shape(NODES, WIDTH), *graph], 2 * sent(EDGES) + 4 * part(nodes),
            "edges to all; nodes to columns and back, of each layer", cut=[None, "s", "s", "s"]),
        "graph: convolution, 2 layers, gradients": Case(
            squares(convolved), [[layer[1]] * 2, shape(NODES, WIDTH), *graph],
            2 * sent(EDGES) + 6 * part(nodes) + 2 * reduced(WIDTH * WIDTH),
            "the same, and gradients of both layers; the loss is by columns", cut=[None, "s", "s", "s"], out=None),
        "graph: attention, 2 layers": Case(
            attended, [[heads] * 2, shape(NODES, WIDTH), *graph], 2 * sent(EDGES) + 4 * part(nodes),
            "edges to all; nodes to heads and back, of each layer", cut=[None, "s", "s", "s"]),
        "graph: attention, 2 layers, gradients": Case(
            squares(attended), [[heads] * 2, shape(NODES, WIDTH), *graph],
            2 * sent(EDGES) + 6 * part(nodes) + 2 * reduced(WIDTH * WIDTH) + 4 * sent(WIDTH),
            "the same, and gradients of both layers", cut=[None, "s", "s", "s"], out=None),
    }
