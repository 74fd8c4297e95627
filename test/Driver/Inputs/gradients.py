"""gradients.py COUNT [PINNED]: a step that updates COUNT weights by gradients of separate data; the first PINNED are annotated."""
import sys

count, pinned = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
rows, width = 32768, 64
data, weight = f"tensor<{rows}x{width}xf32>", f"tensor<{width}x{width}xf32>"
mesh = "#dist.sharding<@line, [shard(0)]>"
if pinned:
    print('dist.process_mesh @line(shape = [8], dim_names = ["d"])')
print("#x = affine_map<(i, j, b) -> (b, i)>\n#e = affine_map<(i, j, b) -> (b, j)>\n#w = affine_map<(i, j, b) -> (i, j)>")
arguments, results = [], []
for n in range(count):
    cut = f", dist.sharding = {mesh}" if n < pinned else ""
    arguments.append(f'%w{n}: {weight} {{dist.name = "w{n}"{cut}}}')
    results.append(f'{weight} {{dist.name = "new_w{n}", dist.feeds = {n}}}')
for n in range(count):
    arguments += [f'%x{n}: {data} {{dist.name = "x{n}"}}', f'%e{n}: {data} {{dist.name = "e{n}"}}']
print("func.func @main({})\n    -> ({}) {{".format(",\n    ".join(arguments), ",\n    ".join(results)))
print(f"  %zero = arith.constant dense<0.0> : {weight}")
for n in range(count):
    print(f"  %g{n} = linalg.contract indexing_maps = [#x, #e, #w] ins(%x{n}, %e{n} : {data}, {data}) outs(%zero : {weight}) -> {weight}")
    print(f"  %n{n} = arith.subf %w{n}, %g{n} : {weight}")
print("  return {} : {}\n}}".format(", ".join(f"%n{n}" for n in range(count)), ", ".join([weight] * count)))
