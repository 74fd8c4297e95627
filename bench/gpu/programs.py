# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The programs that are run on a GPU."""

import math
import re
import subprocess
import sys

TWO_RANKS = """dist.process_mesh @m(shape = [2], dim_names = ["x"])
func.func @main(%a: tensor<64x6xf32> {dist.sharding = #dist.sharding<@m, [partial(sum)]>},
                %b: tensor<8x64xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>})
    -> (tensor<64x6xf32> {dist.name = "sum", dist.sharding = #dist.sharding<@m, [replicate]>},
        tensor<8x64xf32> {dist.name = "turned", dist.sharding = #dist.sharding<@m, [shard(1)]>}) {
  return %a, %b : tensor<64x6xf32>, tensor<8x64xf32>
}"""


def on_devices(text, count):
    """The program with its mesh for another number of devices, the last axes first: [2, 4] for 2 is [1, 2]. Unchanged if it
    has several meshes or none."""
    meshes = re.findall(r"dist\.process_mesh @\w+\(shape = \[([\d, ]+)\]", text)
    if len(meshes) != 1:
        return None
    shape = [int(each) for each in meshes[0].split(",")]
    for axis in range(len(shape)):
        while shape[axis] > 1 and math.prod(shape) > count:
            shape[axis] //= 2
    while math.prod(shape) < count:
        shape[-1] *= 2
    return text.replace(f"shape = [{meshes[0]}]", f"shape = {shape}", 1)


def examples(folder, counts):
    """Names, texts and options of the compiler, for each number of devices."""
    found = []
    for path in sorted(folder.glob("*/*.mlir")):
        text = path.read_text()
        functions = re.findall(r"^func\.func @(\w+)", text, re.M)
        functions = ["train", "accuracy"] if path.parent.name == "digits" else functions[:1]
        found += [(path.stem if len(functions) == 1 else f"{path.stem} {function}", text, ["--function", function])
                  for function in functions]
    gpt = [sys.executable, folder / "gpt" / "gpt.py", *"--layers 1 --d 32 --heads 4 --seq 16 --batch 4 --vocab 64 --mesh 2x4".split()]
    found.append(("gpt", subprocess.run(gpt, capture_output=True, text=True, check=True).stdout, []))
    for name, text, flags in found:
        if on_devices(text, 1) is None:
            yield name, text, flags
            continue
        for count in counts:
            yield f"{name}, {count} devices", on_devices(text, count), flags


def dense(kind, activation, before=""):
    """y = activation(a w + b) of a type; `activation` are lines that make %y of %s, `before` one that makes %in of %a."""
    is_float = "f" in kind
    zero, add, values = ("dense<0.0>", "addf", "") if is_float else ("dense<0>", "addi", " {dist.range = [-9, 9]}")
    a, w, b, y = (f"tensor<{shape}x{kind}>" for shape in ("40x33", "33x24", "24", "40x24"))
    return f"""func.func @main(%a: {a}{values}, %w: {w}{values}, %b: {b}{values}) -> ({y} {{dist.name = "y"}}) {{
  %zeros = arith.constant {zero} : {y}
  %e = tensor.empty() : {y}
{before}
  %p = linalg.matmul ins({"%in" if before else "%a"}, %w : {a}, {w}) outs(%zeros : {y}) -> {y}
  %wide = linalg.broadcast ins(%b : {b}) outs(%e : {y}) dimensions = [0]
  %s = arith.{add} %p, %wide : {y}
{activation.replace("TYPE", y)}
  return %y : {y}
}}"""


GELU = """  %half = arith.constant dense<0.5> : TYPE
  %one = arith.constant dense<1.0> : TYPE
  %c = arith.constant dense<0.044715> : TYPE
  %k = arith.constant dense<0.797884583> : TYPE
  %s2 = arith.mulf %s, %s : TYPE
  %s3 = arith.mulf %s2, %s : TYPE
  %cs3 = arith.mulf %s3, %c : TYPE
  %in0 = arith.addf %s, %cs3 : TYPE
  %in1 = arith.mulf %in0, %k : TYPE
  %t = math.tanh %in1 : TYPE
  %t1 = arith.addf %t, %one : TYPE
  %hs = arith.mulf %s, %half : TYPE
  %y = arith.mulf %hs, %t1 : TYPE"""
RELU = "  %y = arith.maximumf %s, %zeros : TYPE"


def extras():
    """Cases that the examples lack: products with epilogues, of all types, of NaN."""
    for kind in ("f32", "f16", "bf16"):
        yield f"bias and relu, {kind}", dense(kind, RELU), []
        yield f"bias and gelu, {kind}", dense(kind, GELU), []
    # Logarithms of negative numbers: whole rows are NaN, which a relu propagates.
    yield "relu of NaN, f32", dense("f32", RELU, "  %in = math.log %a : tensor<40x33xf32>"), []
    yield "bias, f64", dense("f64", "  %y = arith.addf %s, %zeros : TYPE"), []
    for kind in ("i64", "i32", "i16", "i8"):
        yield f"product of {kind}", dense(kind, "  %y = arith.addi %s, %zeros : TYPE"), []


