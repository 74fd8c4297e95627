// A plan does not change where bytes times devices exceed 64 bits: the product is computed in rows, from exchanged rows
// of one operand and all of the other. Its sum over the devices would be 2^50 bytes.
// RUN: tessera explain %s | FileCheck %s
// RUN: sed 's/16777216/8388608/g' %s > %t.half.mlir
// RUN: tessera explain %t.half.mlir | FileCheck %s

// CHECK: collectives
// CHECK-NEXT: all_to_all
// CHECK-NEXT: all_gather
// CHECK-NEXT: total: 2 collectives
dist.process_mesh @mesh(shape = [8192], dim_names = ["x"])
func.func @main(%a: tensor<16777216x8192xf32> {dist.sharding = #dist.sharding<@mesh, [shard(1)]>},
                %b: tensor<8192x16777216xf32> {dist.sharding = #dist.sharding<@mesh, [shard(0)]>})
    -> (tensor<16777216x16777216xf32> {dist.sharding = #dist.sharding<@mesh, [shard(0)]>}) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<16777216x16777216xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<16777216x16777216xf32>) -> tensor<16777216x16777216xf32>
  %r = linalg.matmul ins(%a, %b : tensor<16777216x8192xf32>, tensor<8192x16777216xf32>) outs(%f : tensor<16777216x16777216xf32>) -> tensor<16777216x16777216xf32>
  return %r : tensor<16777216x16777216xf32>
}
