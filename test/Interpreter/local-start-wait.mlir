// RUN: tessera-opt %s --interpret -o /dev/null | FileCheck %s

// The result of a started collective is available after the wait.
dist.process_mesh @m(shape = [2, 2], dim_names = ["x", "y"])

// CHECK-LABEL: @main
// CHECK-NEXT: result0 : tensor<8xindex> = [1, 400, 3, 400, 41, 400, 43, 400]
func.func @main() -> (tensor<2xindex> {dist.sharding = #dist.sharding<@m, dims = [["x", "y"]]>, dist.global_type = tensor<8xindex>})
    attributes {dist.view = "local", dist.mesh = @m, dist.mesh_devices = array<i64: 0, 1, 2, 3>} {
  // Device (x, y) holds [10 x + y, 100].
  %x = dist.axis_index over @m ["x"] : index
  %y = dist.axis_index over @m ["y"] : index
  %c10 = arith.constant 10 : index
  %c100 = arith.constant 100 : index
  %t = arith.muli %x, %c10 : index
  %v = arith.addi %t, %y : index
  %a = tensor.from_elements %v, %c100 : tensor<2xindex>
  %token = dist.start {
    %s = dist.all_reduce %a over @m ["y"] reduction = sum : tensor<2xindex>
    dist.yield %s : tensor<2xindex>
  } : !dist.token<tensor<2xindex>>
  %b = arith.addi %a, %a : tensor<2xindex>
  %q = dist.wait %token : !dist.token<tensor<2xindex>> -> tensor<2xindex>
  %r = arith.addi %q, %b : tensor<2xindex>
  return %r : tensor<2xindex>
}