def convolutions():
    """A convolution with the layouts of images and weights that frameworks have, of few and more channels."""
    forms = {"nhwc_hwcf": ("nhwc", "hwcf"), "nhwc_fhwc": ("nhwc", "fhwc"), "nchw_fchw": ("nchw", "fchw")}
    for kind in ("f32", "bf16"):
        for c, f, size, taps in ((3, 16, 34, 3), (16, 32, 18, 3), (64, 64, 16, 3), (64, 32, 9, 1)):
            for form, (images, weights) in forms.items():
                extents = {"n": 4, "c": c, "f": f, "h": size, "w": size}
                x = "x".join(str(extents[each]) for each in images)
                w = "x".join(str({**extents, "h": taps, "w": taps}[each]) for each in weights)
                out = {**extents, "c": f, "h": size - taps + 1, "w": size - taps + 1}
                y = f"tensor<{'x'.join(str(out[each]) for each in images)}x{kind}>"
                yield f"convolution {form} of {c} to {f} channels, {taps}x{taps} {kind}", f"""func.func @main(%x: tensor<{x}x{kind}>, %w: tensor<{w}x{kind}>) -> {y} {{
  %zero = arith.constant 0.0 : {kind}
  %e = tensor.empty() : {y}
  %z = linalg.fill ins(%zero : {kind}) outs(%e : {y}) -> {y}
  %y = linalg.conv_2d_{form} ins(%x, %w : tensor<{x}x{kind}>, tensor<{w}x{kind}>) outs(%z : {y}) -> {y}
  return %y : {y}
}}""", []


def benchmarks(small=False):
    """Name, work of a step, its unit, text; `small`: for a rehearsal."""
    n, rows, m = (2**14, 64, 64) if small else (2**26, 8192, 4096)
    flat, square, matrix = f"tensor<{n}xf32>", f"tensor<{rows}x{rows}xf32>", f"tensor<{m}x{m}x"
    yield "copy 64 Mi f32", 2 * 4 * n, "bytes", f"""func.func @main(%x: {flat}) -> {flat} {{
  %c = arith.constant dense<1.5> : {flat}
  %y = arith.mulf %x, %c : {flat}
  return %y : {flat}
}}"""
    yield "softmax 8192x8192 f32", 2 * 4 * rows * rows, "bytes", f"""func.func @main(%x: {square}) -> {square} {{
  %e = tensor.empty() : {square}
  %y = linalg.softmax dimension(1) ins(%x : {square}) outs(%e : {square}) -> {square}
  return %y : {square}
}}"""
    yield "tanh(x) + y 64 Mi f32", 3 * 4 * n, "bytes", f"""func.func @main(%x: {flat}, %y: {flat}) -> {flat} {{
  %t = math.tanh %x : {flat}
  %r = arith.addf %t, %y : {flat}
  return %r : {flat}
}}"""
    for kind in ("f32", "bf16"):
        t = f"{matrix}{kind}>"
        yield f"matmul 4096^3 {kind}", 2 * m**3, "flops", f"""func.func @main(%x: {t}, %w: {t}) -> {t} {{
  %zero = arith.constant dense<0.0> : {t}
  %y = linalg.matmul ins(%x, %w : {t}, {t}) outs(%zero : {t}) -> {t}
  return %y : {t}
}}"""
    t, v = f"{matrix}bf16>", f"tensor<{m}xbf16>"
    yield "relu(x w + b) 4096^3 bf16", 2 * m**3, "flops", f"""func.func @main(%x: {t}, %w: {t}, %b: {v}) -> {t} {{
  %zero = arith.constant dense<0.0> : {t}
  %e = tensor.empty() : {t}
  %p = linalg.matmul ins(%x, %w : {t}, {t}) outs(%zero : {t}) -> {t}
  %wide = linalg.broadcast ins(%b : {v}) outs(%e : {t}) dimensions = [0]
  %s = arith.addf %p, %wide : {t}
  %y = arith.maximumf %s, %zero : {t}
  return %y : {t}
}}"""
    yield from large(small)


LARGE = 2**31 + 2**20  # elements: indices of 64 bits


