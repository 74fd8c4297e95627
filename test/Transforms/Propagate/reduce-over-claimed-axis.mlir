// RUN: tessera-opt %s --dist-guard --dist-normalize --dist-propagate | FileCheck %s
// RUN: tessera run %s --check

// The second product takes contributions over "a1" and "a2" and gathers its vector over "a2". Its other cuts
// over "a2" are tried instead of the gather: contributions cannot stay partial over an axis that cuts a loop.
// CHECK: linalg.matmul {{.*}}dist.op_sharding = {{.*}}factors = {{\[\[\], \["a0"\], \["a2", "a1"\]\]}}>
// CHECK: linalg.vecmat {dist.op_sharding = {{.*}}factors = {{\[\["a0"\], \[\]\]}}, forwards = [sum("a1") from [1, 2], sum("a2") from [1, 2]]>
dist.process_mesh @m(shape = [2, 1, 4], dim_names = ["a0", "a1", "a2"])

#a = affine_map<(i, j, k) -> (i, k)>
#b = affine_map<(i, j, k) -> (j, k)>
#c = affine_map<(i, j, k) -> (i, j)>

func.func @main(
    %a: tensor<4x5xi32> {dist.sharding = #dist.sharding<@m, [?, replicate, shard(0)]>},
    %b: tensor<12x5xi32> {dist.sharding = #dist.sharding<@m, dims = [["a0"], ["a2", "a1"]]>},
    %acc: tensor<4x12xi32> {dist.sharding = #dist.sharding<@m, [shard(0)], priority = 0>},
    %v: tensor<4xi32> {dist.sharding = #dist.sharding<@m, dims = [["a1", "a2":(1)2]], open = ["a0", "a2":(2)2]>})
    -> tensor<12xi32> {
  %p = linalg.matmul indexing_maps = [#a, #b, #c] ins(%a, %b : tensor<4x5xi32>, tensor<12x5xi32>)
      outs(%acc : tensor<4x12xi32>) -> tensor<4x12xi32>
  %zero = arith.constant dense<0> : tensor<12xi32>
  %y = linalg.vecmat ins(%v, %p : tensor<4xi32>, tensor<4x12xi32>) outs(%zero : tensor<12xi32>) -> tensor<12xi32>
  return %y : tensor<12xi32>
}
