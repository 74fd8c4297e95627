// RUN: tessera-opt %s --interpret -o /dev/null | FileCheck %s

// Every group has a root; on other devices the results of gather and reduce are undefined.
dist.process_mesh @m(shape = [2, 2], dim_names = ["x", "y"])

// CHECK-LABEL: @broadcast
// CHECK-NEXT: result0 : tensor<8xindex> = [1, 100, 1, 100, 11, 100, 11, 100]
func.func @broadcast() -> (tensor<2xindex> {dist.sharding = #dist.sharding<@m, dims = [["x", "y"]]>, dist.global_type = tensor<8xindex>})
    attributes {dist.view = "local", dist.mesh = @m, dist.mesh_devices = array<i64: 0, 1, 2, 3>} {
  // Device (x, y) holds [10 x + y, 100].
  %x = dist.axis_index over @m ["x"] : index
  %y = dist.axis_index over @m ["y"] : index
  %c10 = arith.constant 10 : index
  %c100 = arith.constant 100 : index
  %t = arith.muli %x, %c10 : index
  %v = arith.addi %t, %y : index
  %a = tensor.from_elements %v, %c100 : tensor<2xindex>
  %r = dist.broadcast %a over @m ["y"] root = 1 : tensor<2xindex>
  return %r : tensor<2xindex>
}

// CHECK-LABEL: @scatter
// CHECK-NEXT: result0 : tensor<4xindex> = [10, 11, 100, 100]
func.func @scatter() -> (tensor<1xindex> {dist.sharding = #dist.sharding<@m, dims = [["x", "y"]]>, dist.global_type = tensor<4xindex>})
    attributes {dist.view = "local", dist.mesh = @m, dist.mesh_devices = array<i64: 0, 1, 2, 3>} {
  // Device (x, y) holds [10 x + y, 100].
  %x = dist.axis_index over @m ["x"] : index
  %y = dist.axis_index over @m ["y"] : index
  %c10 = arith.constant 10 : index
  %c100 = arith.constant 100 : index
  %t = arith.muli %x, %c10 : index
  %v = arith.addi %t, %y : index
  %a = tensor.from_elements %v, %c100 : tensor<2xindex>
  %r = dist.scatter %a over @m ["x"] dim = 0 root = 1 : tensor<2xindex> -> tensor<1xindex>
  return %r : tensor<1xindex>
}

// CHECK-LABEL: @gather
// CHECK-NEXT: result0 : tensor<16xindex> = [0, 100, 1, 100, [[P:[0-9]+]], [[P]], [[P]], [[P]], 10, 100, 11, 100, [[P]], [[P]], [[P]], [[P]]]
func.func @gather() -> (tensor<4xindex> {dist.sharding = #dist.sharding<@m, dims = [["x", "y"]]>, dist.global_type = tensor<16xindex>})
    attributes {dist.view = "local", dist.mesh = @m, dist.mesh_devices = array<i64: 0, 1, 2, 3>} {
  // Device (x, y) holds [10 x + y, 100].
  %x = dist.axis_index over @m ["x"] : index
  %y = dist.axis_index over @m ["y"] : index
  %c10 = arith.constant 10 : index
  %c100 = arith.constant 100 : index
  %t = arith.muli %x, %c10 : index
  %v = arith.addi %t, %y : index
  %a = tensor.from_elements %v, %c100 : tensor<2xindex>
  %r = dist.gather %a over @m ["y"] dim = 0 root = 0 : tensor<2xindex> -> tensor<4xindex>
  return %r : tensor<4xindex>
}

// CHECK-LABEL: @reduce
// CHECK-NEXT: result0 : tensor<8xindex> = {{\[}}[[P]], [[P]], [[P]], [[P]], 10, 200, 12, 200]
func.func @reduce() -> (tensor<2xindex> {dist.sharding = #dist.sharding<@m, dims = [["x", "y"]]>, dist.global_type = tensor<8xindex>})
    attributes {dist.view = "local", dist.mesh = @m, dist.mesh_devices = array<i64: 0, 1, 2, 3>} {
  // Device (x, y) holds [10 x + y, 100].
  %x = dist.axis_index over @m ["x"] : index
  %y = dist.axis_index over @m ["y"] : index
  %c10 = arith.constant 10 : index
  %c100 = arith.constant 100 : index
  %t = arith.muli %x, %c10 : index
  %v = arith.addi %t, %y : index
  %a = tensor.from_elements %v, %c100 : tensor<2xindex>
  %r = dist.reduce %a over @m ["x"] root = 1 reduction = sum : tensor<2xindex>
  return %r : tensor<2xindex>
}

// CHECK-LABEL: @permute
// CHECK-NEXT: result0 : tensor<8xindex> = [11, 100, 0, 100, 1, 100, 10, 100]
func.func @permute() -> (tensor<2xindex> {dist.sharding = #dist.sharding<@m, dims = [["x", "y"]]>, dist.global_type = tensor<8xindex>})
    attributes {dist.view = "local", dist.mesh = @m, dist.mesh_devices = array<i64: 0, 1, 2, 3>} {
  // Device (x, y) holds [10 x + y, 100].
  %x = dist.axis_index over @m ["x"] : index
  %y = dist.axis_index over @m ["y"] : index
  %c10 = arith.constant 10 : index
  %c100 = arith.constant 100 : index
  %t = arith.muli %x, %c10 : index
  %v = arith.addi %t, %y : index
  %a = tensor.from_elements %v, %c100 : tensor<2xindex>
  %r = dist.permute %a over @m ["x", "y"] permutation = [3, 0, 1, 2] : tensor<2xindex>
  return %r : tensor<2xindex>
}
