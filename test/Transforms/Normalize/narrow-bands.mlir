// RUN: tessera-opt %s --dist-normalize | FileCheck %s
// RUN: tessera explain %s --function second_difference | FileCheck %s --check-prefix=BYTES
// RUN: tessera run %s --function second_difference --check
// RUN: tessera run %s --function upsampled --check
// RUN: tessera run %s --function downsampled --check
// RUN: tessera run %s --function uneven --check
// RUN: tessera run %s --function wide --check
// RUN: tessera run %s --function written_diagonal --check

// A product with a banded matrix is a sum over the band, and needs a halo of the other operand. The
// matrix is a constant, or computed from indices.

dist.process_mesh @line(shape = [4], dim_names = ["s"])

#one = affine_map<(d0, d1) -> (d0, d1)>

// One row from each neighbor.
// CHECK-DAG: #[[WINDOW:.*]] = affine_map<(d0, d1, d2) -> (d0 + d2, d1)>
// CHECK-DAG: #[[PHASES:.*]] = affine_map<(d0, d1, d2, d3) -> (d0 + d3, d2)>
// CHECK-DAG: #[[STEPS:.*]] = affine_map<(d0, d1, d2) -> (d0 * 2 + d2, d1)>
// CHECK-LABEL: func.func @second_difference(
// CHECK: %[[BAND:.*]] = arith.constant dense<{{.*}}> : tensor<32x3xf32>
// CHECK: linalg.generic {indexing_maps = [{{.*}}, #[[WINDOW]], {{.*}}]{{.*}} ins(%[[BAND]], %{{.*}} : tensor<32x3xf32>, tensor<34x2xf32>)
// BYTES: halo_exchange
// BYTES: total: {{.*}}, 16 bytes on the wire
func.func @second_difference(%x: tensor<32x2xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>})
    -> (tensor<32x2xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>}) {
  %e = tensor.empty() : tensor<32x32xf32>
  %m = linalg.generic {indexing_maps = [#one], iterator_types = ["parallel", "parallel"]} outs(%e : tensor<32x32xf32>) {
  ^bb0(%out: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %d = arith.subi %i, %j : index
    %s = arith.index_cast %d : index to i32
    %a = math.absi %s : i32
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %is0 = arith.cmpi eq, %a, %zero : i32
    %is1 = arith.cmpi eq, %a, %one : i32
    %c0 = arith.constant 0.0 : f32
    %c1 = arith.constant 1.0 : f32
    %c2 = arith.constant -2.0 : f32
    %off = arith.select %is1, %c1, %c0 : f32
    %value = arith.select %is0, %c2, %off : f32
    linalg.yield %value : f32
  } -> tensor<32x32xf32>
  %zeros = arith.constant dense<0.0> : tensor<32x2xf32>
  %y = linalg.matmul ins(%m, %x : tensor<32x32xf32>, tensor<32x2xf32>) outs(%zeros : tensor<32x2xf32>) -> tensor<32x2xf32>
  return %y : tensor<32x2xf32>
}

// Two rows of the result per row of the operand.
// CHECK-LABEL: func.func @upsampled(
// CHECK: linalg.generic {indexing_maps = [{{.*}}, #[[PHASES]], {{.*}}]{{.*}} ins(%{{.*}} : tensor<16x2x3xf32>, tensor<18x3xf32>)
// CHECK: tensor.collapse_shape
func.func @upsampled(%x: tensor<16x3xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>})
    -> (tensor<32x3xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>}) {
  %e = tensor.empty() : tensor<32x16xf32>
  %m = linalg.generic {indexing_maps = [#one], iterator_types = ["parallel", "parallel"]} outs(%e : tensor<32x16xf32>) {
  ^bb0(%out: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %ii = arith.index_cast %i : index to i32
    %jj = arith.index_cast %j : index to i32
    %fi = arith.sitofp %ii : i32 to f32
    %fj = arith.sitofp %jj : i32 to f32
    %half = arith.constant 0.5 : f32
    %quarter = arith.constant 0.25 : f32
    %p = arith.mulf %fi, %half : f32
    %q = arith.subf %p, %quarter : f32
    %d = arith.subf %q, %fj : f32
    %a = math.absf %d : f32
    %c1 = arith.constant 1.0 : f32
    %c0 = arith.constant 0.0 : f32
    %w = arith.subf %c1, %a : f32
    %v = arith.maximumf %w, %c0 : f32
    linalg.yield %v : f32
  } -> tensor<32x16xf32>
  %zeros = arith.constant dense<0.0> : tensor<32x3xf32>
  %y = linalg.matmul ins(%m, %x : tensor<32x16xf32>, tensor<16x3xf32>) outs(%zeros : tensor<32x3xf32>) -> tensor<32x3xf32>
  return %y : tensor<32x3xf32>
}

// The mean of two rows, with the matrix transposed.
// CHECK-LABEL: func.func @downsampled(
// CHECK: linalg.generic {indexing_maps = [{{.*}}, #[[STEPS]], {{.*}}]{{.*}} ins(%{{.*}} : tensor<16x2xf32>, tensor<32x3xf32>)
func.func @downsampled(%x: tensor<32x3xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>})
    -> (tensor<16x3xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>}) {
  %e = tensor.empty() : tensor<32x16xf32>
  %m = linalg.generic {indexing_maps = [#one], iterator_types = ["parallel", "parallel"]} outs(%e : tensor<32x16xf32>) {
  ^bb0(%out: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %two = arith.constant 2 : index
    %k = arith.divsi %i, %two : index
    %is = arith.cmpi eq, %k, %j : index
    %half = arith.constant 0.5 : f32
    %c0 = arith.constant 0.0 : f32
    %v = arith.select %is, %half, %c0 : f32
    linalg.yield %v : f32
  } -> tensor<32x16xf32>
  %zeros = arith.constant dense<0.0> : tensor<16x3xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d2, d0)>, affine_map<(d0, d1, d2) -> (d2, d1)>,
                                        affine_map<(d0, d1, d2) -> (d0, d1)>],
                       iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%m, %x : tensor<32x16xf32>, tensor<32x3xf32>) outs(%zeros : tensor<16x3xf32>) {
  ^bb0(%a: f32, %b: f32, %acc: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %acc, %p : f32
    linalg.yield %s : f32
  } -> tensor<16x3xf32>
  return %y : tensor<16x3xf32>
}

