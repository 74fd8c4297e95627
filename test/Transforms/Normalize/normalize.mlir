// RUN: tessera-opt %s --dist-normalize | FileCheck %s

dist.process_mesh @pod(shape = [2, 2], dim_names = ["x", "y"])

// Negative dimensions, missing placements and the by-dimension form become the by-axis form.
// CHECK-LABEL: func.func @spelling(
// CHECK-SAME: %{{.*}}: tensor<4x4xf32> {dist.sharding = #dist.sharding<@pod, [shard(1), ?]>}
// CHECK-SAME: %{{.*}}: tensor<4x4xf32> {dist.sharding = #dist.sharding<@pod, [shard(0, order = 1), shard(0, order = 0)]>}
// CHECK-SAME: %{{.*}}: tensor<4x4xf32> {dist.sharding = #dist.sharding<@pod, [?, ?]>}
func.func @spelling(%x: tensor<4x4xf32> {dist.sharding = #dist.sharding<@pod, [shard(-1)]>},
                    %y: tensor<4x4xf32> {dist.sharding = #dist.sharding<@pod, dims = [["y", "x"], []]>},
                    %z: tensor<4x4xf32>) { return }

// A called function is inlined at each call; its annotations become constraints.
// CHECK-LABEL: func.func @calls(
// CHECK: dist.shard_tensor %{{.*}}, #dist.sharding<@pod, [shard(0), ?]>
// CHECK: linalg.generic
// CHECK-NOT: func.call
// CHECK: return
func.func @calls(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = func.call @double(%x) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}
// CHECK-NOT: @double
func.func private @double(%x: tensor<4x4xf32> {dist.sharding = #dist.sharding<@pod, [shard(0), ?]>}) -> tensor<4x4xf32> {
  %0 = arith.addf %x, %x : tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}

// CHECK-LABEL: func.func @softmax(
// CHECK-NOT: linalg.softmax
// CHECK-COUNT-4: linalg.generic
// CHECK: return
func.func @softmax(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %e = tensor.empty() : tensor<4x4xf32>
  %0 = linalg.softmax dimension(1) ins(%x : tensor<4x4xf32>) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}
