"""mismatch.py CASE FOLDER RANKS COMMAND...: the last rank of one compiled program reads a different flag and therefore makes a
different call in the middle of a step. Prints the output of each rank.

Without a launcher in COMMAND, ranks meet through a file; `COMMAND` is then tessera-exec with its options, otherwise the launcher."""

import os
import subprocess
import sys

PROGRAM = """dist.process_mesh @m(shape = [{ranks}], dim_names = ["d"])
#v = affine_map<(i) -> (i)>
func.func @main(%x: tensor<{ranks}x4xf32> {{dist.name = "x", dist.sharding = #dist.sharding<@m, [shard(0)]>}},
                %flag: tensor<i32> {{dist.name = "flag"}}) -> (tensor<4xf32> {{dist.name = "y"}}) {{
  %one = arith.constant 1 : i32
  %i = tensor.extract %flag[] : tensor<i32>
  %c = arith.cmpi eq, %i, %one : i32
  %zero = arith.constant dense<0.0> : tensor<4xf32>
  %y = scf.if %c -> (tensor<4xf32>) {{
    %s = linalg.reduce ins(%x : tensor<{ranks}x4xf32>) outs(%zero : tensor<4xf32>) dimensions = [0] (%a: f32, %b: f32) {{
      %t = arith.addf %a, %b : f32
      linalg.yield %t : f32
    }}
    %q = arith.mulf %s, %s : tensor<4xf32>
    scf.yield %q : tensor<4xf32>
  }} else {{
{other}
    scf.yield %o : tensor<4xf32>
  }}
  return %y : tensor<4xf32>
}}
"""
SUM = """    %p = linalg.reduce ins({input} : tensor<{shape}x{type}>) outs({out} : tensor<{result}{type}>) dimensions = [{dims}] (%a: {type}, %b: {type}) {{
      %t = arith.{op} %a, %b : {type}
      linalg.yield %t : {type}
    }}"""
CASES = {
    "op": SUM.format(input="%x", shape="{ranks}x4", type="f32", out="%zero", result="4x", dims="0", op="maximumf")
          + "\n    %o = arith.mulf %p, %p : tensor<4xf32>",
    "dtype": "    %w = arith.extf %x : tensor<{ranks}x4xf32> to tensor<{ranks}x4xf64>\n    %z = arith.constant dense<0.0> : tensor<4xf64>\n"
             + SUM.format(input="%w", shape="{ranks}x4", type="f64", out="%z", result="4x", dims="0", op="addf")
             + "\n    %q = arith.mulf %p, %p : tensor<4xf64>\n    %o = arith.truncf %q : tensor<4xf64> to tensor<4xf32>",
    "kind": "    %g = dist.reshard %x to #dist.sharding<@m, [replicate]> : tensor<{ranks}x4xf32>\n"
            "    %e = tensor.extract_slice %g[0, 0] [1, 4] [1, 1] : tensor<{ranks}x4xf32> to tensor<4xf32>\n"
            "    %o = arith.mulf %e, %e : tensor<4xf32>",
    "count": "    %z = arith.constant dense<0.0> : tensor<f32>\n"
             + SUM.format(input="%x", shape="{ranks}x4", type="f32", out="%z", result="", dims="0, 1", op="addf")
             + "\n    %e = tensor.extract %p[] : tensor<f32>\n    %q = arith.mulf %e, %e : f32\n    %o = tensor.splat %q : tensor<4xf32>",
    "absent": "    %o = arith.addf %zero, %zero : tensor<4xf32>",
}

case, folder, ranks, command = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4:]
os.makedirs(folder, exist_ok=True)
source, artifact = f"{folder}/{case}.mlir", f"{folder}/{case}.tsra"
with open(source, "w", encoding="utf-8") as file:
    file.write(PROGRAM.format(ranks=ranks, other=CASES[case].replace("{ranks}", str(ranks))))
subprocess.run(["tessera", "compile", source, "-o", artifact], check=True)
for flag in (0, 1):  # NumPy's format, version 1.0
    header = "{'descr': '<i4', 'fortran_order': False, 'shape': (), }"
    header += " " * (-(10 + len(header) + 1) % 64) + "\n"
    with open(f"{folder}/flag-{flag}.npy", "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + flag.to_bytes(4, "little"))
# Ranks started by a launcher print their rank themselves.
script = f"{folder}/rank.sh"
with open(script, "w", encoding="utf-8") as file:
    file.write('rank=${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-$TESSERA_RANK}}\nfolder=$1; artifact=$2; last=$3; shift 3\n'
               'flag=1; test "$rank" = "$last" && flag=0\n'
               'exec tessera-exec "$artifact" --input flag="$folder/flag-$flag.npy" "$@" > "$folder/said-$rank" 2>&1\n')
own = ["sh", script, folder, artifact, str(ranks - 1)]
options = ["--guard", "full", "--timeout", "60"]
for rank in range(ranks):
    with open(f"{folder}/said-{rank}", "w", encoding="utf-8"):
        pass
if command:
    started = [subprocess.Popen([*command, "-np", str(ranks), *own, "--backend", "mpi", *options], stdout=subprocess.DEVNULL,
                                stderr=subprocess.DEVNULL)]
else:
    meeting = f"{folder}/meet-{case}"
    started = [subprocess.Popen([*own, "--backend", "tcp", *options],
                                env=dict(os.environ, TESSERA_RANK=str(rank), TESSERA_SIZE=str(ranks), TESSERA_RENDEZVOUS=f"file:{meeting}"))
               for rank in range(ranks)]
for each in started:
    each.wait(timeout=200)
for rank in range(ranks):
    with open(f"{folder}/said-{rank}", encoding="utf-8") as file:
        errors = [line.strip() for line in file if "error" in line]
    print(f"{case}, rank {rank}: {' | '.join(errors)}")
