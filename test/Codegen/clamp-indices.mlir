// Indices far out of bounds, on both sides, are clamped to the first and last element (docs/numerics.md): on CPU and GPU, sharded or not.
// RUN: tessera run %s --check=interpreter | FileCheck %s
// RUN: tessera run %s --check=interpreter --backend stub | FileCheck %s
// RUN: tessera-opt %s --tessera-pipeline --interpret=elements=0 -o /dev/null

// CHECK-COUNT-6: {{^check  result[0-5]  ok}}
dist.process_mesh @m(shape = [2], dim_names = ["d"])
func.func @main(%t: tensor<7x6xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>},
                %p: tensor<3x6xf32>,
                %at: tensor<16xindex> {dist.range = [-200000000, 200000000]},
                %near: tensor<16x1xi32> {dist.range = [-9, 16], dist.sharding = #dist.sharding<@m, [shard(0)]>},
                %one: tensor<1x2xi64> {dist.range = [-90000000, -9]})
    -> (tensor<16xf32>, tensor<16xf32>, tensor<3x6xf32>, tensor<7x6xf32>, tensor<16x6xf32>, tensor<7x6xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %c3 = arith.constant 3 : index
  // In a body.
  %e = tensor.empty() : tensor<16xf32>
  %read = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
    ins(%at : tensor<16xindex>) outs(%e : tensor<16xf32>) {
  ^bb0(%i: index, %out: f32):
    %j = arith.subi %c3, %i : index
    %x = tensor.extract %t[%i, %j] : tensor<7x6xf32>
    linalg.yield %x : f32
  } -> tensor<16xf32>
  // Elements and slices between steps.
  %z = arith.constant dense<0.0> : tensor<16xf32>
  %zs = arith.constant dense<0.0> : tensor<3x6xf32>
  %taken, %sum, %put = scf.for %k = %c0 to %c16 step %c1 iter_args(%a = %z, %s = %zs, %w = %t)
      -> (tensor<16xf32>, tensor<3x6xf32>, tensor<7x6xf32>) {
    %i = tensor.extract %at[%k] : tensor<16xindex>
    %x = tensor.extract %t[%i, %k] : tensor<7x6xf32>
    %far = arith.muli %k, %i : index
    %a1 = tensor.insert %x into %a[%far] : tensor<16xf32>
    %part = tensor.extract_slice %t[%i, 0] [3, 6] [2, 1] : tensor<7x6xf32> to tensor<3x6xf32>
    %s1 = arith.addf %s, %part : tensor<3x6xf32>
    %w1 = tensor.insert_slice %p into %w[%i, 0] [3, 6] [1, 1] : tensor<3x6xf32> into tensor<7x6xf32>
    scf.yield %a1, %s1, %w1 : tensor<16xf32>, tensor<3x6xf32>, tensor<7x6xf32>
  }
  %rows = tensor.gather %t[%near] gather_dims([0]) : (tensor<7x6xf32>, tensor<16x1xi32>) -> tensor<16x6xf32>
  %x1 = arith.constant dense<5.0> : tensor<1xf32>
  %scattered = tensor.scatter %x1 into %t[%one] scatter_dims([0, 1]) unique : (tensor<1xf32>, tensor<7x6xf32>, tensor<1x2xi64>) -> tensor<7x6xf32>
  return %read, %taken, %sum, %put, %rows, %scattered
    : tensor<16xf32>, tensor<16xf32>, tensor<3x6xf32>, tensor<7x6xf32>, tensor<16x6xf32>, tensor<7x6xf32>
}
