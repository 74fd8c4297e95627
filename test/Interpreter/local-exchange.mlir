// RUN: tessera-opt %s --interpret -o /dev/null | FileCheck %s

// An exchange gives each device the elements of its new layout.
dist.process_mesh @m(shape = [2, 2], dim_names = ["x", "y"])

// CHECK-LABEL: @main
// CHECK-NEXT: result0 : tensor<4x4xindex> = {{\[\[}}0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11], [12, 13, 14, 15]]
func.func @main() -> (tensor<4x2xindex> {dist.sharding = #dist.sharding<@m, [shard(1), replicate]>, dist.global_type = tensor<4x4xindex>})
    attributes {dist.view = "local", dist.mesh = @m, dist.mesh_devices = array<i64: 0, 1, 2, 3>} {
  %x = dist.axis_index over @m ["x", "y"] : index
  %c4 = arith.constant 4 : index
  %t = arith.muli %x, %c4 : index
  %a = tensor.generate {
  ^bb0(%i: index, %j: index):
    %s = arith.addi %t, %j : index
    tensor.yield %s : index
  } : tensor<1x4xindex>
  %r = dist.exchange %a from #dist.sharding<@m, [shard(0), shard(0)]> to #dist.sharding<@m, [shard(1), shard(0)]> : tensor<1x4xindex> -> tensor<2x2xindex>
  %p = dist.exchange %r from #dist.sharding<@m, [shard(1), shard(0)]> to #dist.sharding<@m, [shard(1), replicate]> : tensor<2x2xindex> -> tensor<4x2xindex>
  return %p : tensor<4x2xindex>
}
