// RUN: tessera-opt %s --interpret -o /dev/null | FileCheck %s

// The contributions of a group are reduced; groups of other coordinates are independent.
dist.process_mesh @m(shape = [2, 2], dim_names = ["x", "y"])

// CHECK-LABEL: @sum
// CHECK-NEXT: result0 : tensor<4xindex> = [1, 200, 21, 200]
func.func @sum() -> (tensor<2xindex> {dist.sharding = #dist.sharding<@m, [shard(0), replicate]>, dist.global_type = tensor<4xindex>})
    attributes {dist.view = "local", dist.mesh = @m, dist.mesh_devices = array<i64: 0, 1, 2, 3>} {
  // Device (x, y) holds [10 x + y, 100].
  %x = dist.axis_index over @m ["x"] : index
  %y = dist.axis_index over @m ["y"] : index
  %c10 = arith.constant 10 : index
  %c100 = arith.constant 100 : index
  %t = arith.muli %x, %c10 : index
  %v = arith.addi %t, %y : index
  %a = tensor.from_elements %v, %c100 : tensor<2xindex>
  %r = dist.all_reduce %a over @m ["y"] reduction = sum : tensor<2xindex>
  return %r : tensor<2xindex>
}

// CHECK-LABEL: @max_of_all
// CHECK-NEXT: result0 : tensor<2xindex> = [11, 100]
func.func @max_of_all() -> (tensor<2xindex> {dist.sharding = #dist.sharding<@m, [replicate, replicate]>, dist.global_type = tensor<2xindex>})
    attributes {dist.view = "local", dist.mesh = @m, dist.mesh_devices = array<i64: 0, 1, 2, 3>} {
  // Device (x, y) holds [10 x + y, 100].
  %x = dist.axis_index over @m ["x"] : index
  %y = dist.axis_index over @m ["y"] : index
  %c10 = arith.constant 10 : index
  %c100 = arith.constant 100 : index
  %t = arith.muli %x, %c10 : index
  %v = arith.addi %t, %y : index
  %a = tensor.from_elements %v, %c100 : tensor<2xindex>
  %r = dist.all_reduce %a over @m ["x", "y"] reduction = max : tensor<2xindex>
  return %r : tensor<2xindex>
}

// CHECK-LABEL: @prod
// CHECK-NEXT: result0 : tensor<4xindex> = [0, 10000, 11, 10000]
func.func @prod() -> (tensor<2xindex> {dist.sharding = #dist.sharding<@m, [replicate, shard(0)]>, dist.global_type = tensor<4xindex>})
    attributes {dist.view = "local", dist.mesh = @m, dist.mesh_devices = array<i64: 0, 1, 2, 3>} {
  // Device (x, y) holds [10 x + y, 100].
  %x = dist.axis_index over @m ["x"] : index
  %y = dist.axis_index over @m ["y"] : index
  %c10 = arith.constant 10 : index
  %c100 = arith.constant 100 : index
  %t = arith.muli %x, %c10 : index
  %v = arith.addi %t, %y : index
  %a = tensor.from_elements %v, %c100 : tensor<2xindex>
  %r = dist.all_reduce %a over @m ["x"] reduction = prod : tensor<2xindex>
  return %r : tensor<2xindex>
}

// CHECK-LABEL: @fused
// CHECK-NEXT: result0 : tensor<4xindex> = [0, 100, 1, 100]
func.func @fused() -> (tensor<2xindex> {dist.sharding = #dist.sharding<@m, [replicate, shard(0)]>, dist.global_type = tensor<4xindex>})
    attributes {dist.view = "local", dist.mesh = @m, dist.mesh_devices = array<i64: 0, 1, 2, 3>} {
  // Device (x, y) holds [10 x + y, 100].
  %x = dist.axis_index over @m ["x"] : index
  %y = dist.axis_index over @m ["y"] : index
  %c10 = arith.constant 10 : index
  %c100 = arith.constant 100 : index
  %t = arith.muli %x, %c10 : index
  %v = arith.addi %t, %y : index
  %a = tensor.from_elements %v, %c100 : tensor<2xindex>
  %r:2 = dist.all_reduce %a, %a over @m ["x"] reduction = min : tensor<2xindex>, tensor<2xindex>
  return %r#1 : tensor<2xindex>
}

// CHECK-LABEL: @avg
// CHECK-NEXT: result0 : tensor<1xbf16> = [0.5]
func.func @avg() -> (tensor<1xbf16> {dist.sharding = #dist.sharding<@m, [replicate, replicate]>, dist.global_type = tensor<1xbf16>})
    attributes {dist.view = "local", dist.mesh = @m, dist.mesh_devices = array<i64: 0, 1, 2, 3>} {
  %y = dist.axis_index over @m ["y"] : index
  %i = arith.index_cast %y : index to i32
  %f = arith.sitofp %i : i32 to bf16
  %a = tensor.from_elements %f : tensor<1xbf16>
  %r = dist.all_reduce %a over @m ["y"] reduction = avg : tensor<1xbf16>
  return %r : tensor<1xbf16>
}
