// RUN: tessera-opt %s --dist-insert-reshards | FileCheck %s

// A result is partial because its operand must be, although that is cut: the cut becomes a contribution.
// CHECK-LABEL: func.func @main
// CHECK: %[[P:.*]] = dist.reshard %arg0 to #dist.sharding<@mesh, [shard(0), partial(sum)]>
// CHECK: tensor.pad %[[P]]
dist.process_mesh @mesh(shape = [2, 3], dim_names = ["x", "y"])
func.func @main(%x: tensor<4x3xf32> {dist.sharding = #dist.sharding<@mesh, [shard(0), shard(1)]>})
    -> (tensor<4x5xf32> {dist.sharding = #dist.sharding<@mesh, [shard(0), partial(sum)]>}) {
  %zero = arith.constant 0.0 : f32
  %0 = tensor.pad %x low[0, 1] high[0, 1] {
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : f32
  } {dist.op_sharding = #dist.op_sharding<@mesh, factors = [["x"], []], forwards = [sum("y") from [0]]>,
     dist.shardings = [#dist.sharding<@mesh, [shard(0), partial(sum)]>]} : tensor<4x3xf32> to tensor<4x5xf32>
  return %0 : tensor<4x5xf32>
}
