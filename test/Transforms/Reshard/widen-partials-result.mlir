// RUN: tessera-opt %s --tessera-pipeline --interpret -o /dev/null | FileCheck %s
// RUN: tessera-opt %s --tessera-pipeline="narrow-reductions=true" --interpret -o /dev/null | FileCheck %s --check-prefix=NARROW
// RUN: tessera explain %s | FileCheck %s --check-prefix=BYTES
// RUN: tessera explain %s --narrow-reductions | FileCheck %s --check-prefix=HALF
// RUN: tessera run %s --check | FileCheck %s --check-prefix=COMPILED

// 257 is 256 in bf16: rounded before the addition, the contributions 257, 2, 2 and 2 add up to 262;
// their exact sum, 263, rounds to 264.
dist.process_mesh @m(shape = [4], dim_names = ["x"])

// CHECK: result0 : tensor<1x1xbf16> = {{\[\[}}264]]
// NARROW: result0 : tensor<1x1xbf16> = {{\[\[}}262]]
// BYTES: all_reduce {{.*}} f32  4 B, 6 on the wire
// HALF: all_reduce {{.*}} bf16  2 B, 3 on the wire
// COMPILED: check  result0  ok
func.func @main() -> tensor<1x1xbf16> {
  %a = arith.constant dense<[[256.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]]> : tensor<1x8xbf16>
  %b = arith.constant dense<1.0> : tensor<8x1xbf16>
  %cut = dist.shard_tensor %a, #dist.sharding<@m, [shard(1)]> : tensor<1x8xbf16>
  %zero = arith.constant dense<0.0> : tensor<1x1xbf16>
  %0 = linalg.matmul ins(%cut, %b : tensor<1x8xbf16>, tensor<8x1xbf16>) outs(%zero : tensor<1x1xbf16>) -> tensor<1x1xbf16>
  return %0 : tensor<1x1xbf16>
}
