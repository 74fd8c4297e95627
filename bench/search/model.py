# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""An independent model of GPT-3's training graph, the source of tables of bench/search/run. It shares no code with the
compiler's cost model.

Sharding search as a pairwise min-sum problem: nodes = ops/params with strategies (each mesh axis -> a loop factor or none),
edges = reshard cost between the producer's output placement and the consumer's operand placement."""
import itertools, functools, math
import numpy as np

class Hw:
    def __init__(s, axes, flops=312e12 * .5, mem_bw=1.6e12):
        s.n = [a[0] for a in axes]; s.alpha = [a[1] for a in axes]; s.bw = [a[2] for a in axes]
        s.flops = flops; s.mem_bw = mem_bw; s.k = len(axes); s.devices = int(np.prod(s.n))

# placement: tuple per axis of 'R','P' or dim int
def reshard(hw, shape, el, src, dst, cache={}):
    key = (id(hw), shape, el, src, dst)
    if key in cache: return cache[key]
    k = hw.k; best = math.inf
    diff = [a for a in range(k) if src[a] != dst[a]]
    full = float(np.prod(shape)) * el
    for order in itertools.permutations(diff):
        cur = list(src); c = 0.0
        for a in order:
            loc = full
            for b in range(k):
                if isinstance(cur[b], int): loc /= hw.n[b]
            n = hw.n[a]; s, d = cur[a], dst[a]; al = hw.alpha[a]; bw = hw.bw[a]
            if s == 'P' and d == 'R': c += 2 * al * (n - 1) + 2 * (n - 1) / n * loc / bw
            elif s == 'P': c += al * (n - 1) + (n - 1) / n * loc / bw            # reduce-scatter
            elif d == 'P': c += 0.0                                            # mask/zero: local
            elif s == 'R': c += 0.0                                            # slice
            elif d == 'R': c += al * (n - 1) + (n - 1) * loc / bw              # all-gather
            else: c += al * (n - 1) + (n - 1) / n * loc / bw                    # all-to-all
            cur[a] = d
        best = min(best, c)
    if not diff: best = 0.0
    cache[key] = best
    return best

class Node:
    __slots__ = ("name", "strats", "cost", "mem", "outp", "inp", "outshape", "el", "inshapes", "layer")

class Problem:
    def __init__(s, hw): s.hw = hw; s.nodes = []; s.edges = []; s._tab = {}
    def op(s, name, factors, out, ins, flops=0.0, bytes_=0.0, el=2, layer=0, nosh=()):
        """factors: dict name->extent. out/ins: tuples of factor names per dim; factors absent from `out` are reductions."""
        n = Node(); n.name = name; n.layer = layer; n.el = el
        fs = [f for f in factors if f not in nosh]
        n.outshape = tuple(factors[f] for f in out); n.inshapes = [tuple(factors[f] for f in i) for i in ins]
        strats = []
        for st in itertools.product([None] + fs, repeat=s.hw.k):
            ok = True
            for f in fs:
                p = 1
                for a, x in enumerate(st):
                    if x == f: p *= s.hw.n[a]
                if factors[f] % p: ok = False
            if ok: strats.append(st)
        n.strats = strats
        def place(st, dims):
            return tuple('R' if x is None else (dims.index(x) if x in dims else ('P' if dims is out else 'R')) for x in st)
        n.outp = [place(st, out) for st in strats]
        n.inp = [[place(st, i) for st in strats] for i in ins]
        n.cost = np.array([max(flops / s.hw.flops, bytes_ / s.hw.mem_bw) / np.prod([s.hw.n[a] for a, x in enumerate(st) if x is not None] or [1]) for st in strats])
        n.mem = np.zeros(len(strats))
        s.nodes.append(n); return len(s.nodes) - 1
    def param(s, name, shape, el=2, memfac=8.0, layer=0):
        i = s.op(name, {j: v for j, v in enumerate(shape)}, tuple(range(len(shape))), [], layer=layer, el=el)
        n = s.nodes[i]
        full = float(np.prod(shape)) * el * memfac
        n.mem = np.array([full / np.prod([s.hw.n[a] for a, x in enumerate(st) if x is not None] or [1]) for st in n.strats])
        n.cost = n.mem / memfac * memfac / s.hw.mem_bw    # optimizer reads/writes its shard
        return i
    def edge(s, u, v, operand=0):
        """tensor produced by u is operand `operand` of v (operand=None: v is a param whose own placement is required)"""
        a, b = s.nodes[u], s.nodes[v]
        need = b.outp if operand is None else b.inp[operand]
        key = (a.outshape, a.el, tuple(a.outp), tuple(need))
        t = s._tab.get(key)
        if t is None:
            src = sorted(set(a.outp), key=str); dst = sorted(set(need), key=str)
            m = np.array([[reshard(s.hw, a.outshape, a.el, x, y) for y in dst] for x in src])
            si = [src.index(x) for x in a.outp]; di = [dst.index(y) for y in need]
            t = m[np.ix_(si, di)]; s._tab[key] = t
        s.edges.append((u, v, t))
    def total(s, asg):
        return sum(s.nodes[i].cost[x] for i, x in enumerate(asg)) + sum(t[asg[u], asg[v]] for u, v, t in s.edges)
    def memory(s, asg): return sum(s.nodes[i].mem[x] for i, x in enumerate(asg))

def transformer(hw, L, b, s, d, h, f, v):
    P = Problem(hw); el = 2
    B, S, D, H, F, V, E = 'b', 's', 'd', 'h', 'f', 'v', 'e'
    ext = dict(b=b, s=s, d=d, h=h, f=f, v=v, e=d // h, q=3 * d // h)
    X = lambda *n: {k: ext[k] for k in n}
    act = b * s * d * el
    We = P.param("We", (v, d))
    emb = P.op("embed", X('b', 's', 'v', 'd'), ('b', 's', 'd'), [('v', 'd')], bytes_=2 * act)
    P.edge(We, emb, 0)
    cur = emb; fw = []
    for l in range(L):
        p = dict(x=cur)
        p['Wq'] = P.param(f"Wq{l}", (d, h, 3 * d // h), layer=l); p['Wo'] = P.param(f"Wo{l}", (h, d // h, d), layer=l)
        p['W1'] = P.param(f"W1{l}", (d, f), layer=l); p['W2'] = P.param(f"W2{l}", (f, d), layer=l)
        p['ln1'] = P.op("ln1", X('b', 's', 'd'), ('b', 's', 'd'), [('b', 's', 'd')], bytes_=2 * act, layer=l, nosh=('d',)); P.edge(cur, p['ln1'], 0)
        p['qkv'] = P.op("qkv", X('b', 's', 'd', 'h', 'q'), ('b', 's', 'h', 'q'), [('b', 's', 'd'), ('d', 'h', 'q')], flops=6. * b * s * d * d, layer=l, nosh=('q',))
        P.edge(p['ln1'], p['qkv'], 0); P.edge(p['Wq'], p['qkv'], 1)
        p['att'] = P.op("att", X('b', 's', 'h', 'q', 'e'), ('b', 's', 'h', 'e'), [('b', 's', 'h', 'q')], flops=4. * b * s * s * d, layer=l, nosh=('s', 'q', 'e')); P.edge(p['qkv'], p['att'], 0)
        p['prj'] = P.op("prj", X('b', 's', 'h', 'e', 'd'), ('b', 's', 'd'), [('b', 's', 'h', 'e'), ('h', 'e', 'd')], flops=2. * b * s * d * d, layer=l, nosh=('e',))
        P.edge(p['att'], p['prj'], 0); P.edge(p['Wo'], p['prj'], 1)
        p['a1'] = P.op("a1", X('b', 's', 'd'), ('b', 's', 'd'), [('b', 's', 'd')] * 2, bytes_=3 * act, layer=l); P.edge(cur, p['a1'], 0); P.edge(p['prj'], p['a1'], 1)
        p['ln2'] = P.op("ln2", X('b', 's', 'd'), ('b', 's', 'd'), [('b', 's', 'd')], bytes_=2 * act, layer=l, nosh=('d',)); P.edge(p['a1'], p['ln2'], 0)
        p['fc1'] = P.op("fc1", X('b', 's', 'd', 'f'), ('b', 's', 'f'), [('b', 's', 'd'), ('d', 'f')], flops=2. * b * s * d * f, layer=l)
        P.edge(p['ln2'], p['fc1'], 0); P.edge(p['W1'], p['fc1'], 1)
        p['gel'] = P.op("gelu", X('b', 's', 'f'), ('b', 's', 'f'), [('b', 's', 'f')], bytes_=2. * b * s * f * el, layer=l); P.edge(p['fc1'], p['gel'], 0)
        p['fc2'] = P.op("fc2", X('b', 's', 'f', 'd'), ('b', 's', 'd'), [('b', 's', 'f'), ('f', 'd')], flops=2. * b * s * d * f, layer=l)
        P.edge(p['gel'], p['fc2'], 0); P.edge(p['W2'], p['fc2'], 1)
        p['a2'] = P.op("a2", X('b', 's', 'd'), ('b', 's', 'd'), [('b', 's', 'd')] * 2, bytes_=3 * act, layer=l); P.edge(p['a1'], p['a2'], 0); P.edge(p['fc2'], p['a2'], 1)
        cur = p['a2']; fw.append(p)
    Wl = P.param("Wl", (d, v), layer=L)
    lg = P.op("logits", X('b', 's', 'd', 'v'), ('b', 's', 'v'), [('b', 's', 'd'), ('d', 'v')], flops=2. * b * s * d * v, layer=L)
    P.edge(cur, lg, 0); P.edge(Wl, lg, 1)
    dl = P.op("xent_bwd", X('b', 's', 'v'), ('b', 's', 'v'), [('b', 's', 'v')], bytes_=3. * b * s * v * el, layer=L); P.edge(lg, dl, 0)
    g = P.op("dlg_x", X('b', 's', 'v', 'd'), ('b', 's', 'd'), [('b', 's', 'v'), ('d', 'v')], flops=2. * b * s * d * v, layer=L); P.edge(dl, g, 0); P.edge(Wl, g, 1)
    gw = P.op("dlg_w", X('b', 's', 'd', 'v'), ('d', 'v'), [('b', 's', 'd'), ('b', 's', 'v')], flops=2. * b * s * d * v, layer=L)
    P.edge(cur, gw, 0); P.edge(dl, gw, 1); P.edge(gw, Wl, None)
    for l in reversed(range(L)):
        p = fw[l]; o = functools.partial(P.op, layer=l)
        d2x = o("dfc2_x", X('b', 's', 'd', 'f'), ('b', 's', 'f'), [('b', 's', 'd'), ('f', 'd')], flops=2. * b * s * d * f); P.edge(g, d2x, 0); P.edge(p['W2'], d2x, 1)
        d2w = o("dfc2_w", X('b', 's', 'f', 'd'), ('f', 'd'), [('b', 's', 'f'), ('b', 's', 'd')], flops=2. * b * s * d * f); P.edge(p['gel'], d2w, 0); P.edge(g, d2w, 1); P.edge(d2w, p['W2'], None)
        dg = o("dgelu", X('b', 's', 'f'), ('b', 's', 'f'), [('b', 's', 'f')] * 2, bytes_=3. * b * s * f * el); P.edge(d2x, dg, 0); P.edge(p['fc1'], dg, 1)
        d1x = o("dfc1_x", X('b', 's', 'f', 'd'), ('b', 's', 'd'), [('b', 's', 'f'), ('d', 'f')], flops=2. * b * s * d * f); P.edge(dg, d1x, 0); P.edge(p['W1'], d1x, 1)
        d1w = o("dfc1_w", X('b', 's', 'd', 'f'), ('d', 'f'), [('b', 's', 'd'), ('b', 's', 'f')], flops=2. * b * s * d * f); P.edge(p['ln2'], d1w, 0); P.edge(dg, d1w, 1); P.edge(d1w, p['W1'], None)
        dn2 = o("dln2", X('b', 's', 'd'), ('b', 's', 'd'), [('b', 's', 'd')] * 2, bytes_=3 * act, nosh=('d',)); P.edge(d1x, dn2, 0); P.edge(p['a1'], dn2, 1)
        g1 = o("g1", X('b', 's', 'd'), ('b', 's', 'd'), [('b', 's', 'd')] * 2, bytes_=3 * act); P.edge(g, g1, 0); P.edge(dn2, g1, 1)
        dpx = o("dprj_x", X('b', 's', 'd', 'h', 'e'), ('b', 's', 'h', 'e'), [('b', 's', 'd'), ('h', 'e', 'd')], flops=2. * b * s * d * d, nosh=('e',)); P.edge(g1, dpx, 0); P.edge(p['Wo'], dpx, 1)
        dpw = o("dprj_w", X('b', 's', 'h', 'e', 'd'), ('h', 'e', 'd'), [('b', 's', 'h', 'e'), ('b', 's', 'd')], flops=2. * b * s * d * d, nosh=('e',)); P.edge(p['att'], dpw, 0); P.edge(g1, dpw, 1); P.edge(dpw, p['Wo'], None)
        dat = o("datt", X('b', 's', 'h', 'e', 'q'), ('b', 's', 'h', 'q'), [('b', 's', 'h', 'e'), ('b', 's', 'h', 'q')], flops=8. * b * s * s * d, nosh=('s', 'e', 'q')); P.edge(dpx, dat, 0); P.edge(p['qkv'], dat, 1)
        dqx = o("dqkv_x", X('b', 's', 'h', 'q', 'd'), ('b', 's', 'd'), [('b', 's', 'h', 'q'), ('d', 'h', 'q')], flops=6. * b * s * d * d, nosh=('q',)); P.edge(dat, dqx, 0); P.edge(p['Wq'], dqx, 1)
        dqw = o("dqkv_w", X('b', 's', 'd', 'h', 'q'), ('d', 'h', 'q'), [('b', 's', 'd'), ('b', 's', 'h', 'q')], flops=6. * b * s * d * d, nosh=('q',)); P.edge(p['ln1'], dqw, 0); P.edge(dat, dqw, 1); P.edge(dqw, p['Wq'], None)
        dn1 = o("dln1", X('b', 's', 'd'), ('b', 's', 'd'), [('b', 's', 'd')] * 2, bytes_=3 * act, nosh=('d',)); P.edge(dqx, dn1, 0); P.edge(p['x'], dn1, 1)
        g0 = o("g0", X('b', 's', 'd'), ('b', 's', 'd'), [('b', 's', 'd')] * 2, bytes_=3 * act); P.edge(g1, g0, 0); P.edge(dn1, g0, 1)
        g = g0
    de = P.op("dembed", X('b', 's', 'v', 'd'), ('v', 'd'), [('b', 's', 'd')], bytes_=2 * act); P.edge(g, de, 0); P.edge(de, We, None)
    return P
