# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Blocks of models and steps of optimizers and solvers, for operations.py: batch, rows, edges or experts cut over 8 devices."""

import jax
import jax.numpy as jnp
from jax import lax

TOKENS, WIDTH, HIDDEN, EXPERTS = 2048, 64, 256, 8
BATCH, GATED = 256, 4096
RAGGED = 2 * EXPERTS * HIDDEN  # rows of all experts' weights


def expert_choice(x, wg, w1, w2):
    """Each expert takes the tokens that like it best."""
    top, i = lax.top_k(jax.nn.softmax(x @ wg, -1).T, TOKENS * 2 // EXPERTS)
    h = jax.nn.gelu(jnp.einsum("ekd,edf->ekf", x[i], w1) / 8)
    y = jnp.einsum("ekf,efd->ekd", h, w2) / 64 * top[..., None]
    return jnp.zeros_like(x).at[i.reshape(-1)].add(y.reshape(-1, WIDTH))


def ragged_experts(x, wg, w1, w2):
    """Tokens sorted by expert, of which each multiplies its rows, as many as there are; one expert a token, without capacity."""
    expert = jnp.argmax(x @ wg, -1)
    order, sizes = jnp.argsort(expert), jnp.bincount(expert, length=w1.shape[0])
    y = lax.ragged_dot(jax.nn.silu(lax.ragged_dot(x[order], w1, sizes)), w2, sizes)
    return x + jnp.zeros_like(x).at[order].set(y)


def ragged_layers(x, *w):
    """Three layers, each computed again in the backward pass."""
    return lax.scan(lambda x, w: (jax.checkpoint(ragged_experts)(x, *w), None), x, w)[0]


def sorted_experts(x, wg, w1, w2, by_scatter=False):
    """Tokens sorted by expert, so that rows of one expert are consecutive, as Mixtral of transformers has it; top 2."""
    p, e = lax.top_k(jax.nn.softmax(x @ wg, -1), 2)
    order = jnp.argsort(e.reshape(-1))
    rows, expert = x[order // 2], e.reshape(-1)[order]
    pick = lambda y: jnp.take_along_axis(y, expert[:, None, None], 1)[:, 0]
    h = jax.nn.gelu(pick(jnp.einsum("sd,edf->sef", rows, w1)) / 8)
    y = pick(jnp.einsum("sf,efd->sed", h, w2)) / 64 * p.reshape(-1)[order][:, None]
    if by_scatter:
        return jnp.zeros_like(x).at[order // 2].add(y)
    return y[jnp.argsort(order)].reshape(*e.shape, -1).sum(1)


def top_experts(x, wg, w1, w3, w2):
    """Two experts a token, with gated products of sorted rows, as MaxText has them."""
    g, e = lax.top_k(x @ wg, 2)
    order, sizes = jnp.argsort(e.ravel()), jnp.bincount(e.ravel(), length=wg.shape[1])
    rows = jnp.take(x, order // 2, axis=0)
    h = jax.nn.silu(lax.ragged_dot(rows, w1, sizes) / 8) * lax.ragged_dot(rows, w3, sizes) / 8
    y = jnp.take(lax.ragged_dot(h, w2 / 16, sizes), jnp.argsort(order), axis=0)
    return jnp.einsum("tkd,tk->td", y.reshape(*e.shape, -1), jax.nn.softmax(g, -1))


def gathered_experts(x, wg, w1, w2):
    """The same with a look-up of the matrices of each token, as gpt-fast and Transformers have them."""
    g, e = lax.top_k(jax.nn.softmax(x @ wg, -1), 2)
    h = jax.nn.silu(jnp.einsum("td,tkdf->tkf", x, w1[e]) / 8)
    return jnp.einsum("tkf,tkfd,tk->td", h, w2[e], g)


def recurrence(a, b):
    """h[i] = a[i] h[i - 1] + b[i], the heart of selective state spaces."""
    combine = lambda first, then: (first[0] * then[0], then[0] * first[1] + then[1])
    return lax.associative_scan(combine, (jax.nn.sigmoid(a), b), axis=1)[1]


def recurrence_of_rows(a, b):
    """The same with one factor for a row of states, as in Mamba's second form."""
    combine = lambda first, then: (first[0] * then[0], then[0][..., None] * first[1] + then[1])
    return lax.associative_scan(combine, (jax.nn.sigmoid(a), b), axis=1)[1]


def looped_recurrence(a, b):
    return lax.scan(lambda h, ab: (h * jax.nn.sigmoid(ab[0]) + ab[1],) * 2, jnp.zeros(b.shape[1:]), (a, b))[1]


def penalized(logits, tokens):
    """The best token, where scores of earlier ones are scaled."""
    rows = jnp.arange(logits.shape[0])[:, None]
    score = logits[rows, tokens]
    return logits.at[rows, tokens].set(jnp.where(score < 0, score * 1.2, score / 1.2)).argmax(-1)


def two_towers(u, v, w1, w2):
    unit = lambda a: a / jnp.linalg.norm(a, axis=-1, keepdims=True)
    return -jnp.diagonal(jax.nn.log_softmax(20 * unit(u @ w1) @ unit(v @ w2).T)).mean()



def contrastive(x, y):
    """Both directions of a loss whose right pairs are on the diagonal."""
    scores = x @ y.T
    return -(jnp.diagonal(jax.nn.log_softmax(scores, 1)).mean() + jnp.diagonal(jax.nn.log_softmax(scores.T, 1)).mean()) / 2


def contrastive_one_hot(x, y):
    """The same with rows of the unit matrix as labels."""
    scores, eye = x @ y.T, jnp.eye(len(x))
    return -((eye * jax.nn.log_softmax(scores, 1)).sum(1).mean() + (eye * jax.nn.log_softmax(scores.T, 1)).sum(1).mean()) / 2
def beams(logits, scores):
    """The best four continuations of four beams: scores, beams and words."""
    scores, at = lax.top_k((jax.nn.log_softmax(logits, -1) + scores[..., None]).reshape(len(scores), -1), 4)
    return scores, at // logits.shape[-1], at % logits.shape[-1]



def contrastive_labels(x, y):
    """The same by labels, whose entries JAX's derivative scatters once for both directions."""
    scores, labels = x @ y.T, jnp.arange(len(x))
    entries = lambda logs: jnp.take_along_axis(logs, labels[:, None], 1).mean()
    return -(entries(jax.nn.log_softmax(scores, 1)) + entries(jax.nn.log_softmax(scores.T, 1))) / 2

def first_shares(logits):
    """Probabilities of the eight most likely words, zero for others."""
    least = lax.top_k(logits, 8)[0][:, -1:]
    return jax.nn.softmax(jnp.where(logits < least, -jnp.inf, logits), -1)


def convolution(h, source, target, w):
    """A graph convolution: means over the edges that reach a node."""
    sums = jax.ops.segment_sum((h @ w)[source], target, len(h))
    return sums / jnp.maximum(jax.ops.segment_sum(jnp.ones(len(source)), target, len(h)), 1)[:, None]


def gated(x, w, down, sliced=False):
    """A gated perceptron with the weights of gate and up in one."""
    h = x @ w / 8
    gate, up = (h[:, :GATED], h[:, GATED:]) if sliced else jnp.split(h, 2, -1)
    return (jax.nn.silu(gate) * up) @ down / 64


def self_attention(x, w, out):
    """Eight heads of 16, with q, k and v of one weight."""
    q, k, v = jnp.moveaxis((x @ w / 8).reshape(BATCH, 3, 8, 16), 1, 0)
    shares = jax.nn.softmax(jnp.einsum("qhd,khd->hqk", q, k), -1)
    return jnp.einsum("hqk,khd->qhd", shares, v).reshape(BATCH, 128) @ out


def k_means(x, c):
    nearest = jnp.argmin(((x[:, None] - c) ** 2).sum(-1), 1)
    sums = jax.ops.segment_sum(x, nearest, len(c))
    return sums / jnp.maximum(jax.ops.segment_sum(jnp.ones(len(x)), nearest, len(c)), 1)[:, None]


def accumulated(x, y, w):
    """A step whose gradient is the sum over four micro-batches."""
    loss = lambda w, x, y: ((jnp.tanh(x @ w) - y) ** 2).mean()
    add = lambda g, xy: (g + jax.grad(loss)(w, *xy), None)
    return w - 0.1 * lax.scan(add, jnp.zeros_like(w), (x, y))[0]


def clipped(x, y, w):
    g = jax.grad(lambda w: ((jnp.tanh(x @ w) - y) ** 2).mean())(w)
    return w - 0.1 * g * jnp.minimum(1, 1 / jnp.sqrt((g * g).sum()))


def adafactor(w, g, rows, columns):
    squares = g * g + 1e-3
    rows, columns = 0.9 * rows + 0.1 * squares.mean(1), 0.9 * columns + 0.1 * squares.mean(0)
    u = g * lax.rsqrt(jnp.abs(rows / rows.mean()) + 1e-3)[:, None] * lax.rsqrt(jnp.abs(columns) + 1e-3)
    return w - 0.01 * u / jnp.maximum(1, jnp.sqrt((u * u).mean())), rows, columns


def newton_schulz(g):
    """Two iterations of Muon."""
    x = g / jnp.linalg.norm(g)
    for _ in range(2):
        a = x @ x.T
        x = 3.4445 * x + (-4.775 * a + 2.0315 * (a @ a)) @ x
    return x


def sinkhorn(costs):
    k = jnp.exp(-jnp.abs(costs))
    u = jnp.ones(len(k)) / len(k)
    for _ in range(3):
        v = 1 / (k.T @ u)
        u = 1 / (k @ v)
    return u[:, None] * k * v


def state_space(x, step, a, b, c):
    step = jax.nn.softplus(step)
    decay = jnp.exp(-step[..., None] * jnp.abs(a))
    join = lambda p, q: (p[0] * q[0], q[0] * p[1] + q[1])
    h = lax.associative_scan(join, (decay, (step * x)[..., None] * b[:, :, None]), axis=1)[1]
    return jnp.einsum("bldn,bln->bld", h, c)


def chunked_state_space(x, decay, b, c):
    """Mamba's second form: products within chunks of 16 positions, a scan over the states of the chunks."""
    batch, length, heads, width = x.shape
    chunks = lambda a: a.reshape(batch, length // 16, 16, *a.shape[2:])
    x, decay, b, c = chunks(x), chunks(-0.1 * jnp.abs(decay)), chunks(b), chunks(c)
    total, at = jnp.cumsum(decay, 2), jnp.arange(16)
    within = jnp.where((at[:, None] >= at)[..., None], jnp.exp(total[:, :, :, None] - total[:, :, None]), 0)
    y = jnp.einsum("bcln,bcmn,bclmh,bcmhp->bclhp", c, b, within, x)
    states = jnp.einsum("bcmn,bcmh,bcmhp->cbhpn", b, jnp.exp(total[:, :, -1:] - total), x)
    join = lambda h, chunk: (h * chunk[1][..., None, None] + chunk[0], h)
    before = lax.scan(join, jnp.zeros_like(states[0]), (states, jnp.exp(total[:, :, -1]).swapaxes(0, 1)))[1]
    y += jnp.einsum("bcln,cbhpn,bclh->bclhp", c, before, jnp.exp(total))
    return y.reshape(batch, length, heads, width)


def retention(r, k, v, w):
    """RWKV's recurrence: each position adds a product of its key and value to a state that decays."""
    def step(state, at):
        r, k, v, w = at
        update = k[..., None] * v[..., None, :]
        return state * jnp.exp(-jnp.exp(w))[..., None] + update, jnp.einsum("bhk,bhkv->bhv", r, state + update)
    state = jnp.zeros((*r.shape[:1], *r.shape[2:], v.shape[-1]))
    return lax.scan(step, state, tuple(a.swapaxes(0, 1) for a in (r, k, v, w)))[1].swapaxes(0, 1)


def filtered(x, k):
    """A long convolution by Fourier transforms."""
    n = x.shape[-1]
    return jnp.fft.irfft(jnp.fft.rfft(x, 2 * n) * jnp.fft.rfft(k, 2 * n), 2 * n)[..., :n]


def rotary(x, cosines, sines):
    """Halves of the features are rotated against each other."""
    a, b = jnp.split(x, 2, -1)
    return x * cosines + jnp.concatenate([-b, a], -1) * sines


def rotary_by_halves(x, cosines, sines):
    a, b = jnp.split(x, 2, -1)
    return jnp.concatenate([a * cosines - b * sines, b * cosines + a * sines], -1)


def power_iteration(a, v):
    def step(_, v):
        v = a @ v
        return v / jnp.sqrt((v * v).sum())
    return lax.fori_loop(0, 5, step, v)


def long_short_term_memory(xs, w, b):
    """A step of descent: input, forget, cell and output gates of one product; xs of steps, batch and features."""
    def cell(state, x):
        h, c = state
        i, f, g, o = jnp.split(jnp.concatenate([x, h], 1) @ w + b, 4, 1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h
    none = jnp.zeros((xs.shape[1], len(b) // 4))
    return lax.scan(cell, (none, none), xs)[1]


def recurrent_step(xs, w, b):
    g = jax.grad(lambda w, b: (long_short_term_memory(xs, 0.1 * w, b) ** 2).mean(), (0, 1))(w, b)
    return w - 0.1 * g[0], b - 0.1 * g[1]


def descent(loss, *weights):
    return tuple(w - 0.1 * g for w, g in zip(weights, jax.grad(loss, tuple(range(len(weights))))(*weights)))


def gated_recurrent_step(xs, *weights):
    """A step of a GRU that multiplies input and state joined, by two blocks of one weight."""
    n = weights[0].shape[1] // 3

    def loss(w, b):
        def cell(h, x):
            product = lambda h, columns: jnp.concatenate([x, h], 1) @ (0.1 * w)[:, columns] + b[columns]
            r, u = jnp.split(jax.nn.sigmoid(product(h, slice(2 * n))), 2, 1)
            h = u * h + (1 - u) * jnp.tanh(product(r * h, slice(2 * n, None)))
            return h, h
        return (lax.scan(cell, jnp.zeros((xs.shape[1], n)), xs)[1] ** 2).mean()
    return descent(loss, *weights)


def gates_apart_step(xs, *weights):
    """A step of a GRU with a weight for each product."""
    def loss(*weights):
        def cell(h, x):
            xr, xu, xn, hr, hu, hn = (v @ (0.1 * w) for v, w in zip([x] * 3 + [h] * 3, weights))
            r, u = jax.nn.sigmoid(xr + hr), jax.nn.sigmoid(xu + hu)
            return u * h + (1 - u) * jnp.tanh(xn + r * hn), None
        return (lax.scan(cell, jnp.zeros((xs.shape[1], weights[-1].shape[1])), xs)[0] ** 2).mean()
    return descent(loss, *weights)


def recurrent(xs, w):
    return lax.scan(lambda h, x: (jnp.tanh(h @ w + x), None), jnp.zeros(xs.shape[1:]), xs)[0]


def low_rank(x, w, a, b):
    return x @ w + 2 * (x @ a) @ b


def shuffled_batches(w, rows, advantages, seed, by_index=False):
    """Two epochs of PPO, of four steps each, on random parts of what 1024 environments did at 256 times."""
    rows, advantages = rows.reshape(-1, WIDTH), advantages.reshape(-1)

    def step(w, some):
        gain = lambda w: (jnp.tanh(some[0] @ w[0] / 8) @ w[1] * some[1][:, None]).mean()
        return jax.tree.map(lambda w, g: w + 0.1 * g, w, jax.grad(gain)(w)), None

    def epoch(w, key):
        order = jax.random.permutation(key, len(rows))
        if by_index:
            return lax.scan(lambda w, at: step(w, (rows[at], advantages[at])), w, order.reshape(4, -1))
        return lax.scan(step, w, (rows[order].reshape(4, -1, WIDTH), advantages[order].reshape(4, -1)))
    return lax.scan(lambda w, key: (epoch(w, key)[0], None), w, jax.random.split(jax.random.key(seed), 2))[0]


def model_cases(Case):
    shape = lambda *extents: jax.ShapeDtypeStruct(extents, jnp.float32)
    i32 = lambda *extents: jax.ShapeDtypeStruct(extents, jnp.int32)
    sent = lambda elements: elements * 4 * 7 // 8  # gathered, scattered; of an all-to-all, the elements of a device
    reduced = lambda elements: 2 * elements * 4 * 7 // 8
    part = lambda *extents: sent(jnp.prod(jnp.array(extents)).item() // 8)
    columns, chosen = (None, "s"), TOKENS * 2
    towers = [shape(BATCH, 32), shape(BATCH, 24), shape(32, 16), shape(24, 16)]
    batches, steps = [shape(4, 1024, 64), shape(4, 1024, 128)], shape(64, 128)
    experts = [shape(TOKENS, WIDTH), shape(WIDTH, EXPERTS), shape(EXPERTS, WIDTH, HIDDEN), shape(EXPERTS, HIDDEN, WIDTH)]
    ragged = [shape(32768, WIDTH), *experts[1:]]
    scan = [shape(2, 64, 32), shape(2, 64, 32), shape(32, 8), shape(2, 64, 8), shape(2, 64, 8)]
    gate_up = [shape(BATCH, WIDTH), shape(WIDTH, 2 * GATED), shape(GATED, WIDTH)]
    deep, features = (None, None, "s"), (None, None, None, "s")
    played = 256, 1024
    return {
        "model: experts choose": Case(
            expert_choice, experts, part(TOKENS, EXPERTS) + sent(chosen) + 2 * (part(TOKENS, WIDTH) + part(chosen, WIDTH)),
            "scores to experts, choices to all; tokens to columns, chosen rows to experts, and back", cut=["s", None, "s", "s"]),
        "model: experts by sort": Case(sorted_experts, experts, 0, "experts are whole: each device multiplies its tokens",
                                       cut=["s", None, None, None]),
        "model: experts by sort, scattered": Case(
            lambda *a: sorted_experts(*a, by_scatter=True), experts, 0, "the same", cut=["s", None, None, None]),
        "model: experts by sort, gradients": Case(
            jax.grad(lambda *a: (sorted_experts(*a) ** 2).sum(), (1, 2, 3)), experts,
            reduced(WIDTH * EXPERTS + 2 * EXPERTS * WIDTH * HIDDEN), "gradients of the weights", cut=["s", None, None, None], out=None),
        "model: ragged experts": Case(
            ragged_experts, ragged, sent(RAGGED * WIDTH), "weights of the experts to all; tokens to all and sums back are 8 times that",
            cut=["s", None, "s", "s"]),
        "model: ragged experts, gradients": Case(
            jax.grad(lambda *a: (ragged_experts(*a) ** 2).sum(), (2, 3)), ragged, 2 * sent(RAGGED * WIDTH),
            "weights to all, their gradients home", cut=["s", None, "s", "s"], out="s"),
        "model: ragged experts, 3 layers, gradients": Case(
            jax.grad(lambda *a: (ragged_layers(*a) ** 2).sum(), (2, 3)), [ragged[0], *(shape(3, *w.shape) for w in ragged[1:])],
            3 * 2 * sent(RAGGED * WIDTH), "weights to all once, their gradients home, of each layer",
            cut=["s", None, (None, "s"), (None, "s")], out=((None, "s"), (None, "s"))),
        "model: ragged experts, few tokens": Case(
            ragged_experts, [shape(512, WIDTH), *ragged[1:]], 2 * sent(512 * WIDTH), "tokens to the experts of all, and sums back",
            cut=["s", None, "s", "s"]),
        **{f"model: shuffled minibatches{name}": Case(
            lambda *a, by=by: shuffled_batches(*a, by), [[shape(WIDTH, WIDTH), shape(WIDTH, 8)], shape(*played, WIDTH), shape(*played), i32()],
            3 * part(*played, WIDTH) + sent(played[0] * played[1]) + 8 * reduced(WIDTH * (WIDTH + 8)),
            "rows to columns, and twice back in another order; advantages to all; gradients", cut=[None, columns, columns, None], out=None)
           for name, by in (("", False), (", by index", True))},
        "model: top experts": Case(
            top_experts, [shape(1024, WIDTH), *experts[1:3], *experts[2:]], 2 * sent(1024 * WIDTH) + 2 * sent(2 * 1024),
            "tokens, gates and choices to all, and sums back", cut=["s", None, "s", "s", "s"]),
        "model: top experts, gradients": Case(
            jax.grad(lambda *a: (top_experts(*a) ** 2).mean(), (1, 2, 3, 4)), [shape(1024, WIDTH), *experts[1:3], *experts[2:]],
            3 * sent(1024 * WIDTH) + 3 * sent(2 * 1024) + reduced(WIDTH * EXPERTS),
            "the same, gradients of sums to all, those of gates back; the gradient of their weight", cut=["s", None, "s", "s", "s"],
            out=(None, "s", "s", "s")),
        "model: gathered experts, few tokens": Case(
            gathered_experts, [shape(4, WIDTH), *experts[1:]], reduced(4 * WIDTH), "tokens are whole: sums of those that have the matrices",
            cut=[None, None, "s", "s"], out=None),
        "model: gathered experts": Case(
            gathered_experts, [shape(1024, WIDTH), *experts[1:]], 2 * sent(1024 * WIDTH) + 2 * sent(2 * 1024),
            "tokens, gates and choices to all, and sums back", cut=["s", None, "s", "s"]),
        "model: gathered experts, gradients": Case(
            jax.grad(lambda *a: (gathered_experts(*a) ** 2).mean(), (1, 2, 3)), [shape(1024, WIDTH), *experts[1:]],
            3 * sent(1024 * WIDTH) + 3 * sent(2 * 1024) + reduced(WIDTH * EXPERTS),
            "the same, gradients of sums to all, those of gates back; the gradient of their weight", cut=["s", None, "s", "s"],
            out=(None, "s", "s")),
        "model: two towers": Case(two_towers, towers, sent(BATCH * 16) + reduced(1), "rows of one tower, the sum",
                                  cut=["s", "s", None, None], out=None),
        "model: two towers, gradients": Case(
            jax.grad(two_towers, (2, 3)), towers, 2 * sent(BATCH * 16) + reduced(56 * 16),
            "rows of one tower, their gradients home, those of the weights", cut=["s", "s", None, None], out=None),
        "model: retrieval": Case(
            lambda q, documents: lax.top_k(q @ documents.T, 8), [shape(BATCH, 32), shape(4096, 32)], sent(BATCH * 32) + 2 * part(8, BATCH * 8),
            "queries to all, eight candidates of each part, with their numbers, to the query", cut=["s", "s"]),
        "model: beam search, vocabulary": Case(
            beams, [shape(16, 4, 4096), shape(16, 4)], 2 * sent(8 * 16 * 4 * 4) + 2 * reduced(16 * 4),
            "maxima and sums of exponentials, four candidates of each beam and part, with their numbers, to all",
            cut=[deep, None], out=None),
        "model: sample of the first 8": Case(
            first_shares, [shape(64, 4096)], sent(8 * 64 * 8) + 2 * reduced(64), "candidates to all, the maximum and the sum of what stays",
            cut=[columns], out=columns),
        "model: graph convolution": Case(convolution, [shape(64, 16), i32(512), i32(512), shape(16, 16)], reduced(64 * 17),
                                         "sums and degrees of nodes; edges are cut", cut=[None, "s", "s", None], out=None),
        "model: gate and up in one weight": Case(
            gated, gate_up, reduced(BATCH * WIDTH) + 2 * GATED // 8 * WIDTH * 4,
            "the result; device 1 has columns of gate alone, and none of those that it needs", cut=[None, columns, "s"], out=None),
        "model: gate and up in one weight, gradients": Case(
            jax.grad(lambda *a: (gated(*a, sliced=True) ** 2).mean(), (1, 2)), gate_up,
            reduced(BATCH * WIDTH) + 2 * 2 * GATED // 8 * WIDTH * 4, "the same, and the gradient of the weight back",
            cut=[None, columns, "s"], out=(columns, "s")),
        "model: gate and up in a whole weight, gradients": Case(
            jax.grad(lambda *a: (gated(*a) ** 2).mean(), (1, 2)), gate_up, reduced(BATCH * WIDTH) + sent(2 * GATED * WIDTH),
            "the result, the gradient of the weight to all", cut=[None, None, "s"], out=(None, "s")),
        "model: q, k and v of one weight": Case(
            self_attention, [shape(BATCH, WIDTH), shape(WIDTH, 384), shape(128, WIDTH)], reduced(BATCH * WIDTH) + 48 * WIDTH * 4,
            "the result; device 1 has columns of q alone, and none of those that it needs", cut=[None, columns, "s"], out=None),
        "model: k-means": Case(k_means, [shape(256, 16), shape(8, 16)], reduced(8 * 17), "sums and numbers", cut=["s", None], out=None),
        "model: linear recurrence, sequence": Case(
            recurrence, [shape(2, 64, 32, 8)] * 2, 3 * 2 * 2 * 32 * 8 * 4, "a factor and a summand of each part, in three rounds",
            cut=[columns, columns], out=columns),
        "model: linear recurrence, sequence, gradients": Case(
            jax.grad(lambda a, b: (recurrence(a, b) ** 2).mean(), (0, 1)), [shape(2, 64, 32, 8)] * 2, (2 * 3 * 2 + 2) * 2 * 32 * 8 * 4,
            "the same there and back, a row of factors and of states from the neighbor", cut=[columns, columns],
            out=(columns, columns)),
        "model: recurrence of rows, sequence": Case(
            recurrence_of_rows, [shape(2, 64, 32), shape(2, 64, 32, 8)], 3 * 2 * 32 * (1 + 8) * 4,
            "a factor and a row of summands of each part, in three rounds", cut=[columns, columns], out=columns),
        "model: recurrence of rows, sequence, gradients": Case(
            jax.grad(lambda a, b: (recurrence_of_rows(a, b) ** 2).mean(), (0, 1)), [shape(2, 64, 32), shape(2, 64, 32, 8)],
            (2 * 3 + 1) * 2 * 32 * (1 + 8) * 4, "the same there and back, a row of factors and of states from the neighbor",
            cut=[columns, columns], out=(columns, columns)),
        "model: repetition penalty, vocabulary": Case(
            penalized, [shape(8, 1024), i32(8, 64)], 2 * reduced(8), "owners scale scores: a maximum and its index",
            cut=[columns, None], out=None),
        "model: state space, channels": Case(state_space, scan, 0, "channels are independent", cut=[deep, deep, "s", None, None], out=deep),
        "model: low rank, columns": Case(low_rank, [shape(64, 32), shape(32, 64), shape(32, 4), shape(4, 64)], 0,
                                         "the product with a is small", cut=[None, columns, None, columns], out=columns),
        "model: low rank, rows": Case(low_rank, [shape(64, 32), shape(32, 64), shape(32, 4), shape(4, 64)], reduced(64 * 64),
                                      "both are contributions, added first", cut=[columns, "s", "s", None], out=None),
        "step: micro-batches": Case(accumulated, [*batches, steps], reduced(64 * 128), "the sum of the gradients",
                                    cut=[columns, columns, None], out=None),
        "step: micro-batches, cut weights": Case(accumulated, [*batches, steps], 2 * sent(64 * 128),
                                                 "weights gathered once, the sum of the gradients scattered once",
                                                 cut=[columns, columns, "s"]),
        "step: clipped, cut weights": Case(clipped, [shape(1024, 64), shape(1024, 128), steps], 2 * sent(64 * 128) + reduced(1),
                                           "weights gathered, gradients scattered, the norm", cut=["s"] * 3),
        "step: Adafactor": Case(adafactor, [steps, steps, shape(64), shape(128)], reduced(128) + 2 * reduced(1),
                                "sums of columns, two means", cut=["s", "s", "s", None], out=("s", "s", None)),
        "step: Newton-Schulz": Case(newton_schulz, [shape(32, 64)], reduced(1) + 2 * reduced(32 * 32), "the norm, two products",
                                    cut=[columns], out=columns),
        "matrix, rows: diagonal": Case(jnp.diagonal, [shape(512, 512)], 0, "a device has the element of each of its rows", cut=["s"], out="s"),
        "model: contrastive loss, diagonal": Case(
            jax.grad(contrastive, (0, 1)), [shape(4096, 64)] * 2, 2 * sent(4096 * 64) + 3 * reduced(4096),
            "a side gathered, its gradient scattered; largest, sums of columns and their gradient", cut=["s", "s"], out=("s", "s")),
        "model: contrastive loss, unit matrix": Case(
            jax.grad(contrastive_one_hot, (0, 1)), [shape(4096, 64)] * 2, 2 * sent(4096 * 64) + 3 * reduced(4096),
            "the same", cut=["s", "s"], out=("s", "s")),
        "model: contrastive loss, labels": Case(
            jax.grad(contrastive_labels, (0, 1)), [shape(4096, 64)] * 2, 2 * sent(4096 * 64) + 3 * reduced(4096),
            "the same", cut=["s", "s"], out=("s", "s")),
        "step: LSTM, batch": Case(recurrent_step, [shape(128, 64, 1024), shape(2048, 4096), shape(4096)], reduced(2049 * 4096),
                                  "gradients of all steps, once", cut=[columns, None, None], out=None),
        "step: LSTM, batch and cut weights": Case(
            recurrent_step, [shape(128, 256, 512), shape(1024, 2048), shape(2048)], 2 * sent(1024 * 2048) + reduced(2048),
            "weights gathered once, gradients of all steps scattered once", cut=[columns, "s", None], out=("s", None)),
        "step: LSTM, small batch, cut weights": Case(
            recurrent_step, [shape(128, 32, 256), shape(512, 1024), shape(1024)], 2 * sent(512 * 1024) + reduced(1024), "the same",
            cut=[columns, "s", None], out=("s", None)),
        "step: GRU of joined input and state, cut weights": Case(
            gated_recurrent_step, [shape(16, 256, 128), shape(384, 768), shape(768)], 2 * sent(384 * 768 + 768),
            "weights gathered once, gradients of all steps scattered once", cut=[columns, "s", "s"]),
        "step: GRU, a weight for each gate, cut weights": Case(
            gates_apart_step, [shape(32, 64, 64)] + [shape(64, 128)] * 3 + [shape(128, 128)] * 3, 2 * sent(3 * 192 * 128), "the same",
            cut=[columns] + ["s"] * 6),
        "step: recurrent, cut weights": Case(
            lambda xs, w: w - 0.1 * jax.grad(lambda w: recurrent(xs, 0.1 * w).sum())(w), [shape(64, 8, 64), shape(64, 64)], sent(64 * 64),
            "weights gathered: each device computes the little that follows", cut=[None, "s"]),
        "solver: Sinkhorn": Case(sinkhorn, [shape(64, 32)], 3 * reduced(32), "sums of columns, three times"),
        "model: chunked states, sequence": Case(
            chunked_state_space, [shape(2, 256, 4, 16), shape(2, 256, 4), shape(2, 256, 8), shape(2, 256, 8)],
            2 * part(8, 2 * 4 * 16 * 8) + sent(8 * 2 * 4),
            "the last state of each part to features and back, the decays of the parts to all", cut=[columns] * 4, out=columns),
        "model: chunked states, sequence, gradients": Case(
            jax.grad(lambda *a: (chunked_state_space(*a) ** 2).mean(), (0, 1, 2, 3)),
            [shape(2, 256, 4, 16), shape(2, 256, 4), shape(2, 256, 8), shape(2, 256, 8)],
            2 * (2 * part(8, 2 * 4 * 16 * 8) + sent(8 * 2 * 4)), "the same there and back", cut=[columns] * 4, out=(columns,) * 4),
        "model: linear recurrence, loop": Case(
            looped_recurrence, [shape(1024, 32, 8)] * 2, 3 * part(8, 32 * 8),
            "the last state of each part and its factor to features, states back"),
        "model: map over rows": Case(lambda x, w: lax.map(lambda row: jnp.tanh(row @ w), x), [shape(1024, 16, 64), shape(64, 64)], 0,
                                     "each device computes its rows", cut=["s", None]),
        "model: rotary, features": Case(rotary, [shape(2, 64, 8, 64), shape(64, 1, 64), shape(64, 1, 64)], 2 * 64 * 8 * 64 * 4 // 8,
                                        "a part, of the device opposite", cut=[features, None, None], out=features),
        "model: rotary by halves, features": Case(
            rotary_by_halves, [shape(2, 64, 8, 64), shape(64, 1, 32), shape(64, 1, 32)], 2 * 64 * 8 * 64 * 4 // 8, "the same",
            cut=[features, None, None], out=features),
        "model: retention, sequence": Case(
            retention, [shape(2, 64, 4, 16)] * 4, 2 * part(8, 2 * 4 * 16 * 16) + part(8, 2 * 4 * 16),
            "the last state of each part to features and back, the decays of the parts to heads", cut=[columns] * 4, out=columns),
        "model: long convolution, sequence": Case(filtered, [shape(8, 16, 64), shape(16, 64)], 2 * part(8, 16, 64),
                                                  "to the batch and back", cut=[deep, None], out=deep),
        "solver: power iteration": Case(power_iteration, [shape(64, 64), shape(64)], 5 * (sent(64) + reduced(1)) + sent(64),
                                        "contributions scattered, the norm, five times; gathered", cut=[columns, None], out=None),
        "solver: page rank, loop": Case(lambda a, r: lax.fori_loop(0, 6, lambda _, r: 0.1 * a @ r + 0.1, r), [shape(64, 64), shape(64)],
                                        6 * sent(64), "ranks gathered six times", cut=["s", None], out=None),
        "solver: page rank": Case(lambda a, r: 0.85 * a @ (0.85 * a @ r + 0.1) + 0.1, [shape(64, 64), shape(64)], 2 * sent(64),
                                  "ranks gathered twice"),
    }
