// The report lists overlapped collectives; results equal those of one device on threads and on the stub GPU.
// RUN: tessera explain %s --topology %S/Inputs/own_cores.json | FileCheck %s --check-prefix=PLAIN
// RUN: tessera explain %s --overlap --topology %S/Inputs/own_cores.json | FileCheck %s
// RUN: tessera run %s --overlap --check --topology %S/Inputs/own_cores.json
// RUN: tessera run %s --overlap --check --backend stub --topology %S/Inputs/own_cores.json
// RUN: not tessera-opt %s --dist-overlap-collectives=memory-budget=-1 2>&1 | FileCheck %s --check-prefix=BUDGET

// Where devices communicate on the cores that they compute on, nothing is hidden, and the program stays synchronous.
// RUN: tessera explain %s --overlap --topology %source/share/topologies/2core.json | FileCheck %s --check-prefix=PLAIN

// PLAIN-NOT: overlapped
// CHECK: all_reduce {{.*}} (overlapped: {{.*}} of {{.*}} exposed)
// CHECK: modelled on own_cores: {{.*}} of communication exposed
// BUDGET: error: dist-overlap-collectives: memory-budget -1.00 is not valid: expected a number of GiB, or 0 for no budget
dist.process_mesh @line(shape = [4], dim_names = ["d"])

#transposed = affine_map<(i, j, k) -> (k, i)>
#right = affine_map<(i, j, k) -> (k, j)>
#result = affine_map<(i, j, k) -> (i, j)>
#each = affine_map<(i, j) -> (i, j)>

// Two gradients, summed over the batch: the first sum overlaps with the computation of the second gradient.
func.func @main(%x: tensor<256x640xf32> {dist.name = "x", dist.sharding = #dist.sharding<@line, [shard(0)]>},
                %y: tensor<256x640xf32> {dist.name = "y", dist.sharding = #dist.sharding<@line, [shard(0)]>},
                %w: tensor<640x640xf32> {dist.name = "w"})
    -> (tensor<640x640xf32> {dist.name = "first", dist.sharding = #dist.sharding<@line, [replicate]>},
        tensor<640x640xf32> {dist.name = "second", dist.sharding = #dist.sharding<@line, [replicate]>}) {
  %zero = arith.constant dense<0.0> : tensor<640x640xf32>
  %empty = tensor.empty() : tensor<640x640xf32>
  %g = linalg.generic {indexing_maps = [#transposed, #right, #result], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %y : tensor<256x640xf32>, tensor<256x640xf32>) outs(%zero : tensor<640x640xf32>) {
  ^bb0(%a: f32, %b: f32, %sum: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %sum, %p : f32
    linalg.yield %s : f32
  } -> tensor<640x640xf32>

  %h = linalg.generic {indexing_maps = [#transposed, #right, #result], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%y, %y : tensor<256x640xf32>, tensor<256x640xf32>) outs(%w : tensor<640x640xf32>) {
  ^bb0(%a: f32, %b: f32, %sum: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %sum, %p : f32
    linalg.yield %s : f32
  } -> tensor<640x640xf32>

  return %g, %h : tensor<640x640xf32>, tensor<640x640xf32>
}
