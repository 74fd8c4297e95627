// Products of a tensor and a scalar are products without a second tensor: nothing looks for the dimensions of a scalar.
// RUN: tessera explain %s | FileCheck %s

// CHECK: collectives
// CHECK-NEXT: reduce_scatter {{.*}} 16384 B, 8192 on the wire x 1024 trips
dist.process_mesh @mesh(shape = [2], dim_names = ["x"])
#p = affine_map<(g, i) -> (g, i)>
#s = affine_map<(g, i) -> (i)>
#v = affine_map<(i) -> (i)>
#n = affine_map<(i) -> ()>
#n2 = affine_map<(g, i) -> ()>
func.func @main(%a: tensor<4x1048576xf32> {dist.sharding = #dist.sharding<@mesh, [shard(1)]>},
                %b: tensor<1048576x1024xf32> {dist.sharding = #dist.sharding<@mesh, [shard(0)]>},
                %c: tensor<1024xf32> {dist.sharding = #dist.sharding<@mesh, [replicate]>})
    -> (tensor<1024xf32> {dist.sharding = #dist.sharding<@mesh, [replicate]>}) {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %outer = arith.constant 1024 : index
  %inner = arith.constant 16 : index
  %pe = tensor.empty() : tensor<4x1024xf32>
  %pz = linalg.fill ins(%zero : f32) outs(%pe : tensor<4x1024xf32>) -> tensor<4x1024xf32>
  %e = tensor.empty() : tensor<1024xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<1024xf32>) -> tensor<1024xf32>
  %r = scf.for %i = %c0 to %outer step %c1 iter_args(%x = %c) -> (tensor<1024xf32>) {
    %ii = arith.index_cast %i : index to i32
    %if = arith.sitofp %ii : i32 to f32
    %ae = tensor.empty() : tensor<4x1048576xf32>
    %as = linalg.generic {indexing_maps = [#p, #n2, #p], iterator_types = ["parallel", "parallel"]}
        ins(%a, %if : tensor<4x1048576xf32>, f32) outs(%ae : tensor<4x1048576xf32>) {
    ^bb0(%u: f32, %f: f32, %o: f32):
      %w0 = arith.mulf %u, %f : f32
      %w = math.exp %w0 : f32
      linalg.yield %w : f32
    } -> tensor<4x1048576xf32>
    %m = linalg.matmul ins(%as, %b : tensor<4x1048576xf32>, tensor<1048576x1024xf32>)
                       outs(%pz : tensor<4x1024xf32>) -> tensor<4x1024xf32>
    %y = scf.for %j = %c0 to %inner step %c1 iter_args(%k = %x) -> (tensor<1024xf32>) {
      %ji = arith.index_cast %j : index to i32
      %jf = arith.sitofp %ji : i32 to f32
      %sum = linalg.generic {indexing_maps = [#p, #n2, #s], iterator_types = ["reduction", "parallel"]}
          ins(%m, %jf : tensor<4x1024xf32>, f32) outs(%z : tensor<1024xf32>) {
      ^bb0(%u: f32, %f: f32, %acc: f32):
        %uf = arith.mulf %u, %f : f32
        %w = arith.addf %uf, %acc : f32
        linalg.yield %w : f32
      } -> tensor<1024xf32>
      %next = linalg.generic {indexing_maps = [#v, #v, #v], iterator_types = ["parallel"]}
          ins(%sum, %k : tensor<1024xf32>, tensor<1024xf32>) outs(%e : tensor<1024xf32>) {
      ^bb0(%u: f32, %t: f32, %o: f32):
        %w0 = arith.addf %u, %t : f32
        %w = math.tanh %w0 : f32
        linalg.yield %w : f32
      } -> tensor<1024xf32>
      scf.yield %next : tensor<1024xf32>
    }
    scf.yield %y : tensor<1024xf32>
  }
  return %r : tensor<1024xf32>
}
