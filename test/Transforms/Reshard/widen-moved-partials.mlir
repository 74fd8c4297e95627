// RUN: tessera-opt %s --dist-insert-reshards --dist-widen-partials | FileCheck %s

// Ops that only move contributions also use f32; after a reduce-scatter each device rounds its part.
dist.process_mesh @m(shape = [4], dim_names = ["x"])

// CHECK-LABEL: func.func @moved
// CHECK: tensor.collapse_shape {{.*}} [partial(sum)]>]} : tensor<8x4xf32> into tensor<32xf32>
// CHECK: %[[R:.*]] = dist.reshard {{.*}} to #dist.sharding<@m, [shard(0)]> {{.*}} : tensor<32xf32>
// CHECK: linalg.generic {{.*}} ins(%[[R]] : tensor<32xf32>) {{.*}} [#dist.sharding<@m, [shard(0)]>]
// CHECK-NOT: tensor<8x4xf16>
func.func @moved(%a: tensor<6x8x4xf16> {dist.sharding = #dist.sharding<@m, [shard(0)]>})
    -> (tensor<32xf16> {dist.sharding = #dist.sharding<@m, [shard(0)]>}) {
  %zero = arith.constant {dist.shardings = [#dist.sharding<@m, [replicate]>]} dense<0.0> : tensor<8x4xf16>
  %sum = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, j, k)>, affine_map<(i, j, k) -> (j, k)>],
                         iterator_types = ["reduction", "parallel", "parallel"]}
      ins(%a : tensor<6x8x4xf16>) outs(%zero : tensor<8x4xf16>) attrs = {dist.op_sharding = #dist.op_sharding<@m, factors = [["x"], [], []]>, dist.shardings = [#dist.sharding<@m, [partial(sum)]>]} {
  ^bb0(%in: f16, %acc: f16):
    %s = arith.addf %in, %acc : f16
    linalg.yield %s : f16
  } -> tensor<8x4xf16>
  %0 = tensor.collapse_shape %sum [[0, 1]] {dist.op_sharding = #dist.op_sharding<@m, factors = [[], []], forwards = [sum("x") from [0]]>, dist.shardings = [#dist.sharding<@m, [partial(sum)]>]} : tensor<8x4xf16> into tensor<32xf16>
  return %0 : tensor<32xf16>
}