def large(small=False):
    """Name, work, unit, text: programs of more than 2^31 elements, of bf16, so that they fit 80 GB."""
    columns = 64 if small else 32768
    rows = (2**14 if small else LARGE) // columns
    big = f"tensor<{rows}x{columns}xbf16>"
    yield "outer product of 2^31 + 2^20 bf16", 2 * rows * columns, "bytes", f"""#row = affine_map<(i, j) -> (i)>
#column = affine_map<(i, j) -> (j)>
#all = affine_map<(i, j) -> (i, j)>
func.func @main(%x: tensor<{rows}xbf16>, %y: tensor<{columns}xbf16>) -> {big} {{
  %e = tensor.empty() : {big}
  %r = linalg.generic {{indexing_maps = [#row, #column, #all], iterator_types = ["parallel", "parallel"]}}
      ins(%x, %y : tensor<{rows}xbf16>, tensor<{columns}xbf16>) outs(%e : {big}) {{
  ^bb0(%a: bf16, %b: bf16, %c: bf16):
    %p = arith.mulf %a, %b : bf16
    linalg.yield %p : bf16
  }} -> {big}
  return %r : {big}
}}"""
    words, ids = (2**8 if small else LARGE // 64), 64 if small else 2**20
    yield "look-up in 2^31 + 2^20 bf16", 2 * 2 * ids * 64, "bytes", f"""#all = affine_map<(i, j) -> (i, j)>
#id = affine_map<(i, j) -> (i)>
func.func @main(%t: tensor<{words}x64xbf16>, %ids: tensor<{ids}xi32> {{dist.range = [0, {words - 1}]}}) -> tensor<{ids}x64xbf16> {{
  %e = tensor.empty() : tensor<{ids}x64xbf16>
  %y = linalg.generic {{indexing_maps = [#id, #all], iterator_types = ["parallel", "parallel"]}}
      ins(%ids : tensor<{ids}xi32>) outs(%e : tensor<{ids}x64xbf16>) {{
  ^bb0(%id: i32, %out: bf16):
    %row = arith.index_cast %id : i32 to index
    %j = linalg.index 1 : index
    %v = tensor.extract %t[%row, %j] : tensor<{words}x64xbf16>
    linalg.yield %v : bf16
  }} -> tensor<{ids}x64xbf16>
  return %y : tensor<{ids}x64xbf16>
}}"""


def attentions(small=False):
    """Name, flops and text of causal forward attention, bf16: with products of warpgroups and without."""
    for name, b, h, r, s, e in (("GPT-2", 8, 12, 1, 1024, 64), ("Llama", 4, 4, 4, 2048, 128)):
        b, s = (1, 150) if small else (b, s)
        q, k = f"tensor<{b}x{h}x{r}x{s}x{e}xbf16>", f"tensor<{b}x{h}x{s}x{e}xbf16>"
        yield f"causal attention of {name} bf16", 2 * b * h * r * s * s * e, f"""#q = affine_map<(b, h, r, m, n, f, g) -> (b, h, r, m, f)>
#k = affine_map<(b, h, r, m, n, f, g) -> (b, h, n, f)>
#v = affine_map<(b, h, r, m, n, f, g) -> (b, h, n, g)>
#o = affine_map<(b, h, r, m, n, f, g) -> (b, h, r, m, g)>
func.func @main(%q: {q}, %k: {k}, %v: {k}) -> {q} {{
  %scale = arith.constant {e ** -0.5} : f32
  %none = arith.constant 0xFF800000 : f32
  %y = ext.attention indexing_maps = [#q, #k, #v, #o] ins(%q, %k, %v : {q}, {k}, {k}) {{
  ^bb0(%score: f32, %b: index, %h: index, %r: index, %m: index, %n: index, %f: index, %g: index):
    %s = arith.mulf %score, %scale : f32
    %sees = arith.cmpi sge, %m, %n : index
    %masked = arith.select %sees, %s, %none : f32
    ext.yield %masked : f32
  }} -> {q}
  return %y : {q}
}}"""


def sanitized():
    """Names and texts of programs with every kind of kernel, small enough for compute-sanitizer."""
    yield "attention", """#q = affine_map<(b, m, n, f, g) -> (b, m, f)>
#k = affine_map<(b, m, n, f, g) -> (b, n, f)>
#v = affine_map<(b, m, n, f, g) -> (b, n, g)>
#o = affine_map<(b, m, n, f, g) -> (b, m, g)>
func.func @main(%q: tensor<4x80x64xbf16>, %k: tensor<4x80x64xbf16>, %v: tensor<4x80x64xbf16>) -> tensor<4x80x64xbf16> {
  %scale = arith.constant 0.125 : f32
  %y = ext.attention indexing_maps = [#q, #k, #v, #o] ins(%q, %k, %v : tensor<4x80x64xbf16>, tensor<4x80x64xbf16>, tensor<4x80x64xbf16>) {
  ^bb0(%score: f32, %b: index, %m: index, %n: index, %f: index, %g: index):
    %s = arith.mulf %score, %scale : f32
    ext.yield %s : f32
  } -> tensor<4x80x64xbf16>
  return %y : tensor<4x80x64xbf16>
}"""
    for kind in ("f32", "bf16"):
        x, w, y = f"tensor<2x18x18x32x{kind}>", f"tensor<3x3x32x48x{kind}>", f"tensor<2x16x16x48x{kind}>"
        yield f"convolution {kind}", f"""func.func @main(%x: {x}, %w: {w}) -> {y} {{
  %zero = arith.constant dense<0.0> : {y}
  %y = linalg.conv_2d_nhwc_hwcf ins(%x, %w : {x}, {w}) outs(%zero : {y}) -> {y}
  return %y : {y}
}}"""
    yield "long rows", """func.func @main(%x: tensor<40x70001xf32>) -> tensor<40x70001xf32> {
  %e = tensor.empty() : tensor<40x70001xf32>
  %y = linalg.softmax dimension(1) ins(%x : tensor<40x70001xf32>) outs(%e : tensor<40x70001xf32>) -> tensor<40x70001xf32>
  return %y : tensor<40x70001xf32>
}"""
    yield "transpose", """func.func @main(%x: tensor<130x258xf32>) -> tensor<258x130xf32> {
  %e = tensor.empty() : tensor<258x130xf32>
  %y = linalg.transpose ins(%x : tensor<130x258xf32>) outs(%e : tensor<258x130xf32>) permutation = [1, 0]
  return %y : tensor<258x130xf32>
}"""
    yield "scatter", """#ids = affine_map<(v, j, n) -> (n)>
#updates = affine_map<(v, j, n) -> (n, j)>
#table = affine_map<(v, j, n) -> (v, j)>
func.func @main(%ids: tensor<500xi32> {dist.range = [0, 63]}, %u: tensor<500x40xf32>) -> tensor<64x40xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x40xf32>
  %fill = linalg.fill ins(%zero : f32) outs(%e : tensor<64x40xf32>) -> tensor<64x40xf32>
  %y = linalg.generic {indexing_maps = [#ids, #updates, #table], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%ids, %u : tensor<500xi32>, tensor<500x40xf32>) outs(%fill : tensor<64x40xf32>) {
  ^bb0(%at: i32, %value: f32, %sum: f32):
    %v = linalg.index 0 : index
    %row = arith.index_cast %v : index to i32
    %hit = arith.cmpi eq, %at, %row : i32
    %term = arith.select %hit, %value, %zero : f32
    %next = arith.addf %sum, %term : f32
    linalg.yield %next : f32
  } -> tensor<64x40xf32>
  return %y : tensor<64x40xf32>
}"""


# The same for torch and jax: a function of their namespaces, shapes, type. A shape with a bound is one of indices.
PEERS = {
    "outer product of 2^31 + 2^20 bf16": ("lambda n, f, x, y: x[:, None] * y[None]", [(LARGE // 32768,), (32768,)], "bfloat16"),
    "look-up in 2^31 + 2^20 bf16": ("lambda n, f, t, i: t[i]", [(LARGE // 64, 64), ((2**20,), LARGE // 64)], "bfloat16"),
    "sort 4 Mi f32": ("lambda n, f, x: n.sort(x, -1)", [(2**22,)], "float32"),
    "first 8 of 64x50257 f32": ("lambda n, f, x: n.topk(x, 8) if hasattr(n, 'topk') else __import__('jax').lax.top_k(x, 8)", [(64, 50257)],
                                "float32"),
    "cumulative sum 8192x8192 f32": ("lambda n, f, x: n.cumsum(x, -1)", [(8192, 8192)], "float32"),
    "sums of columns 8192x8192 f32": ("lambda n, f, x: x.sum(0)", [(8192, 8192)], "float32"),
    "transpose + 1 8192x8192 f32": ("lambda n, f, x: x.T + 1", [(8192, 8192)], "float32"),
    "copy 64 Mi f32": ("lambda n, f, x: x * 1.5", [(2**26,)], "float32"),
    "softmax 8192x8192 f32": ("lambda n, f, x: f.softmax(x, -1)", [(8192, 8192)], "float32"),
    "tanh(x) + y 64 Mi f32": ("lambda n, f, x, y: n.tanh(x) + y", [(2**26,)] * 2, "float32"),
    "matmul 4096^3 f32": ("lambda n, f, x, w: n.matmul(x, w)", [(4096, 4096)] * 2, "float32"),
    "matmul 4096^3 bf16": ("lambda n, f, x, w: n.matmul(x, w)", [(4096, 4096)] * 2, "bfloat16"),
    "relu(x w + b) 4096^3 bf16": ("lambda n, f, x, w, b: f.relu(n.matmul(x, w) + b)", [(4096, 4096)] * 2 + [(4096,)], "bfloat16"),
}
