// A product with gathered weights is decomposed: one part is multiplied while the next is gathered. Parts may
// use another kernel than the whole, so that bits may differ from those without overlap, but not between runs.
// RUN: tessera explain %s --overlap --topology %S/Inputs/own_cores.json | FileCheck %s
// RUN: tessera run %s --overlap --check=compiled --topology %S/Inputs/own_cores.json | grep checksum > %t.threads
// RUN: tessera run %s --overlap --backend stub --schedule-seed 1 --topology %S/Inputs/own_cores.json | grep checksum > %t.one
// RUN: tessera run %s --overlap --backend stub --schedule-seed 7 --topology %S/Inputs/own_cores.json | grep checksum > %t.other
// RUN: diff %t.threads %t.one
// RUN: diff %t.one %t.other

// CHECK-COUNT-8: all_gather {{.*}} 524288 B, {{.*}} (overlapped:
// CHECK: modelled on own_cores: {{.*}} of communication exposed
dist.process_mesh @line(shape = [4], dim_names = ["d"])

#left = affine_map<(i, j, k) -> (i, k)>
#right = affine_map<(i, j, k) -> (k, j)>
#result = affine_map<(i, j, k) -> (i, j)>

func.func @main(%x: tensor<2048x4096xf32> {dist.name = "x", dist.sharding = #dist.sharding<@line, [shard(0)]>},
                %w: tensor<4096x256xf32> {dist.name = "w", dist.sharding = #dist.sharding<@line, [shard(0)]>})
    -> (tensor<2048x256xf32> {dist.name = "y", dist.sharding = #dist.sharding<@line, [shard(0)]>}) {
  %zero = arith.constant dense<0.0> : tensor<2048x256xf32>
  %y = linalg.contract indexing_maps = [#left, #right, #result] ins(%x, %w : tensor<2048x4096xf32>, tensor<4096x256xf32>) outs(%zero : tensor<2048x256xf32>) -> tensor<2048x256xf32>
  return %y : tensor<2048x256xf32>
}
