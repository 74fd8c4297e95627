// Contractions of 16-bit floats, named or generic, cut or whole, add in f32 and round once: 256 + 7 * 1
// is 264 in bf16, where seven additions of 1 to 256 give 256. The same for sums of one and two elements.
// RUN: tessera-opt %s --interpret -o /dev/null
// RUN: tessera-opt %s --tessera-pipeline --interpret=elements=0 -o /dev/null
// RUN: sed '/check[.]/d' %s > %t.mlir
// RUN: tessera run %t.mlir --check=interpreter | FileCheck %s
// RUN: tessera run %t.mlir --check=interpreter --backend stub | FileCheck %s

// CHECK-COUNT-4: {{^check  result[0-3]  ok  equal}}
dist.process_mesh @m(shape = [2], dim_names = ["d"])
#rows = affine_map<(i, j, k) -> (i, k)>
#columns = affine_map<(i, j, k) -> (k, j)>
#product = affine_map<(i, j, k) -> (i, j)>
func.func @main() -> (tensor<2x2xbf16>, tensor<2x2xbf16>, tensor<2x2xbf16>, tensor<2xbf16>) {
  %x = arith.constant dense<1.0> : tensor<2x7xbf16>
  %cut = dist.shard_tensor %x, #dist.sharding<@m, [shard(1)]> : tensor<2x7xbf16>
  %y = arith.constant dense<1.0> : tensor<7x2xbf16>
  %c = arith.constant dense<256.0> : tensor<2x2xbf16>
  %264 = arith.constant dense<264.0> : tensor<2x2xbf16>
  %named = linalg.matmul ins(%x, %y : tensor<2x7xbf16>, tensor<7x2xbf16>) outs(%c : tensor<2x2xbf16>) -> tensor<2x2xbf16>
  check.expect_eq %named, %264 : tensor<2x2xbf16>
  %generic = linalg.generic {indexing_maps = [#rows, #columns, #product], iterator_types = ["parallel", "parallel", "reduction"]}
    ins(%x, %y : tensor<2x7xbf16>, tensor<7x2xbf16>) outs(%c : tensor<2x2xbf16>) {
  ^bb0(%a: bf16, %b: bf16, %s: bf16):
    %p = arith.mulf %a, %b : bf16
    %t = arith.addf %p, %s : bf16
    linalg.yield %t : bf16
  } -> tensor<2x2xbf16>
  check.expect_eq %generic, %264 : tensor<2x2xbf16>
  %sharded = linalg.matmul ins(%cut, %y : tensor<2x7xbf16>, tensor<7x2xbf16>) outs(%c : tensor<2x2xbf16>) -> tensor<2x2xbf16>
  check.expect_eq %sharded, %264 : tensor<2x2xbf16>
  %two = arith.constant dense<1.0> : tensor<2x2xbf16>
  %init = arith.constant dense<256.0> : tensor<2xbf16>
  %258 = arith.constant dense<258.0> : tensor<2xbf16>
  %sum = linalg.reduce { arith.addf } ins(%two : tensor<2x2xbf16>) outs(%init : tensor<2xbf16>) dimensions = [1]
  check.expect_eq %sum, %258 : tensor<2xbf16>
  return %named, %generic, %sharded, %sum : tensor<2x2xbf16>, tensor<2x2xbf16>, tensor<2x2xbf16>, tensor<2xbf16>
}
