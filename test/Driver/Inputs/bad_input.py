# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Invalid inputs to every tool: one message that names the error, exit code 1, no output file.

bad_input.py FOLDER: FOLDER is emptied and used for files. Prints failures; exit code 1.
"""

import os
import shutil
import struct
import subprocess
import sys

GOOD = """dist.process_mesh @m(shape = [2, 2], dim_names = ["x", "y"])
func.func @main(%a: tensor<4x6xf32> {dist.name = "a", dist.sharding = #dist.sharding<@m, [shard(0), replicate]>})
    -> (tensor<4x6xf32> {dist.name = "b"}) {
  %0 = arith.addf %a, %a : tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}
"""
SHARDED = """dist.process_mesh @m(shape = [2, 2], dim_names = ["x", "y"])
func.func @main(%p: tensor<i32>, %a: tensor<4x6xf32> {dist.sharding = SHARDING}) -> tensor<4x6xf32> {
  return %a : tensor<4x6xf32>
}
"""
BODY = """func.func @main(%a: tensor<4x6xf32>) -> tensor<4x6xf32> {
  BODY
  return %a : tensor<4x6xf32>
}
"""

failures = []


def run(command):
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=60)
    return done.returncode, done.stdout + done.stderr


def refuses(what, command, *expected, output=None):
    """The command must end with 1 after one error that contains all of `expected`."""
    code, text = run(command)
    errors = [line for line in text.splitlines() if "error" in line.lower()]
    problem = None
    if code != 1:
        problem = f"exit code {code}"
    elif len(errors) != 1:
        problem = f"{len(errors)} errors"
    elif not all(part in errors[0] for part in expected):
        problem = f"the error lacks {[part for part in expected if part not in errors[0]]}"
    elif "Stack dump" in text or "see current operation" in text:
        problem = "a dump"
    elif output and [name for name in os.listdir(".") if name.startswith(output)]:
        problem = f"{output} was left"
    if problem:
        failures.append(what)
        print(f"{what}: {problem}\n  {' '.join(command)}\n  {text.strip()[:600]}")


def write(name, text):
    with open(name, "w" if isinstance(text, str) else "wb") as file:
        file.write(text)
    return name


def npy(shape, dtype="<f4", data=None, extra=""):
    header = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}{extra}, }}"
    header += " " * (63 - (len(header) + 10) % 64) + "\n"
    count = 1
    for extent in shape:
        count *= extent
    body = data if data is not None else bytes(count * int(dtype[2:]))
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + body


def everywhere(what, text, *expected, opt=True, pipeline=True):
    """A program that explain, compile, run and tessera-opt must reject with the same message; `opt=False`: tessera-opt
    has another message, `pipeline=False`: tessera-opt must reject it only after the phases."""
    file = write(what.replace(" ", "-").replace("/", "-") + ".mlir", text)
    refuses(f"explain {what}", ["tessera", "explain", file], file, *expected)
    refuses(f"run {what}", ["tessera", "run", file, "--json", "o.json", "--output", "b=o.npy"], file,
            *expected, output="o.")
    refuses(f"compile {what}", ["tessera", "compile", file, "-o", "o.tsra"], file, *expected,
            output="o.")
    if not opt:
        expected = []
    refuses(f"opt {what}", ["tessera-opt", file, "--tessera-pipeline", *([] if pipeline else ["--codegen"]), "-o", "o.mlir"], file,
            *expected, output="o.")


def programs():
    everywhere("no IR", "this is not IR\n", ":1:")
    everywhere("cut IR", GOOD[: len(GOOD) // 2], ": error: ")
    everywhere("wrong type", GOOD.replace("%a, %a : tensor<4x6xf32>", "%a, %a : tensor<4x7xf32>"), ":4:")
    # tessera-opt has MLIR's own message, which does not name the op.
    everywhere("unregistered op", BODY.replace("BODY", '"my.op"(%a) : (tensor<4x6xf32>) -> ()'), ":2:", "'my.op'",
               opt=False)
    everywhere("unknown dialect", BODY.replace("BODY", "%0 = gpu.thread_id x"), ":2:")
    everywhere("side effect", BODY.replace("BODY", "func.call @f() : () -> ()") + "func.func private @f()\n", ":5:", "'f'")
    everywhere("memref", "func.func @main(%a: memref<4xf32>) { return }", "memref<4xf32>")
    everywhere("dynamic argument", "func.func @main(%a: tensor<4x?xf32>) { return }", "dimension 1 is dynamic")
    everywhere("dynamic value", """func.func @main(%a: tensor<4xf32>, %n: index) {
  %0 = tensor.extract_slice %a[0] [%n] [1] : tensor<4xf32> to tensor<?xf32>
  return
}""", ":2:", "dimension 0 is dynamic")
    everywhere("unranked", "func.func @main(%a: tensor<*xf32>) { return }", "tensor<*xf32>")
    everywhere("recursion", """func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = func.call @main(%a) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}""", ":1:", "'main' calls itself")
    everywhere("branches", """func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  cf.br ^next
^next:
  return %a : tensor<4xf32>
}""")
    for bracket in "([{<":
        everywhere(f"nest {ord(bracket)}", "func.func @main() { " + bracket * 100000, "brackets nest deeper than 1000")
    everywhere("nested loops", "func.func @main() { %c = arith.constant 1 : index " +
               "scf.for %i = %c to %c step %c {\n" * 1500 + "}" * 1500 + " return }", "nest deeper than 1000")
    everywhere("unsigned", "func.func @main(%a: tensor<4xui8>) { return }", ":1:", "tensor<4xui8>")
    everywhere("scalar argument", "func.func @main(%a: index) { return }", ":1:", "index", pipeline=False)
    everywhere("op without a step", """func.func @main(%a: tensor<8xf32>, %b: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %0 = linalg.pack %a inner_dims_pos = [0] inner_tiles = [4] into %b : tensor<8xf32> -> tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}""", ":2:", "'linalg.pack'", opt=False, pipeline=False)
    everywhere("too large", "func.func @main(%a: tensor<1048576x1048576x1048576xf32>) { return }", ":1:", "2^48")
    everywhere("too large a device", """func.func @main(%a: tensor<16777216x16777216xf64>) -> tensor<16777216x16777216xf64> {
  %0 = math.exp %a : tensor<16777216x16777216xf64>
  return %0 : tensor<16777216x16777216xf64>
}""", ":1:", "2^48 bytes", opt=False, pipeline=False)
    call = "%0 = func.call @NEXT(%a) : (tensor<4xf32>) -> tensor<4xf32>"
    again = "%1 = func.call @NEXT(%0) : (tensor<4xf32>) -> tensor<4xf32>"
    doubling = "".join(
        f"func.func {'' if i == 0 else 'private '}@{'main' if i == 0 else f'f{i}'}(%a: tensor<4xf32>) -> tensor<4xf32> {{ "
        + f"{call} {again} return %1 : tensor<4xf32> }}\n".replace("NEXT", f"f{i + 1}") for i in range(60))
    everywhere("doubling calls", doubling + """func.func private @f60(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = math.exp %a : tensor<4xf32>
  return %0 : tensor<4xf32>
}""", "more than 1000000 operations")
    collective = GOOD.replace("arith.addf %a, %a", 'dist.all_reduce %a over @m ["x"] reduction = sum')
    everywhere("collective in the global view", collective, ":4:", "'dist.all_reduce'", "dist.reshard")


def meshes():
    for what, mesh, expected in [
            ("ragged", 'shape = [2, 2], dim_names = ["x", "y"], process_ids = [0, 1, 2]', "3"),
            ("duplicate id", 'shape = [2, 2], dim_names = ["x", "y"], process_ids = [0, 1, 2, 2]', "2"),
            ("negative id", 'shape = [2, 2], dim_names = ["x", "y"], process_ids = [0, 1, 2, -3]', "-3"),
            ("name count", 'shape = [2, 2], dim_names = ["x"]', "1"),
            ("duplicate name", 'shape = [2, 2], dim_names = ["x", "x"]', "x"),
            ("empty name", 'shape = [2, 2], dim_names = ["x", ""]', "m"),
            ("zero extent", 'shape = [2, 0], dim_names = ["x", "y"]', "0"),
            ("negative extent", 'shape = [2, -2], dim_names = ["x", "y"]', "-2"),
            ("no axis", "shape = [], dim_names = []", "m"),
            ("huge", 'shape = [65536, 65536], dim_names = ["x", "y"]', "1048576"),
            ("overflow", 'shape = [4294967296, 4294967296], dim_names = ["x", "y"]', "1048576"),
            ("id too large", 'shape = [2, 1], dim_names = ["x", "y"], process_ids = [0, 9223372036854775807]', "9223372036854775807")]:
        everywhere(f"mesh {what}", GOOD.replace('shape = [2, 2], dim_names = ["x", "y"]', mesh), ":1:", expected)
    everywhere("mesh twice", GOOD.splitlines()[0] + "\n" + GOOD, ":2:", "m")


def shardings():
    for what, sharding, expected in [
            ("dim 2", "#dist.sharding<@m, [shard(2), replicate]>", "2"),
            ("dim 3", "#dist.sharding<@m, [shard(3), replicate]>", "3"),
            ("dim 1000000", "#dist.sharding<@m, [shard(1000000), replicate]>", "1000000"),
            ("dim -3", "#dist.sharding<@m, [shard(-3), replicate]>", "-3"),
            ("too many", "#dist.sharding<@m, [shard(0), replicate, replicate]>", "3"),
            ("mesh", "#dist.sharding<@none, [shard(0)]>", "none"),
            ("axis", '#dist.sharding<@m, dims = [["z"], []]>', "z"),
            ("axis twice", '#dist.sharding<@m, dims = [["x"], ["x"]]>', "x"),
            ("rank", '#dist.sharding<@m, dims = [["x"]]>', "1"),
            ("part", '#dist.sharding<@m, dims = [["x":(1)3], []]>', "3"),
            ("order", "#dist.sharding<@m, [shard(0, order = 1), shard(0, order = 1)]>", "1"),
            ("order gap", "#dist.sharding<@m, [shard(0, order = 0), shard(0, order = 7)]>", "7"),
            ("windows", "#dist.sharding<@m, dims = [[], []], windows = [(0, 2, 3, 2)]>", "windows"),
            ("far window", "#dist.sharding<@m, dims = [[], []], windows = [(0, 2, 3, 9223372036854775807)]>",
             "9223372036854775807"),
            ("mixed", "#dist.sharding<@m, [partial(sum), partial(max)]>", "sum")]:
        # The argument is at column 34 of line 2.
        everywhere(f"sharding {what}", SHARDED.replace("SHARDING", sharding),
                   ":2:1:" if what == "windows" else ":2:34:", expected)
    for what, sharding in [("kind", "#dist.sharding<@m, [foo]>"), ("reduction", "#dist.sharding<@m, [partial(xor)]>"),
                           ("open end", "#dist.sharding<@m, [shard(0)"), ("number", "#dist.sharding<@m, [shard(99999999999999999999)]>")]:
        everywhere(f"sharding {what}", SHARDED.replace("SHARDING", sharding), ":2:")
    everywhere("integer average", SHARDED.replace("SHARDING", "#dist.sharding<@m, [partial(avg)]>").replace("xf32", "xi32"), ":2:34:", "avg")


def arrays():
    file = write("good.mlir", GOOD)

    def case(what, data, *expected, option="--input"):
        name = write(what.replace(" ", "-") + ".npy", data)
        refuses(f"npy {what}", ["tessera", "run", file, option, f"a={name}", "--output", "b=o.npy", "--json", "o.json"],
                *expected, output="o.")
    good = npy((4, 6))
    run_code, text = run(["tessera", "run", file, "--input", "a=" + write("good.npy", good)])
    if run_code != 0:
        failures.append("good input")
        print("the good input does not run:", text)
    refuses("npy missing", ["tessera", "run", file, "--input", "a=none.npy", "--output", "b=o.npy"], "none.npy", output="o.")
    case("empty", b"", "empty.npy")
    case("no magic", b"not an array" * 20, "no-magic.npy")
    case("other shape", npy((6, 4)), "6", "4")
    case("other rank", npy((24,)), "24")
    case("other dtype", npy((4, 6), "<f8"), "f64")
    case("big endian", npy((4, 6), ">f4"), "big-endian.npy")
    case("objects", npy((4, 6), "|O8"), "objects.npy")
    case("longer", good + b"\0" * 8, "longer.npy")
    case("overflowing", npy((2 ** 62, 6), data=b""), "overflowing.npy")
    case("negative", npy((-4, 6), data=b""), "negative.npy")
    case("no steps", npy((0, 4, 6)), option="--stream")
    for cut in range(0, len(good), 16):
        case("cut", good[:cut], "cut.npy")
    refuses("npy argument", ["tessera", "run", file, "--input", "z=good.npy"], " z:", "it has a")
    refuses("npy result", ["tessera", "run", file, "--output", "z=o.npy"], " z:", "it has b", output="o.")
    refuses("plugin", ["tessera", "run", file, "--plugin", "none.so"], "none.so")
    refuses("negative devices", ["tessera", "run", file, "--devices", "-1"], "--devices")
    refuses("npy option", ["tessera", "run", file, "--input", "good.npy"], "good.npy")
    refuses("npy folder", ["tessera", "run", file, "--output", "b=no/such/o.npy"], "no/such/o.npy")
    refuses("devices", ["tessera", "run", file, "--devices", "3"], "'m'", "4", "3")
    refuses("backend", ["tessera", "run", file, "--backend", "none"], "none", "threads")
    refuses("function", ["tessera", "run", file, "--function", "none"], "none", "main")
    refuses("steps", ["tessera", "run", file, "--steps", "-1"], "-1")
    refuses("target", ["tessera", "compile", file, "--target", "abacus", "-o", "o.tsra"], "abacus", output="o.")
    refuses("phase", ["tessera", "explain", file, "--compile-from", "none"], "'none'")
    refuses("opt phase", ["tessera-opt", file, "--tessera-pipeline=compile-from=none"], "'none'")


def options():
    file = write("good.mlir", GOOD)

    def case(what, *values):
        *values, expected = values
        for command in ["explain", "run"]:
            refuses(f"{command} {what}", ["tessera", command, file, "--json", "o.json", *values], expected, output="o.")
    for what, fusion, expected in [
            ("unknown kind", "all-spread=auto", "all-spread"),
            ("unknown mode", "all-reduce=sometimes", "'sometimes'"),
            ("unsorted", "all-reduce=index all-reduce-config=20,10", "found 10"),
            ("duplicate", "all-reduce=index all-reduce-config=5,5", "found 5"),
            ("negative", "all-reduce=index all-reduce-config=-1", "found -1"),
            ("no number", "all-reduce=index all-reduce-config=x", "'x'"),
            ("fraction", "all-reduce=index all-reduce-config=1.5", "'1.5'"),
            ("overflow", "all-reduce=size all-reduce-config=99999999999999999999", "'99999999999999999999'"),
            ("index of gathers", "all-gather=index all-gather-config=3", "'allgather'"),
            ("index of scatters", "reduce-scatter=index reduce-scatter-config=3", "'reducescatter'"),
            ("no size", "all-reduce=size", "'allreduce'"),
            ("size 0", "all-reduce=size all-reduce-config=0", "'allreduce'"),
            ("two sizes", "all-reduce=size all-reduce-config=1,2", "'allreduce'"),
            ("auto with a size", "all-reduce=auto all-reduce-config=3", "'allreduce'")]:
        case(f"fusion {what}", "--comm-fusion", fusion, expected)
    case("objective", "--objective", "fame", "'fame'")
    case("topology", "--topology", "none.json", "none.json")
    case("topology content", "--topology", write("cut.json", '{"version": 1, '), "cut.json")
    for cores in ["-1", "100000"]:
        refuses(f"cores {cores}", ["tessera", "run", file, "--cores", cores], "cores")


def artifacts():
    file = write("good.mlir", GOOD)
    code, text = run(["tessera", "compile", file, "-o", "good.tsra"])
    if code or run(["tessera-exec", "good.tsra"])[0]:
        failures.append("artifact")
        print("the good artifact does not run:", text)
        return
    with open("good.tsra", "rb") as stream:
        good = stream.read()
    refuses("artifact missing", ["tessera-exec", "none.tsra"], "none.tsra")
    refuses("artifact devices", ["tessera-exec", "good.tsra", "--devices", "3"], "'m'", "4", "3")
    refuses("artifact input", ["tessera-exec", "good.tsra", "--input", "a=none.npy", "--output", "b=o.npy"], "none.npy", output="o.")
    refuses("no artifact", ["tessera-exec", file], file)
    step = 64 if len(good) < 64000 else len(good) // 1000
    for place in range(0, len(good), step):
        refuses(f"artifact cut at {place}", ["tessera-exec", write("cut.tsra", good[:place])], "cut.tsra")
        flipped = bytearray(good)
        flipped[place] ^= 0x20
        refuses(f"artifact flipped at {place}", ["tessera-exec", write("flip.tsra", bytes(flipped))], "flip.tsra")
    refuses("artifact longer", ["tessera-exec", write("longer.tsra", good + b"\0")], "longer.tsra")


def main():
    shutil.rmtree(sys.argv[1], ignore_errors=True)
    os.makedirs(sys.argv[1])
    os.chdir(sys.argv[1])
    for part in (programs, meshes, shardings, arrays, options, artifacts):
        if len(sys.argv) < 3 or part.__name__ in sys.argv[2:]:
            part()
    print(f"{len(failures)} did not hold")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
