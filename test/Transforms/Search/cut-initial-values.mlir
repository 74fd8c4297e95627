// The initial value of a sum is an operand like any other: the op is cut like it.
// RUN: tessera-opt %s --dist-normalize --dist-search --dist-insert-reshards | FileCheck %s
// RUN: tessera-opt %s --dist-normalize --dist-search=mode=recursive_programming --dist-insert-reshards | FileCheck %s

dist.process_mesh @m(shape = [4], dim_names = ["d"])

// CHECK-LABEL: func.func @by_rows
// CHECK-SAME: -> (tensor<64x64xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>})
// CHECK-NOT: dist.reshard %arg0
func.func @by_rows(%start: tensor<64x64xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>},
                   %x: tensor<8x64x64xf32>) -> tensor<64x64xf32> {
  %y = linalg.reduce ins(%x : tensor<8x64x64xf32>) outs(%start : tensor<64x64xf32>) dimensions = [0]
    (%in: f32, %acc: f32) {
      %s = arith.addf %in, %acc : f32
      linalg.yield %s : f32
    }
  return %y : tensor<64x64xf32>
}

// CHECK-LABEL: func.func @by_columns
// CHECK-SAME: -> (tensor<64x64xf32> {dist.sharding = #dist.sharding<@m, [shard(1)]>})
// CHECK-NOT: dist.reshard %arg0
func.func @by_columns(%start: tensor<64x64xf32> {dist.sharding = #dist.sharding<@m, [shard(1)]>},
                      %x: tensor<8x64x64xf32>) -> tensor<64x64xf32> {
  %y = linalg.reduce ins(%x : tensor<8x64x64xf32>) outs(%start : tensor<64x64xf32>) dimensions = [0]
    (%in: f32, %acc: f32) {
      %s = arith.addf %in, %acc : f32
      linalg.yield %s : f32
    }
  return %y : tensor<64x64xf32>
}
