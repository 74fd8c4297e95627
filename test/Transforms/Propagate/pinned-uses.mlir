// RUN: tessera-opt %s --tessera-pipeline | FileCheck %s
// RUN: tessera-opt %s --tessera-pipeline="compile-to=propagated" | FileCheck %s --check-prefix=CUT

// A value pinned whole is cut further for one use. The sum uses that cut, too, and the value is
// reduce-scattered immediately instead of being all-reduced.
// CUT-LABEL: func.func @main(
// CUT: linalg.matmul {dist.op_sharding = #dist.op_sharding<@m, factors = {{\[\[\], \[\], \["t"\]\]}}>
// CUT: "parallel", "parallel"]} {{.*}}factors = {{\[\["t"\], \[\]\]}}>
// CUT: "reduction", "parallel"]} {{.*}}factors = {{\[\["t"\], \[\]\]}}>
dist.process_mesh @m(shape = [4], dim_names = ["t"])

// CHECK-LABEL: func.func @main(
// CHECK-NOT: dist.all_gather
// CHECK: dist.reduce_scatter
// CHECK-NOT: dist.reduce_scatter
// CHECK: dist.all_reduce {{.*}} : tensor<64xf32>
// CHECK-NOT: dist.all_reduce
#id = affine_map<(d0, d1) -> (d0, d1)>
#col = affine_map<(d0, d1) -> (d1)>
func.func @main(%a: tensor<256x64xf32> {dist.sharding = #dist.sharding<@m, [shard(1)]>},
                %b: tensor<64x64xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>},
                %h: tensor<256x64xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>})
    -> (tensor<256x64xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>},
        tensor<64xf32> {dist.sharding = #dist.sharding<@m, [replicate]>}) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<256x64xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<256x64xf32>) -> tensor<256x64xf32>
  %p = linalg.matmul ins(%a, %b : tensor<256x64xf32>, tensor<64x64xf32>) outs(%f : tensor<256x64xf32>) -> tensor<256x64xf32>
  %c = dist.shard_tensor %p, #dist.sharding<@m, [replicate]> : tensor<256x64xf32>
  %r = arith.mulf %c, %h : tensor<256x64xf32>
  %es = tensor.empty() : tensor<64xf32>
  %fs = linalg.fill ins(%zero : f32) outs(%es : tensor<64xf32>) -> tensor<64xf32>
  %s = linalg.generic {indexing_maps = [#id, #col], iterator_types = ["reduction", "parallel"]} ins(%c : tensor<256x64xf32>) outs(%fs : tensor<64xf32>) {
  ^bb0(%x: f32, %acc: f32):
    %n = arith.addf %acc, %x : f32
    linalg.yield %n : f32
  } -> tensor<64xf32>
  return %r, %s : tensor<256x64xf32>, tensor<64xf32>
}
