// RUN: tessera-opt %s --tessera-pipeline="compile-to=resharded" | FileCheck %s
// RUN: tessera-opt %s --tessera-pipeline="compile-to=propagated" | FileCheck %s --check-prefix=CUT

// Rows of %x and columns of the weights claim the same axis, as in sequence parallelism. Gathering
// %x once for the three products costs less than gathering three weights, though not less than
// gathering one: they are decided together, and the elementwise op between takes the cheapest cut
// for its neighbors.

// CUT-LABEL: func.func @shared(
// CUT: linalg.matmul {dist.op_sharding = #dist.op_sharding<@m, factors = {{\[\[\], \["t"\], \[\]\]}}>
// CUT: linalg.matmul {dist.op_sharding = #dist.op_sharding<@m, factors = {{\[\[\], \["t"\], \[\]\]}}>
// CUT: linalg.matmul {dist.op_sharding = #dist.op_sharding<@m, factors = {{\[\[\], \[\], \["t"\]\]}}>
dist.process_mesh @m(shape = [4], dim_names = ["t"])

// CHECK-LABEL: func.func @shared(
// CHECK: %[[X:.*]] = dist.reshard %arg0 to #dist.sharding<@m, [replicate]>
// CHECK-NOT: dist.reshard {{.*}}replicate
// CHECK: linalg.matmul {{.*}}[shard(1)]{{.*}} ins(%[[X]], %arg1
// CHECK-NOT: dist.reshard {{.*}}replicate
// CHECK: linalg.matmul {{.*}}[shard(1)]{{.*}} ins(%[[X]], %arg2
// CHECK-NOT: dist.reshard {{.*}}replicate
// CHECK: linalg.matmul {{.*}}[partial(sum)]
// CHECK: dist.reshard {{.*}} to #dist.sharding<@m, [shard(0)]>
func.func @shared(%x: tensor<64x64xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>},
                  %u: tensor<64x64xf32> {dist.sharding = #dist.sharding<@m, [shard(1)]>},
                  %v: tensor<64x64xf32> {dist.sharding = #dist.sharding<@m, [shard(1)]>},
                  %w: tensor<64x64xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>})
    -> (tensor<64x64xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>}) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x64xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
  %a = linalg.matmul ins(%x, %u : tensor<64x64xf32>, tensor<64x64xf32>) outs(%f : tensor<64x64xf32>) -> tensor<64x64xf32>
  %b = linalg.matmul ins(%x, %v : tensor<64x64xf32>, tensor<64x64xf32>) outs(%f : tensor<64x64xf32>) -> tensor<64x64xf32>
  %ta = math.tanh %a : tensor<64x64xf32>
  %p = arith.mulf %ta, %b : tensor<64x64xf32>
  %y = linalg.matmul ins(%p, %w : tensor<64x64xf32>, tensor<64x64xf32>) outs(%f : tensor<64x64xf32>) -> tensor<64x64xf32>
  return %y : tensor<64x64xf32>
}
