// RUN: tessera-opt %s --tessera-pipeline="compile-to=partitioned" | FileCheck %s
// RUN: tessera run %s --function main --check
// RUN: tessera run %s --function added --check

// Rows of experts are added to the tokens that they come from. With updates cut over experts each device
// would contribute to all rows, 1,048,576 bytes to reduce; by columns a device adds up its columns
// of all updates, and two all-to-alls move an eighth of that each.
dist.process_mesh @line(shape = [8], dim_names = ["e"])

#updates = affine_map<(r, d, e, k) -> (e, k, d)>
#indices = affine_map<(r, d, e, k) -> (e, k)>
#rows = affine_map<(r, d, e, k) -> (r, d)>

// CHECK-LABEL: func.func @main(
// CHECK-NOT: dist.reduce_scatter
// CHECK-COUNT-2: dist.all_to_all
// CHECK-NOT: dist.reduce_scatter
// CHECK: return
func.func @main(%y: tensor<8x256x64xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>},
                %i: tensor<8x256xi32> {dist.sharding = #dist.sharding<@line, [shard(0)]>})
    -> (tensor<4096x64xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>}) {
  %zero = arith.constant dense<0.0> : tensor<4096x64xf32>
  %r = linalg.generic {indexing_maps = [#updates, #indices, #rows],
                       iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
      ins(%y, %i : tensor<8x256x64xf32>, tensor<8x256xi32>) outs(%zero : tensor<4096x64xf32>) {
  ^bb0(%u: f32, %at: i32, %acc: f32):
    %row = linalg.index 0 : index
    %here = arith.index_cast %row : index to i32
    %is = arith.cmpi eq, %at, %here : i32
    %none = arith.constant 0.0 : f32
    %term = arith.select %is, %u, %none : f32
    %sum = arith.addf %acc, %term : f32
    linalg.yield %sum : f32
  } -> tensor<4096x64xf32>
  return %r : tensor<4096x64xf32>
}

// Contributions that are added to others are reduced once, behind the addition.
// CHECK-LABEL: func.func @added(
// CHECK-NOT: dist.all_to_all
// CHECK: dist.reduce_scatter
// CHECK-NOT: dist.all_to_all
// CHECK: return
func.func @added(%y: tensor<8x256x64xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>},
                 %i: tensor<8x256xi32> {dist.sharding = #dist.sharding<@line, [shard(0)]>},
                 %a: tensor<4096x512xf32> {dist.sharding = #dist.sharding<@line, [shard(1)]>},
                 %b: tensor<512x64xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>})
    -> (tensor<4096x64xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>}) {
  %zero = arith.constant dense<0.0> : tensor<4096x64xf32>
  %r = linalg.generic {indexing_maps = [#updates, #indices, #rows],
                       iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
      ins(%y, %i : tensor<8x256x64xf32>, tensor<8x256xi32>) outs(%zero : tensor<4096x64xf32>) {
  ^bb0(%u: f32, %at: i32, %acc: f32):
    %row = linalg.index 0 : index
    %here = arith.index_cast %row : index to i32
    %is = arith.cmpi eq, %at, %here : i32
    %none = arith.constant 0.0 : f32
    %term = arith.select %is, %u, %none : f32
    %sum = arith.addf %acc, %term : f32
    linalg.yield %sum : f32
  } -> tensor<4096x64xf32>
  %p = linalg.matmul ins(%a, %b : tensor<4096x512xf32>, tensor<512x64xf32>) outs(%zero : tensor<4096x64xf32>)
      -> tensor<4096x64xf32>
  %s = arith.addf %r, %p : tensor<4096x64xf32>
  return %s : tensor<4096x64xf32>
}
