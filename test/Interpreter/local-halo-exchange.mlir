// RUN: tessera-opt %s --interpret -o /dev/null | FileCheck %s

// Neighbors send their edges; elements outside the tensor are the fill, or undefined.
dist.process_mesh @m(shape = [2, 2], dim_names = ["x", "y"])

// CHECK-LABEL: @filled
// CHECK-NEXT: result0 : tensor<20xindex> = [7, 0, 100, 1, 100, 100, 1, 100, 10, 100, 100, 10, 100, 11, 100, 100, 11, 100, 7, 7]
func.func @filled() -> (tensor<5xindex> {dist.sharding = #dist.sharding<@m, dims = [["x", "y"]]>, dist.global_type = tensor<20xindex>})
    attributes {dist.view = "local", dist.mesh = @m, dist.mesh_devices = array<i64: 0, 1, 2, 3>} {
  // Device (x, y) holds [10 x + y, 100].
  %x = dist.axis_index over @m ["x"] : index
  %y = dist.axis_index over @m ["y"] : index
  %c10 = arith.constant 10 : index
  %c100 = arith.constant 100 : index
  %t = arith.muli %x, %c10 : index
  %v = arith.addi %t, %y : index
  %a = tensor.from_elements %v, %c100 : tensor<2xindex>
  %r = dist.halo_exchange %a over @m ["x", "y"] dim = 0 low = 1 high = 2 {fill = 7 : index} : tensor<2xindex> -> tensor<5xindex>
  return %r : tensor<5xindex>
}
