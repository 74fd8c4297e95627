// RUN: tessera-opt %s --interpret -o /dev/null | FileCheck %s

// A new partial keeps the value on coordinate 0 and the identity elsewhere; a result annotated
// partial is reduced when it is assembled, and a partial argument is created from its global value.
dist.process_mesh @m(shape = [2, 2], dim_names = ["x", "y"])

// CHECK-LABEL: @make_partial
// CHECK-NEXT: result0 : tensor<8xindex> = [-1, 99, 9223372036854775806, 9223372036854775806, 9, 99, 9223372036854775806, 9223372036854775806]
func.func @make_partial() -> (tensor<2xindex> {dist.sharding = #dist.sharding<@m, dims = [["x", "y"]]>, dist.global_type = tensor<8xindex>})
    attributes {dist.view = "local", dist.mesh = @m, dist.mesh_devices = array<i64: 0, 1, 2, 3>} {
  // Device (x, y) holds [10 x + y, 100].
  %x = dist.axis_index over @m ["x"] : index
  %y = dist.axis_index over @m ["y"] : index
  %c10 = arith.constant 10 : index
  %c100 = arith.constant 100 : index
  %t = arith.muli %x, %c10 : index
  %v = arith.addi %t, %y : index
  %a = tensor.from_elements %v, %c100 : tensor<2xindex>
  %p = dist.make_partial %a over @m ["y"] reduction = min : tensor<2xindex>
  %one = arith.constant dense<1> : tensor<2xindex>
  %s = arith.subi %p, %one : tensor<2xindex>
  return %s : tensor<2xindex>
}

// CHECK-LABEL: @result
// CHECK-NEXT: result0 : tensor<4xindex> = [1, 200, 21, 200]
func.func @result() -> (tensor<2xindex> {dist.sharding = #dist.sharding<@m, [shard(0), partial(sum)]>, dist.global_type = tensor<4xindex>})
    attributes {dist.view = "local", dist.mesh = @m, dist.mesh_devices = array<i64: 0, 1, 2, 3>} {
  // Device (x, y) holds [10 x + y, 100].
  %x = dist.axis_index over @m ["x"] : index
  %y = dist.axis_index over @m ["y"] : index
  %c10 = arith.constant 10 : index
  %c100 = arith.constant 100 : index
  %t = arith.muli %x, %c10 : index
  %v = arith.addi %t, %y : index
  %a = tensor.from_elements %v, %c100 : tensor<2xindex>
  return %a : tensor<2xindex>
}

// CHECK-LABEL: @argument
// CHECK-NEXT: result0 : tensor<4xindex> = [2, 0, 0, 0]
func.func @argument(%a: tensor<1xindex> {dist.range = [2, 3], dist.sharding = #dist.sharding<@m, [partial(sum), partial(sum)]>, dist.global_type = tensor<1xindex>})
    -> (tensor<1xindex> {dist.sharding = #dist.sharding<@m, dims = [["x", "y"]]>, dist.global_type = tensor<4xindex>})
    attributes {dist.view = "local", dist.mesh = @m, dist.mesh_devices = array<i64: 0, 1, 2, 3>} {
  // Rule C6 would reject contributions returned as parts; the result of a move is unknown to it.
  %b = dist.permute %a over @m ["x"] permutation = [0, 1] : tensor<1xindex> -> tensor<1xindex>
  return %b : tensor<1xindex>
}
