// RUN: tessera-opt %s | FileCheck %s

// Contributions over the first half of an axis reach a product that reduces over the second half: its accumulator and
// its result are contributions over both halves, which are written as the whole axis.
dist.process_mesh @m(shape = [4], dim_names = ["a"])

// CHECK-LABEL: func.func @main(
func.func @main(%x: tensor<4x4xf32> {dist.sharding = #dist.sharding<@m, dims = [[], ["a":(2)2]], partial = [sum("a":(1)2)]>, dist.global_type = tensor<4x8xf32>},
                %w: tensor<4x4xf32> {dist.sharding = #dist.sharding<@m, dims = [["a":(2)2], []]>, dist.global_type = tensor<8x4xf32>},
                %c: tensor<4x4xf32> {dist.sharding = #dist.sharding<@m, [partial(sum)]>, dist.global_type = tensor<4x4xf32>})
    -> (tensor<4x4xf32> {dist.sharding = #dist.sharding<@m, [partial(sum)]>, dist.global_type = tensor<4x4xf32>})
    attributes {dist.view = "local", dist.mesh = @m, dist.mesh_devices = array<i64: 0, 1, 2, 3>} {
  %0 = linalg.matmul {dist.shardings = [#dist.sharding<@m, [partial(sum)]>]}
      ins(%x, %w : tensor<4x4xf32>, tensor<4x4xf32>) outs(%c : tensor<4x4xf32>) -> tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}
