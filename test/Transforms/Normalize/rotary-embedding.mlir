// RUN: tessera-opt %s --tessera-pipeline="compile-to=normalized" | FileCheck %s
// RUN: tessera explain %s --function halves --objective bytes | FileCheck %s --check-prefix=BYTES
// RUN: tessera explain %s --function products --objective bytes | FileCheck %s --check-prefix=BYTES
// RUN: tessera run %s --function halves --check
// RUN: tessera run %s --function products --check

// The halves of the features change places once, also where they are negated or multiplied before
// they are concatenated: each device sends its part, 4 x 8 x 2 x 4 bytes, to the one opposite.
// BYTES: total: 1 collective, 256 bytes on the wire

dist.process_mesh @line(shape = [4], dim_names = ["s"])

// CHECK-LABEL: func.func @halves(
// CHECK-SAME: %[[X:[a-z0-9]*]]: tensor<4x8x8xf32>
// CHECK: dist.rearrange %[[X]], %[[X]] dim = 2 segments = [4, 1, 0, 1, 4, 0, 1, 4, 1, 4]
// CHECK-NOT: dist.rearrange
// CHECK-NOT: tensor.concat
func.func @halves(%x: tensor<4x8x8xf32> {dist.sharding = #dist.sharding<@line, [shard(2)]>})
    -> (tensor<4x8x8xf32> {dist.sharding = #dist.sharding<@line, [shard(2)]>}) {
  %a = tensor.extract_slice %x[0, 0, 0] [4, 8, 4] [1, 1, 1] : tensor<4x8x8xf32> to tensor<4x8x4xf32>
  %b = tensor.extract_slice %x[0, 0, 4] [4, 8, 4] [1, 1, 1] : tensor<4x8x8xf32> to tensor<4x8x4xf32>
  %n = arith.negf %b : tensor<4x8x4xf32>
  %r = tensor.concat dim(2) %n, %a : (tensor<4x8x4xf32>, tensor<4x8x4xf32>) -> tensor<4x8x8xf32>
  %y = arith.addf %x, %r : tensor<4x8x8xf32>
  return %y : tensor<4x8x8xf32>
}

// The sines of a half are those of both. They have no dimension of the batch.
// CHECK-LABEL: func.func @products(
// CHECK-SAME: %[[X:[a-z0-9]*]]: tensor<4x8x8xf32>
// CHECK-SAME: %[[SINES:[a-z0-9]*]]: tensor<8x4xf32>
// CHECK-DAG: dist.rearrange %[[X]], %[[X]] dim = 2 segments = [4, 1, 0, 1, 4, 0, 1, 4, 1, 4]
// CHECK-DAG: tensor.concat dim(1) %[[SINES]], %[[SINES]]
// CHECK-NOT: tensor.extract_slice
func.func @products(%x: tensor<4x8x8xf32> {dist.sharding = #dist.sharding<@line, [shard(2)]>},
                    %sines: tensor<8x4xf32> {dist.sharding = #dist.sharding<@line, [replicate]>})
    -> (tensor<4x8x8xf32> {dist.sharding = #dist.sharding<@line, [shard(2)]>}) {
  %a = tensor.extract_slice %x[0, 0, 0] [4, 8, 4] [1, 1, 1] : tensor<4x8x8xf32> to tensor<4x8x4xf32>
  %b = tensor.extract_slice %x[0, 0, 4] [4, 8, 4] [1, 1, 1] : tensor<4x8x8xf32> to tensor<4x8x4xf32>
  %empty = tensor.empty() : tensor<4x8x4xf32>
  %p = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, j, k)>, affine_map<(i, j, k) -> (i, j, k)>,
                                        affine_map<(i, j, k) -> (j, k)>, affine_map<(i, j, k) -> (i, j, k)>],
                       iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%a, %b, %sines : tensor<4x8x4xf32>, tensor<4x8x4xf32>, tensor<8x4xf32>) outs(%empty : tensor<4x8x4xf32>) {
  ^bb0(%l: f32, %h: f32, %sine: f32, %out: f32):
    %m = arith.mulf %h, %sine : f32
    %d = arith.subf %l, %m : f32
    linalg.yield %d : f32
  } -> tensor<4x8x4xf32>
  %q = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, j, k)>, affine_map<(i, j, k) -> (i, j, k)>,
                                        affine_map<(i, j, k) -> (j, k)>, affine_map<(i, j, k) -> (i, j, k)>],
                       iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%b, %a, %sines : tensor<4x8x4xf32>, tensor<4x8x4xf32>, tensor<8x4xf32>) outs(%empty : tensor<4x8x4xf32>) {
  ^bb0(%h: f32, %l: f32, %sine: f32, %out: f32):
    %m = arith.mulf %l, %sine : f32
    %d = arith.addf %h, %m : f32
    linalg.yield %d : f32
  } -> tensor<4x8x4xf32>
  %r = tensor.concat dim(2) %p, %q : (tensor<4x8x4xf32>, tensor<4x8x4xf32>) -> tensor<4x8x8xf32>
  return %r : tensor<4x8x8xf32>
}
