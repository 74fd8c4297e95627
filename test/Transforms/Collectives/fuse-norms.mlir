// RUN: tessera explain %s | FileCheck %s
// RUN: tessera run %s --check=interpreter

// The second mean joins the first one, although the first variance is reduced before it in the program: so both
// variances are reduced together, too.
// CHECK: all_reduce {{.*}} 96 B
// CHECK: all_reduce {{.*}} 96 B
// CHECK: total: 2 collectives

dist.process_mesh @m(shape = [4], dim_names = ["x"])

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>

func.func private @deviations(%x: tensor<12x8xf32>) -> (tensor<12x8xf32>, tensor<12xf32>) {
  %z = arith.constant dense<0.0> : tensor<12xf32>
  %e = tensor.empty() : tensor<12x8xf32>
  %sum = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<12x8xf32>) outs(%z : tensor<12xf32>) {
  ^bb0(%in: f32, %acc: f32):
    %s = arith.addf %acc, %in : f32
    linalg.yield %s : f32
  } -> tensor<12xf32>
  %d = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%x, %sum : tensor<12x8xf32>, tensor<12xf32>) outs(%e : tensor<12x8xf32>) {
  ^bb0(%in: f32, %m: f32, %o: f32):
    %n = arith.constant 8.0 : f32
    %q = arith.divf %m, %n : f32
    %s = arith.subf %in, %q : f32
    linalg.yield %s : f32
  } -> tensor<12x8xf32>
  %v = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%d : tensor<12x8xf32>) outs(%z : tensor<12xf32>) {
  ^bb0(%in: f32, %acc: f32):
    %p = arith.mulf %in, %in : f32
    %s = arith.addf %acc, %p : f32
    linalg.yield %s : f32
  } -> tensor<12xf32>
  return %d, %v : tensor<12x8xf32>, tensor<12xf32>
}

func.func @main(%x: tensor<12x8xf32> {dist.sharding = #dist.sharding<@m, [shard(1)]>}, %y: tensor<12x8xf32> {dist.sharding = #dist.sharding<@m, [shard(1)]>})
    -> (tensor<12x8xf32> {dist.sharding = #dist.sharding<@m, [shard(1)]>}, tensor<12xf32> {dist.sharding = #dist.sharding<@m, [replicate]>},
        tensor<12x8xf32> {dist.sharding = #dist.sharding<@m, [shard(1)]>}, tensor<12xf32> {dist.sharding = #dist.sharding<@m, [replicate]>}) {
  %0:2 = call @deviations(%x) : (tensor<12x8xf32>) -> (tensor<12x8xf32>, tensor<12xf32>)
  %1:2 = call @deviations(%y) : (tensor<12x8xf32>) -> (tensor<12x8xf32>, tensor<12xf32>)
  return %0#0, %0#1, %1#0, %1#1 : tensor<12x8xf32>, tensor<12xf32>, tensor<12x8xf32>, tensor<12xf32>
}
