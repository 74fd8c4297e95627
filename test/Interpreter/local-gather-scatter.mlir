// RUN: tessera-opt %s --interpret -o /dev/null | FileCheck %s

// Parts are concatenated and split along a dimension, in the order of the group.
dist.process_mesh @m(shape = [2, 2], dim_names = ["x", "y"])

// CHECK-LABEL: @all_gather
// CHECK-NEXT: result0 : tensor<8xindex> = [0, 100, 10, 100, 1, 100, 11, 100]
func.func @all_gather() -> (tensor<8xindex> {dist.sharding = #dist.sharding<@m, [replicate, replicate]>, dist.global_type = tensor<8xindex>})
    attributes {dist.view = "local", dist.mesh = @m, dist.mesh_devices = array<i64: 0, 1, 2, 3>} {
  // Device (x, y) holds [10 x + y, 100].
  %x = dist.axis_index over @m ["x"] : index
  %y = dist.axis_index over @m ["y"] : index
  %c10 = arith.constant 10 : index
  %c100 = arith.constant 100 : index
  %t = arith.muli %x, %c10 : index
  %v = arith.addi %t, %y : index
  %a = tensor.from_elements %v, %c100 : tensor<2xindex>
  %r = dist.all_gather %a over @m ["y", "x"] dim = 0 : tensor<2xindex> -> tensor<8xindex>
  return %r : tensor<8xindex>
}

// CHECK-LABEL: @reduce_scatter
// CHECK-NEXT: result0 : tensor<4xindex> = [10, 200, 12, 200]
func.func @reduce_scatter() -> (tensor<1xindex> {dist.sharding = #dist.sharding<@m, dims = [["y", "x"]]>, dist.global_type = tensor<4xindex>})
    attributes {dist.view = "local", dist.mesh = @m, dist.mesh_devices = array<i64: 0, 1, 2, 3>} {
  // Device (x, y) holds [10 x + y, 100].
  %x = dist.axis_index over @m ["x"] : index
  %y = dist.axis_index over @m ["y"] : index
  %c10 = arith.constant 10 : index
  %c100 = arith.constant 100 : index
  %t = arith.muli %x, %c10 : index
  %v = arith.addi %t, %y : index
  %a = tensor.from_elements %v, %c100 : tensor<2xindex>
  %r = dist.reduce_scatter %a over @m ["x"] dim = 0 reduction = sum : tensor<2xindex> -> tensor<1xindex>
  return %r : tensor<1xindex>
}

// CHECK-LABEL: @slice
// CHECK-NEXT: result0 : tensor<4xindex> = [0, 1, 100, 100]
func.func @slice() -> (tensor<1xindex> {dist.sharding = #dist.sharding<@m, dims = [["x", "y"]]>, dist.global_type = tensor<4xindex>})
    attributes {dist.view = "local", dist.mesh = @m, dist.mesh_devices = array<i64: 0, 1, 2, 3>} {
  // Device (x, y) holds [10 x + y, 100].
  %x = dist.axis_index over @m ["x"] : index
  %y = dist.axis_index over @m ["y"] : index
  %c10 = arith.constant 10 : index
  %c100 = arith.constant 100 : index
  %t = arith.muli %x, %c10 : index
  %v = arith.addi %t, %y : index
  %a = tensor.from_elements %v, %c100 : tensor<2xindex>
  %r = dist.slice %a over @m ["x"] dim = 0 : tensor<2xindex> -> tensor<1xindex>
  return %r : tensor<1xindex>
}

// CHECK-LABEL: @all_to_all
// CHECK-NEXT: result0 : tensor<4x2xindex> = {{\[\[}}0, 1], [5, 6], [10, 11], [15, 16]]
func.func @all_to_all() -> (tensor<1x2xindex> {dist.sharding = #dist.sharding<@m, [shard(0), shard(0)]>, dist.global_type = tensor<4x2xindex>})
    attributes {dist.view = "local", dist.mesh = @m, dist.mesh_devices = array<i64: 0, 1, 2, 3>} {
  %x = dist.axis_index over @m ["x"] : index
  %y = dist.axis_index over @m ["y"] : index
  %c10 = arith.constant 10 : index
  %t = arith.muli %x, %c10 : index
  %v = arith.addi %t, %y : index
  %c5 = arith.constant 5 : index
  %w = arith.addi %v, %c5 : index
  %a = tensor.from_elements %v, %w : tensor<2x1xindex>
  %r = dist.all_to_all %a over @m ["y"] split_dim = 0 concat_dim = 1 : tensor<2x1xindex> -> tensor<1x2xindex>
  return %r : tensor<1x2xindex>
}