// 30 rows on 4 devices, along the second operand's second dimension.
// CHECK-LABEL: func.func @uneven(
// CHECK: ins(%{{.*}} : tensor<3x31xf32>, tensor<30x2xf32>)
func.func @uneven(%x: tensor<3x30xf32> {dist.sharding = #dist.sharding<@line, [shard(1)]>})
    -> (tensor<3x30xf32> {dist.sharding = #dist.sharding<@line, [shard(1)]>}) {
  %e = tensor.empty() : tensor<30x30xf32>
  %m = linalg.generic {indexing_maps = [#one], iterator_types = ["parallel", "parallel"]} outs(%e : tensor<30x30xf32>) {
  ^bb0(%out: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %one = arith.constant 1 : index
    %next = arith.addi %i, %one : index
    %is = arith.cmpi eq, %i, %j : index
    %isNext = arith.cmpi eq, %next, %j : index
    %c0 = arith.constant 0.0 : f32
    %c1 = arith.constant 1.5 : f32
    %c2 = arith.constant -1.0 : f32
    %u = arith.select %isNext, %c2, %c0 : f32
    %v = arith.select %is, %c1, %u : f32
    linalg.yield %v : f32
  } -> tensor<30x30xf32>
  %zeros = arith.constant dense<0.0> : tensor<3x30xf32>
  %y = linalg.matmul ins(%x, %m : tensor<3x30xf32>, tensor<30x30xf32>) outs(%zeros : tensor<3x30xf32>) -> tensor<3x30xf32>
  return %y : tensor<3x30xf32>
}

// A triangle is not a band.
// CHECK-LABEL: func.func @wide(
// CHECK: linalg.matmul
func.func @wide(%x: tensor<32x2xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>})
    -> (tensor<32x2xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>}) {
  %e = tensor.empty() : tensor<32x32xf32>
  %m = linalg.generic {indexing_maps = [#one], iterator_types = ["parallel", "parallel"]} outs(%e : tensor<32x32xf32>) {
  ^bb0(%out: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %is = arith.cmpi sge, %i, %j : index
    %c0 = arith.constant 0.0 : f32
    %c1 = arith.constant 1.0 : f32
    %v = arith.select %is, %c1, %c0 : f32
    linalg.yield %v : f32
  } -> tensor<32x32xf32>
  %zeros = arith.constant dense<0.0> : tensor<32x2xf32>
  %y = linalg.matmul ins(%m, %x : tensor<32x32xf32>, tensor<32x2xf32>) outs(%zeros : tensor<32x2xf32>) -> tensor<32x2xf32>
  return %y : tensor<32x2xf32>
}

// A diagonal written into a matrix: the elements beside it remain.
// CHECK-LABEL: func.func @written_diagonal(
// CHECK: linalg.matmul
func.func @written_diagonal(%x: tensor<16x16xf32> {dist.sharding = #dist.sharding<@line, [shard(1)]>})
    -> (tensor<16x16xf32> {dist.sharding = #dist.sharding<@line, [shard(1)]>}) {
  %ones = arith.constant dense<1.0> : tensor<16x16xf32>
  %twos = arith.constant dense<2.0> : tensor<16xf32>
  %m = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i, i)>], iterator_types = ["parallel"]}
      ins(%twos : tensor<16xf32>) outs(%ones : tensor<16x16xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<16x16xf32>
  %zero = arith.constant dense<0.0> : tensor<16x16xf32>
  %y = linalg.matmul ins(%m, %x : tensor<16x16xf32>, tensor<16x16xf32>) outs(%zero : tensor<16x16xf32>) -> tensor<16x16xf32>
  return %y : tensor<16x16xf32>
}
