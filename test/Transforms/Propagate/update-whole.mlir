// RUN: tessera-opt %s --tessera-pipeline="compile-to=partitioned" | FileCheck %s
// RUN: tessera run %s --function main --check
// RUN: tessera run %s --function tied --check
// RUN: tessera run %s --function accumulated --check

// The gradient of an embedding of which each device has some look-ups. Reducing it would send 2 x 7/8
// of 1 MiB; the updates and their rows, which all devices can add up, are 16 KiB.
dist.process_mesh @line(shape = [8], dim_names = ["b"])

#updates = affine_map<(r, d, i) -> (i, d)>
#indices = affine_map<(r, d, i) -> (i)>
#rows = affine_map<(r, d, i) -> (r, d)>

// CHECK-LABEL: func.func @main(
// CHECK-NOT: dist.all_reduce
// CHECK-COUNT-2: dist.all_gather
// CHECK-NOT: dist.all_reduce
// CHECK: return
func.func @main(%w: tensor<4096x64xf32> {dist.sharding = #dist.sharding<@line, [replicate]>},
                %y: tensor<64x64xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>},
                %i: tensor<64xi32> {dist.range = [0, 4096], dist.sharding = #dist.sharding<@line, [shard(0)]>})
    -> (tensor<4096x64xf32> {dist.sharding = #dist.sharding<@line, [replicate]>}) {
  %zero = arith.constant dense<0.0> : tensor<4096x64xf32>
  %g = linalg.generic {indexing_maps = [#updates, #indices, #rows],
                       iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%y, %i : tensor<64x64xf32>, tensor<64xi32>) outs(%zero : tensor<4096x64xf32>) {
  ^bb0(%u: f32, %at: i32, %acc: f32):
    %row = linalg.index 0 : index
    %here = arith.index_cast %row : index to i32
    %is = arith.cmpi eq, %at, %here : i32
    %none = arith.constant 0.0 : f32
    %term = arith.select %is, %u, %none : f32
    %sum = arith.addf %acc, %term : f32
    linalg.yield %sum : f32
  } -> tensor<4096x64xf32>
  %r = arith.subf %w, %g : tensor<4096x64xf32>
  return %r : tensor<4096x64xf32>
}

// With the gradient of a tied output layer, which must be reduced, contributions are added first.
// CHECK-LABEL: func.func @tied(
// CHECK-NOT: dist.all_gather
// CHECK: dist.all_reduce
// CHECK-NOT: dist.all_
// CHECK: return
func.func @tied(%w: tensor<4096x64xf32> {dist.sharding = #dist.sharding<@line, [replicate]>},
                %y: tensor<64x64xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>},
                %i: tensor<64xi32> {dist.range = [0, 4096], dist.sharding = #dist.sharding<@line, [shard(0)]>},
                %l: tensor<64x4096xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>})
    -> (tensor<4096x64xf32> {dist.sharding = #dist.sharding<@line, [replicate]>}) {
  %zero = arith.constant dense<0.0> : tensor<4096x64xf32>
  %g = linalg.generic {indexing_maps = [#updates, #indices, #rows],
                       iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%y, %i : tensor<64x64xf32>, tensor<64xi32>) outs(%zero : tensor<4096x64xf32>) {
  ^bb0(%u: f32, %at: i32, %acc: f32):
    %row = linalg.index 0 : index
    %here = arith.index_cast %row : index to i32
    %is = arith.cmpi eq, %at, %here : i32
    %none = arith.constant 0.0 : f32
    %term = arith.select %is, %u, %none : f32
    %sum = arith.addf %acc, %term : f32
    linalg.yield %sum : f32
  } -> tensor<4096x64xf32>
  %h = linalg.matmul
      indexing_maps = [affine_map<(r, d, i) -> (i, r)>, affine_map<(r, d, i) -> (i, d)>, #rows]
      ins(%l, %y : tensor<64x4096xf32>, tensor<64x64xf32>) outs(%zero : tensor<4096x64xf32>)
      -> tensor<4096x64xf32>
  %both = arith.addf %g, %h : tensor<4096x64xf32>
  %r = arith.subf %w, %both : tensor<4096x64xf32>
  return %r : tensor<4096x64xf32>
}

// Contributions of all iterations are reduced once, behind the loop, where that sends less.
// CHECK-LABEL: func.func @accumulated(
// CHECK: scf.for
// CHECK-NOT: dist.all_
// CHECK: scf.yield
// CHECK: dist.all_reduce
// CHECK: return
func.func @accumulated(%y: tensor<400x64x64xf32> {dist.sharding = #dist.sharding<@line, [shard(1)]>},
                       %i: tensor<400x64xi32> {dist.range = [0, 4096], dist.sharding = #dist.sharding<@line, [shard(1)]>})
    -> (tensor<4096x64xf32> {dist.sharding = #dist.sharding<@line, [replicate]>}) {
  %zero = arith.constant dense<0.0> : tensor<4096x64xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c400 = arith.constant 400 : index
  %r = scf.for %k = %c0 to %c400 step %c1 iter_args(%all = %zero) -> tensor<4096x64xf32> {
    %yk = tensor.extract_slice %y[%k, 0, 0] [1, 64, 64] [1, 1, 1]
        : tensor<400x64x64xf32> to tensor<64x64xf32>
    %ik = tensor.extract_slice %i[%k, 0] [1, 64] [1, 1] : tensor<400x64xi32> to tensor<64xi32>
    %g = linalg.generic {indexing_maps = [#updates, #indices, #rows],
                         iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%yk, %ik : tensor<64x64xf32>, tensor<64xi32>) outs(%zero : tensor<4096x64xf32>) {
    ^bb0(%u: f32, %at: i32, %acc: f32):
      %row = linalg.index 0 : index
      %here = arith.index_cast %row : index to i32
      %is = arith.cmpi eq, %at, %here : i32
      %none = arith.constant 0.0 : f32
      %term = arith.select %is, %u, %none : f32
      %sum = arith.addf %acc, %term : f32
      linalg.yield %sum : f32
    } -> tensor<4096x64xf32>
    %sum = arith.addf %all, %g : tensor<4096x64xf32>
    scf.yield %sum : tensor<4096x64xf32>
  }
  return %r : tensor<4096x64xf32>
}
