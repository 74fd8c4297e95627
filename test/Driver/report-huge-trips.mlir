// RUN: tessera explain %s --json - | FileCheck %s

// Trip counts that overflow saturate, and are marked as unbounded.
// CHECK: "wire_bytes_total": 9223372036854775807
// CHECK-NOT: "bounded": true
dist.process_mesh @m(shape = [4], dim_names = ["x"])
func.func @main(%a: tensor<8x8xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>}, %q: tensor<1xi64>) -> tensor<8x8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %big = arith.constant 9223372036854775807 : index
  %r = scf.for %i = %c0 to %big step %c1 iter_args(%x = %a) -> (tensor<8x8xf32>) {
    %r2 = scf.for %j = %c0 to %big step %c1 iter_args(%y = %x) -> (tensor<8x8xf32>) {
    %z = arith.constant dense<0.0> : tensor<8x8xf32>
    %p = linalg.matmul ins(%y, %y : tensor<8x8xf32>, tensor<8x8xf32>) outs(%z : tensor<8x8xf32>) -> tensor<8x8xf32>
    scf.yield %p : tensor<8x8xf32> }
    scf.yield %r2 : tensor<8x8xf32>
  }
  return %r : tensor<8x8xf32>
}
