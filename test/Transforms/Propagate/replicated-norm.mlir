// RUN: tessera explain %s | FileCheck %s
// RUN: tessera run %s --check
// RUN: tessera-opt %s --tessera-pipeline="compile-to=propagated" | FileCheck %s --check-prefix=CUT

// Queries are cut by columns, keys by rows, like the cache. The queries need the norm of the replicated
// rows whole: it is computed whole, not cut for the keys and gathered (7/8 of 131072 bytes).
// CHECK: collectives
// CHECK-NOT: on the wire {{.*}} operand 0 of linalg.contract
// CHECK: total: {{[01]}} {{collectives?}}, {{[0-9]?[0-9]?[0-9]}} bytes
// CUT-LABEL: func.func @main(
// CUT: "parallel", "reduction"]} {{.*}}factors = {{\[\["t"\], \[\]\]}}>
// CUT: linalg.matmul {dist.op_sharding = #dist.op_sharding<@m, factors = {{\[\[\], \["t"\], \[\]\]}}>
// CUT: linalg.matmul {dist.op_sharding = #dist.op_sharding<@m, factors = {{\[\["t"\], \[\], \[\]\]}}>
dist.process_mesh @m(shape = [8], dim_names = ["t"])

#rows = affine_map<(i, j) -> (i)>
#id = affine_map<(i, j) -> (i, j)>

func.func @main(%x: tensor<64x512xf32> {dist.sharding = #dist.sharding<@m, [replicate]>},
                %wq: tensor<512x512xf32> {dist.sharding = #dist.sharding<@m, [shard(1)]>},
                %wk: tensor<512x64xf32> {dist.sharding = #dist.sharding<@m, [replicate]>},
                %cache: tensor<64x64xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>})
    -> (tensor<64x512xf32> {dist.sharding = #dist.sharding<@m, [shard(1)]>},
        tensor<64x64xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>}) {
  %square = arith.mulf %x, %x : tensor<64x512xf32>
  %zero = arith.constant dense<0.0> : tensor<64xf32>
  %sum = linalg.generic {indexing_maps = [#id, #rows], iterator_types = ["parallel", "reduction"]}
      ins(%square : tensor<64x512xf32>) outs(%zero : tensor<64xf32>) {
  ^bb0(%in: f32, %out: f32):
    %s = arith.addf %out, %in : f32
    linalg.yield %s : f32
  } -> tensor<64xf32>
  %scale = math.rsqrt %sum : tensor<64xf32>
  %empty = tensor.empty() : tensor<64x512xf32>
  %norm = linalg.generic {indexing_maps = [#id, #rows, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %scale : tensor<64x512xf32>, tensor<64xf32>) outs(%empty : tensor<64x512xf32>) {
  ^bb0(%in: f32, %by: f32, %out: f32):
    %s = arith.mulf %in, %by : f32
    linalg.yield %s : f32
  } -> tensor<64x512xf32>
  %zq = arith.constant dense<0.0> : tensor<64x512xf32>
  %q = linalg.matmul ins(%norm, %wq : tensor<64x512xf32>, tensor<512x512xf32>) outs(%zq : tensor<64x512xf32>) -> tensor<64x512xf32>
  %zk = arith.constant dense<0.0> : tensor<64x64xf32>
  %k = linalg.matmul ins(%norm, %wk : tensor<64x512xf32>, tensor<512x64xf32>) outs(%zk : tensor<64x64xf32>) -> tensor<64x64xf32>
  %new = arith.addf %cache, %k : tensor<64x64xf32>
  return %q, %new : tensor<64x512xf32>, tensor<64x64xf32>
}
