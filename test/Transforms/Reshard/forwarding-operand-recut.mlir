// RUN: tessera-opt %s --dist-insert-reshards | FileCheck %s

// The reshape should forward contributions, but its operand was cut differently since then. The
// operand becomes contributions again, rather than being gathered and added by each device.
dist.process_mesh @m(shape = [3], dim_names = ["x"])

// CHECK-LABEL: func.func @reshape
func.func @reshape(%a: tensor<4x6xf32> {dist.sharding = #dist.sharding<@m, [shard(1)]>})
    -> (tensor<24xf32> {dist.sharding = #dist.sharding<@m, [replicate]>}) {
  // CHECK: %[[PARTS:.*]] = dist.reshard %arg0 to #dist.sharding<@m, [partial(sum)]>
  // CHECK: %[[LINE:.*]] = tensor.collapse_shape %[[PARTS]]
  // CHECK: dist.reshard %[[LINE]] to #dist.sharding<@m, [replicate]>
  %0 = tensor.collapse_shape %a [[0, 1]] {dist.op_sharding = #dist.op_sharding<@m, factors = [[], []], forwards = [sum("x") from [0]]>, dist.shardings = [#dist.sharding<@m, [partial(sum)]>]}
      : tensor<4x6xf32> into tensor<24xf32>
  return %0 : tensor<24xf32>
}
