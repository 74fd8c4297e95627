// RUN: tessera explain %s | FileCheck %s
// RUN: tessera run %s --check

// Parts are exchanged with the opposite device, along one of two cut dimensions.

dist.process_mesh @grid(shape = [2, 3], dim_names = ["x", "y"])

#back = affine_map<(d0, d1) -> (-d0 + 11, d1)>
#id = affine_map<(d0, d1) -> (d0, d1)>

// A part is 6 x 3 elements.
// CHECK: exchange {{.*}} 72 on the wire
// CHECK: total: 1 collective, 72 bytes on the wire
func.func @main(%x: tensor<12x9xf32> {dist.sharding = #dist.sharding<@grid, [shard(0), shard(1)]>})
    -> (tensor<12x9xf32> {dist.sharding = #dist.sharding<@grid, [shard(0), shard(1)]>}) {
  %init = tensor.empty() : tensor<12x9xf32>
  %y = linalg.generic {indexing_maps = [#back, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<12x9xf32>) outs(%init : tensor<12x9xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<12x9xf32>
  return %y : tensor<12x9xf32>
}
