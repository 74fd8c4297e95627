// Where contributions are reduced does not depend on the size: two sums of parts send less than the value that they are
// made of, also where a device sends more than 2^30 bytes for each.
// RUN: tessera explain %s | FileCheck %s
// RUN: sed 's/32768/256/g' %s > %t.small.mlir
// RUN: tessera explain %t.small.mlir | FileCheck %s

// CHECK: collectives
// CHECK-NEXT: {{all_reduce|reduce_scatter}} {{.*}} partial sums reduced: required by operand 0 of linalg.generic
// The value itself would be twice as many bytes, as in peak memory below.
// CHECK-NOT: 4x
dist.process_mesh @mesh(shape = [2], dim_names = ["x"])
#a = affine_map<(g, i, j) -> (g, i, j)>
#s = affine_map<(g, i, j) -> (i, j)>
#m = affine_map<(i, j) -> (i, j)>
func.func @main(%a: tensor<4x32768x1048576xf32> {dist.sharding = #dist.sharding<@mesh, [shard(2)]>},
                %b: tensor<4x1048576x32768xf32> {dist.sharding = #dist.sharding<@mesh, [shard(1)]>})
    -> (tensor<32768x32768xf32> {dist.sharding = #dist.sharding<@mesh, [replicate]>},
        tensor<32768x32768xf32> {dist.sharding = #dist.sharding<@mesh, [replicate]>}) {
  %zero = arith.constant 0.0 : f32
  %pe = tensor.empty() : tensor<4x32768x32768xf32>
  %pz = linalg.fill ins(%zero : f32) outs(%pe : tensor<4x32768x32768xf32>) -> tensor<4x32768x32768xf32>
  %p = linalg.batch_matmul ins(%a, %b : tensor<4x32768x1048576xf32>, tensor<4x1048576x32768xf32>)
                           outs(%pz : tensor<4x32768x32768xf32>) -> tensor<4x32768x32768xf32>
  %e = tensor.empty() : tensor<32768x32768xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<32768x32768xf32>) -> tensor<32768x32768xf32>
  %one = linalg.generic {indexing_maps = [#a, #s], iterator_types = ["reduction", "parallel", "parallel"]}
      ins(%p : tensor<4x32768x32768xf32>) outs(%z : tensor<32768x32768xf32>) {
  ^bb0(%x: f32, %acc: f32):
    %y = arith.addf %x, %acc : f32
    linalg.yield %y : f32
  } -> tensor<32768x32768xf32>
  %two = linalg.generic {indexing_maps = [#a, #s], iterator_types = ["reduction", "parallel", "parallel"]}
      ins(%p : tensor<4x32768x32768xf32>) outs(%z : tensor<32768x32768xf32>) {
  ^bb0(%x: f32, %acc: f32):
    %g = linalg.index 0 : index
    %gi = arith.index_cast %g : index to i32
    %gf = arith.sitofp %gi : i32 to f32
    %xg = arith.mulf %x, %gf : f32
    %y = arith.addf %xg, %acc : f32
    linalg.yield %y : f32
  } -> tensor<32768x32768xf32>
  %r = math.exp %one : tensor<32768x32768xf32>
  %q = math.tanh %two : tensor<32768x32768xf32>
  return %r, %q : tensor<32768x32768xf32>, tensor<32768x32768xf32>
}
