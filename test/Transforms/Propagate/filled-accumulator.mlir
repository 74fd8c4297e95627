// A filled accumulator can be rematerialized anywhere: its reshard for the pooling is free, and the
// pooling follows its input.
// RUN: tessera-opt %s --dist-normalize --dist-propagate | FileCheck %s

dist.process_mesh @m(shape = [6], dim_names = ["d"])

// CHECK-LABEL: func.func @main
// CHECK: linalg.pooling_nhwc_min {{.*}}factors = {{\[\[}}"d"], [], [], [], [], []]
func.func @main(%x: tensor<5x1x12x7xf32> {dist.sharding = #dist.sharding<@m, [shard(0)], priority = 2>})
    -> (tensor<5x2x12x7xf32> {dist.sharding = #dist.sharding<@m, [shard(2)]>}) {
  %zero = arith.constant 0.0 : f32
  %padded = tensor.pad %x low[0, 1, 1, 0] high[0, 1, 1, 0] {
  ^bb0(%a: index, %b: index, %c: index, %d: index):
    tensor.yield %zero : f32
  } : tensor<5x1x12x7xf32> to tensor<5x3x14x7xf32>
  %largest = arith.constant 0x7F800000 : f32
  %e = tensor.empty() : tensor<5x2x12x7xf32>
  %f = linalg.fill ins(%largest : f32) outs(%e : tensor<5x2x12x7xf32>) -> tensor<5x2x12x7xf32>
  %window = tensor.empty() : tensor<2x3xf32>
  %y = linalg.pooling_nhwc_min ins(%padded, %window : tensor<5x3x14x7xf32>, tensor<2x3xf32>) outs(%f : tensor<5x2x12x7xf32>) -> tensor<5x2x12x7xf32>
  return %y : tensor<5x2x12x7xf32>
}
