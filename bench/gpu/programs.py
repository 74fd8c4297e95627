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


# The same for torch and jax: a function of their namespaces, shapes, type.
PEERS = {
    "copy 64 Mi f32": ("lambda n, f, x: x * 1.5", [(2**26,)], "float32"),
    "softmax 8192x8192 f32": ("lambda n, f, x: f.softmax(x, -1)", [(8192, 8192)], "float32"),
    "tanh(x) + y 64 Mi f32": ("lambda n, f, x, y: n.tanh(x) + y", [(2**26,)] * 2, "float32"),
    "matmul 4096^3 f32": ("lambda n, f, x, w: n.matmul(x, w)", [(4096, 4096)] * 2, "float32"),
    "matmul 4096^3 bf16": ("lambda n, f, x, w: n.matmul(x, w)", [(4096, 4096)] * 2, "bfloat16"),
    "relu(x w + b) 4096^3 bf16": ("lambda n, f, x, w, b: f.relu(n.matmul(x, w) + b)", [(4096, 4096)] * 2 + [(4096,)], "bfloat16"),
}
