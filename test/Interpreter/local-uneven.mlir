// RUN: tessera-opt %s --interpret -o /dev/null | FileCheck %s

// Collectives move valid elements and no padding: five indices over four devices are 2, 2, 1, 0.
dist.process_mesh @m(shape = [2, 2], dim_names = ["x", "y"])

#cut = #dist.sharding<@m, dims = [["x", "y"]]>
// CHECK-LABEL: @all_gather
// CHECK-NEXT: result0 : tensor<5xindex> = [0, 1, 10, 11, 20]
func.func @all_gather() -> (tensor<5xindex> {dist.sharding = #dist.sharding<@m, [replicate, replicate]>, dist.global_type = tensor<5xindex>})
    attributes {dist.view = "local", dist.mesh = @m, dist.mesh_devices = array<i64: 0, 1, 2, 3>} {
  %x = dist.axis_index over @m ["x", "y"] : index
  %c10 = arith.constant 10 : index
  %t = arith.muli %x, %c10 : index
  %a = tensor.generate {
  ^bb0(%i: index):
    %s = arith.addi %t, %i : index
    tensor.yield %s : index
  } : tensor<2xindex>
  %r = dist.all_gather %a over @m ["x", "y"] dim = 0 {sources = [#cut], targets = [#dist.sharding<@m, [replicate, replicate]>], global_types = [tensor<5xindex>]}
    : tensor<2xindex> -> tensor<5xindex>
  return %r : tensor<5xindex>
}

// CHECK-LABEL: @all_to_all
// CHECK-NEXT: result0 : tensor<5x3xindex> = {{\[\[}}0, 1, 2], [10, 11, 12], [20, 21, 22], [30, 31, 32], [40, 41, 42]]
func.func @all_to_all() -> (tensor<5x2xindex> {dist.sharding = #dist.sharding<@m, [replicate, shard(1)]>, dist.global_type = tensor<5x3xindex>})
    attributes {dist.view = "local", dist.mesh = @m, dist.mesh_devices = array<i64: 0, 1, 2, 3>} {
  %y = dist.axis_index over @m ["y"] : index
  %c3 = arith.constant 3 : index
  %c10 = arith.constant 10 : index
  %row = arith.muli %y, %c3 : index
  %a = tensor.generate {
  ^bb0(%i: index, %j: index):
    %g = arith.addi %row, %i : index
    %t = arith.muli %g, %c10 : index
    %s = arith.addi %t, %j : index
    tensor.yield %s : index
  } : tensor<3x3xindex>
  %r = dist.all_to_all %a over @m ["y"] split_dim = 1 concat_dim = 0 {sources = [#dist.sharding<@m, [replicate, shard(0)]>],
      targets = [#dist.sharding<@m, [replicate, shard(1)]>], global_types = [tensor<5x3xindex>]}
    : tensor<3x3xindex> -> tensor<5x2xindex>
  return %r : tensor<5x2xindex>
}

// An input is split into parts padded with undefined elements; a device without a part has only padding.
// CHECK-LABEL: @argument
// CHECK-NEXT: result0 : tensor<8xf32> = [5, 6, 7, 8, 9, nan, nan, nan]
func.func @argument(%a: tensor<2xi32> {dist.range = [5, 6], dist.sharding = #cut, dist.global_type = tensor<5xi32>})
    -> (tensor<2xf32> {dist.sharding = #cut, dist.global_type = tensor<8xf32>})
    attributes {dist.view = "local", dist.mesh = @m, dist.mesh_devices = array<i64: 0, 1, 2, 3>} {
  %x = dist.axis_index over @m ["x", "y"] : index
  %c2 = arith.constant 2 : index
  %t = arith.muli %x, %c2 : index
  %e = tensor.empty() : tensor<2xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
    ins(%a : tensor<2xi32>) outs(%e : tensor<2xf32>) {
  ^bb0(%in: i32, %out: f32):
    %i = linalg.index 0 : index
    %g = arith.addi %t, %i : index
    %n = arith.index_cast %g : index to i32
    %s = arith.addi %in, %n : i32
    %f = arith.sitofp %s : i32 to f32
    %c10 = arith.constant 10 : i32
    %known = arith.cmpi slt, %s, %c10 : i32
    %v = arith.select %known, %f, %out : f32
    linalg.yield %v : f32
  } -> tensor<2xf32>
  return %r : tensor<2xf32>
}
