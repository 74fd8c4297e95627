#!/usr/bin/env python3
"""Writes a GPT, forward, as a program for `tessera`: pre-norm blocks of causal attention and a tanh-GELU perceptron.

    gpt.py --layers 12 --d 512 --heads 8 --seq 128 --batch 8 --vocab 8192 --mesh 2x4 > gpt.mlir

Only the batch and the weights are annotated, as in Megatron-LM: tokens over "dp"; wq, wk, wv, w1 (and the output matrix)
on their columns over "tp", wo and w2 on their rows. The best plan has two all-reduces over tp per layer, each of the
[batch / dp, seq, d] activation: after the attention's projection and after the perceptron. The embedding adds
  gather    nothing: the table is whole on every device
  onehot    one more of the same size: the table is cut over its vocabulary, the lookup is a product with one-hot rows
  none      nothing: the input is the activation itself, there is no output matrix
and the logits stay cut over the vocabulary.

Blocks are calls of one function; --inline writes them out instead. --mesh 1 writes the program for one device.
"""

import argparse
import math
import sys


class Writer:
    """The body of a function: ops in order, each with a fresh name."""

    def __init__(self, args, prefix=""):
        self.a, self.prefix, self.lines, self.count = args, prefix, [], 0

    def emit(self, text, stem="v"):
        """Appends `%name = text` and returns the name."""
        name = f"%{self.prefix}{stem}{self.count}"
        self.count += 1
        self.lines.append(f"  {name} = {text}")
        return name

    def zeros(self, shape, value="%zero"):
        empty = self.emit(f"tensor.empty() : {f32(shape)}", "like")
        return self.emit(f"linalg.fill ins({value} : f32) outs({empty} : {f32(shape)}) -> {f32(shape)}", "init")

    def contract(self, spec, lhs, lhs_shape, rhs, rhs_shape, shape, stem):
        """A product by an einsum such as "bsd,dn->bsn"."""
        inputs, out = spec.split("->")
        left, right = inputs.split(",")
        loops = ", ".join(dict.fromkeys(left + right))
        maps = ", ".join(f"affine_map<({loops}) -> ({', '.join(dims)})>" for dims in (left, right, out))
        init = self.zeros(shape)
        return self.emit(f"linalg.contract indexing_maps = [{maps}]\n      ins({lhs}, {rhs} : {f32(lhs_shape)}, {f32(rhs_shape)}) "
                         f"outs({init} : {f32(shape)}) -> {f32(shape)}", stem)

    def generic(self, loops, operands, init, shape, body, stem, reductions="", element="f32"):
        """A generic over `loops`; operands are (value, type, dims), `body` yields %r from %0, %1, … and the init %o."""
        maps = [f"affine_map<({', '.join(loops)}) -> ({', '.join(dims)})>" for _, _, dims in operands]
        out = "".join(loop for loop in loops if loop not in reductions)
        maps.append(f"affine_map<({', '.join(loops)}) -> ({', '.join(out)})>")
        kinds = ", ".join('"reduction"' if loop in reductions else '"parallel"' for loop in loops)
        block = ", ".join([f"%a{i}: {type.rstrip('>').split('x')[-1]}" for i, (_, type, _) in enumerate(operands)] + [f"%o: {element}"])
        ins = ", ".join(value for value, _, _ in operands) + " : " + ", ".join(type for _, type, _ in operands)
        text = "\n".join("    " + line.strip() for line in body.strip().splitlines())
        return self.emit(f"linalg.generic {{indexing_maps = [{', '.join(maps)}], iterator_types = [{kinds}]}}\n"
                         f"      ins({ins}) outs({init} : {f32(shape)}) {{\n  ^bb0({block}):\n{text}\n    linalg.yield %r : {element}\n"
                         f"  }} -> {f32(shape)}", stem)

    def pointwise(self, loops, operands, shape, body, stem):
        empty = self.emit(f"tensor.empty() : {f32(shape)}", "like")
        return self.generic(loops, operands, empty, shape, body, stem)

    # The pieces of a block. Activations are [batch, seq, d].

    def layernorm(self, x, gain, bias, stem):
        a = self.a
        shape, rows, columns = (a.batch, a.seq, a.d), (a.batch, a.seq), (a.d,)
        total = self.generic("bsd", [(x, f32(shape), "bsd")], self.zeros(rows), rows, "%r = arith.addf %o, %a0 : f32", "sum", "d")
        mean = self.pointwise("bs", [(total, f32(rows), "bs")], rows, "%r = arith.mulf %a0, %inv_d : f32", "mean")
        squares = self.generic("bsd", [(x, f32(shape), "bsd"), (mean, f32(rows), "bs")], self.zeros(rows), rows, """
            %c = arith.subf %a0, %a1 : f32
            %q = arith.mulf %c, %c : f32
            %r = arith.addf %o, %q : f32""", "squares", "d")
        return self.pointwise("bsd", [(x, f32(shape), "bsd"), (mean, f32(rows), "bs"), (squares, f32(rows), "bs"),
                                      (gain, f32(columns), "d"), (bias, f32(columns), "d")], shape, """
            %c = arith.subf %a0, %a1 : f32
            %v = arith.mulf %a2, %inv_d : f32
            %e = arith.addf %v, %eps : f32
            %i = math.rsqrt %e : f32
            %n = arith.mulf %c, %i : f32
            %g = arith.mulf %n, %a3 : f32
            %r = arith.addf %g, %a4 : f32""", stem)

    def attention(self, h, p):
        a = self.a
        e = a.d // a.heads
        flat, split, scores = (a.batch, a.seq, a.d), (a.batch, a.seq, a.heads, e), (a.batch, a.heads, a.seq, a.seq)
        heads = []
        for name in "qkv":
            y = self.contract("bsd,dn->bsn", h, flat, p["w" + name], (a.d, a.d), flat, name)
            heads.append(self.emit(f"tensor.expand_shape {y} [[0], [1], [2, 3]] output_shape [{a.batch}, {a.seq}, {a.heads}, {e}] : "
                                   f"{f32(flat)} into {f32(split)}", name + "h"))
        q, k, v = heads
        s = self.contract("bqhe,bkhe->bhqk", q, split, k, split, scores, "scores")
        m = self.pointwise("bhqk", [(s, f32(scores), "bhqk")], scores, """
            %i = linalg.index 2 : index
            %j = linalg.index 3 : index
            %seen = arith.cmpi ule, %j, %i : index
            %t = arith.mulf %a0, %scale : f32
            %r = arith.select %seen, %t, %masked : f32""", "masked")
        empty = self.emit(f"tensor.empty() : {f32(scores)}", "like")
        w = self.emit(f"linalg.softmax dimension(3) ins({m} : {f32(scores)}) outs({empty} : {f32(scores)}) -> {f32(scores)}", "p")
        o = self.contract("bhqk,bkhe->bqhe", w, scores, v, split, split, "o")
        o = self.emit(f"tensor.collapse_shape {o} [[0], [1], [2, 3]] : {f32(split)} into {f32(flat)}", "of")
        return self.contract("bsd,dn->bsn", o, flat, p["wo"], (a.d, a.d), flat, "proj")

    def residual(self, x, y, bias, stem):
        shape = (self.a.batch, self.a.seq, self.a.d)
        return self.pointwise("bsd", [(x, f32(shape), "bsd"), (y, f32(shape), "bsd"), (bias, f32((self.a.d,)), "d")], shape, """
            %s = arith.addf %a0, %a1 : f32
            %r = arith.addf %s, %a2 : f32""", stem)

    def layer(self, x, p):
        a = self.a
        shape, wide = (a.batch, a.seq, a.d), (a.batch, a.seq, a.ffn)
        h = self.layernorm(x, p["ln1_g"], p["ln1_b"], "ln1_")
        x = self.residual(x, self.attention(h, p), p["bo"], "x")
        h = self.layernorm(x, p["ln2_g"], p["ln2_b"], "ln2_")
        y = self.contract("bsd,dn->bsn", h, shape, p["w1"], (a.d, a.ffn), wide, "up")
        y = self.pointwise("bsn", [(y, f32(wide), "bsn"), (p["b1"], f32((a.ffn,)), "n")], wide, """
            %z = arith.addf %a0, %a1 : f32
            %z2 = arith.mulf %z, %z : f32
            %z3 = arith.mulf %z2, %z : f32
            %c = arith.mulf %z3, %cubic : f32
            %s = arith.addf %z, %c : f32
            %t = arith.mulf %s, %root : f32
            %h = math.tanh %t : f32
            %u = arith.addf %h, %one : f32
            %v = arith.mulf %z, %half : f32
            %r = arith.mulf %v, %u : f32""", "gelu")
        y = self.contract("bsn,nd->bsd", y, wide, p["w2"], (a.ffn, a.d), shape, "down")
        return self.residual(x, y, p["b2"], "x")

    def embed(self, tokens, table, position):
        a = self.a
        shape, ids = (a.batch, a.seq, a.d), f"tensor<{a.batch}x{a.seq}xi32>"
        if a.embedding == "gather":
            x = self.pointwise("bsd", [(tokens, ids, "bs")], shape, f"""
                %i = arith.index_cast %a0 : i32 to index
                %j = linalg.index 2 : index
                %r = tensor.extract {table}[%i, %j] : {f32((a.vocab, a.d))}""", "x")
        else:
            rows = (a.batch, a.seq, a.vocab)
            one = self.pointwise("bsv", [(tokens, ids, "bs")], rows, """
                %i = linalg.index 2 : index
                %j = arith.index_cast %a0 : i32 to index
                %hit = arith.cmpi eq, %i, %j : index
                %r = arith.select %hit, %one, %zero : f32""", "onehot")
            x = self.contract("bsv,vd->bsd", one, rows, table, (a.vocab, a.d), shape, "x")
        return self.pointwise("bsd", [(x, f32(shape), "bsd"), (position, f32((a.seq, a.d)), "sd")], shape,
                              "%r = arith.addf %a0, %a1 : f32", "x")

    def constants(self):
        a = self.a
        for name, value in dict(zero=0, one=1, half=0.5, eps=1e-5, inv_d=1 / a.d, scale=(a.d // a.heads) ** -0.5, masked=-1e9,
                                cubic=0.044715, root=math.sqrt(2 / math.pi)).items():
            self.lines.append(f"  %{name} = arith.constant {value:.9e} : f32")


def f32(shape):
    return f"tensor<{''.join(f'{extent}x' for extent in shape)}f32>"


def parameters(a):
    """The parameters of a block: name -> (shape, dimension cut over "tp" or None)."""
    d, n = a.d, a.ffn
    return dict(ln1_g=((d,), None), ln1_b=((d,), None), wq=((d, d), 1), wk=((d, d), 1), wv=((d, d), 1), wo=((d, d), 0),
                bo=((d,), None), ln2_g=((d,), None), ln2_b=((d,), None), w1=((d, n), 1), b1=((n,), None), w2=((n, d), 0),
                b2=((d,), None))


def program(a):
    dp, tp = a.mesh
    sharded = dp * tp > 1

    def argument(value, type, name, batch=False, cut=None, extra=""):
        attributes = f'dist.name = "{name}"{extra}'
        if sharded and batch:
            attributes += ", dist.sharding = #dist.sharding<@pod, [shard(0), replicate]>"
        elif sharded and cut is not None:
            attributes += f", dist.sharding = #dist.sharding<@pod, [replicate, shard({cut})]>"
        return f"{value}: {type} {{{attributes}}}"

    out = [f"// Written by gpt.py: {a.layers} layers, d {a.d}, {a.heads} heads, seq {a.seq}, batch {a.batch}, mesh {dp}x{tp}."]
    if sharded:
        out.append(f'dist.process_mesh @pod(shape = [{dp}, {tp}], dim_names = ["dp", "tp"])')
    out.append("")

    x_type = f32((a.batch, a.seq, a.d))
    names = parameters(a)
    if not a.inline:
        w = Writer(a)
        w.constants()
        result = w.layer("%x", {name: f"%{name}" for name in names})
        out.append("func.func private @layer(%x: " + x_type + "".join(f",\n    %{n}: {f32(s)}" for n, (s, _) in names.items())
                   + f") -> {x_type} {{")
        out += w.lines + [f"  return {result} : {x_type}", "}", ""]

    main = Writer(a)
    main.constants()
    if a.embedding == "none":
        arguments = [argument("%x", x_type, "x", batch=True)]
        x = "%x"
    else:
        arguments = [argument("%tokens", f"tensor<{a.batch}x{a.seq}xi32>", "tokens", batch=True, extra=f", dist.range = [0, {a.vocab}]"),
                     argument("%table", f32((a.vocab, a.d)), "table", cut=0 if a.embedding == "onehot" else None),
                     argument("%position", f32((a.seq, a.d)), "position")]
        x = main.embed("%tokens", "%table", "%position")
    for i in range(a.layers):
        p = {name: f"%l{i}_{name}" for name in names}
        arguments += [argument(p[n], f32(shape), f"layer{i}.{n}", cut=cut) for n, (shape, cut) in names.items()]
        if a.inline:
            block = Writer(a, f"l{i}_")
            x = block.layer(x, p)
            main.lines += [f"  // Layer {i}."] + block.lines
        else:
            types = ", ".join([x_type] + [f32(shape) for shape, _ in names.values()])
            x = main.emit(f"func.call @layer({', '.join([x, *p.values()])}) : ({types}) -> {x_type}", "x")
    result = x_type
    if a.embedding != "none":
        arguments += [argument("%lnf_g", f32((a.d,)), "lnf_g"), argument("%lnf_b", f32((a.d,)), "lnf_b"),
                      argument("%out", f32((a.d, a.vocab)), "out", cut=1)]
        x = main.layernorm(x, "%lnf_g", "%lnf_b", "lnf")
        result = f32((a.batch, a.seq, a.vocab))
        x = main.contract("bsd,dv->bsv", x, (a.batch, a.seq, a.d), "%out", (a.d, a.vocab), (a.batch, a.seq, a.vocab), "logits")
    out.append("func.func @main(" + ",\n    ".join(arguments) + f')\n    -> ({result} {{dist.name = "{"y" if a.embedding == "none" else "logits"}"}}) {{')
    out += main.lines + [f"  return {x} : {result}", "}"]
    return "\n".join(out) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, value, text in (("layers", 12, "blocks"), ("d", 512, "width"), ("heads", 8, "heads; they divide the width"),
                              ("seq", 128, "tokens of a sequence"), ("batch", 8, "sequences"), ("vocab", 8192, "tokens known"),
                              ("ffn", 0, "width of the perceptron (default 4 d)")):
        parser.add_argument(f"--{name}", type=int, default=value, metavar="N", help=text + (f" (default {value})" if value else ""))
    parser.add_argument("--mesh", default="2x4", metavar="DPxTP", help="devices by data and tensor parallelism (default 2x4), 1 for one device")
    parser.add_argument("--embedding", choices=["gather", "onehot", "none"], default="gather", help="how tokens become vectors (default gather)")
    parser.add_argument("--inline", action="store_true", help="write every block out instead of calling one function")
    a = parser.parse_args()
    a.ffn = a.ffn or 4 * a.d
    try:
        a.mesh = (1, 1) if a.mesh == "1" else tuple(int(n) for n in a.mesh.split("x"))
        assert len(a.mesh) == 2 and min(a.mesh) > 0
    except (ValueError, AssertionError):
        parser.error(f"argument --mesh: '{a.mesh}' is not DPxTP, such as 2x4")
    if min(a.d, a.heads, a.seq, a.batch, a.vocab, a.ffn) < 1 or a.layers < 0:
        parser.error("sizes are positive")
    if a.d % a.heads:
        parser.error(f"argument --heads: {a.heads} does not divide the width {a.d}")
    sys.stdout.write(program(a))


if __name__ == "__main__":
    main()
