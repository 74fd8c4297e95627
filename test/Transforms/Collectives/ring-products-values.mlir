// Around a ring of 3 devices products have the values of one device: of gathered rows, which two products and a result
// read; of a gathered dimension that is summed over; of sums that are scattered. 3 divides no dimension. All numbers are
// integers, so that the order of a sum does not matter; bf16 sums are rounded once.
// RUN: tessera-opt %s --interpret -o /dev/null > %t.one
// RUN: tessera-opt %s --tessera-pipeline=compile-to=partitioned --dist-ring-products=always=true -o %t.mlir
// RUN: FileCheck %s --input-file=%t.mlir
// RUN: tessera-opt %t.mlir --interpret -o /dev/null > %t.ring
// RUN: diff %t.one %t.ring
// RUN: tessera-opt %t.mlir --dist-overlap-collectives --interpret -o /dev/null > %t.overlapped
// RUN: diff %t.one %t.overlapped

// Two turns of the rows, two of the summed dimension, twice two halves of the scattered sums, two of the bf16 columns.
// CHECK: dist.process_mesh @m_ring(shape = [3], dim_names = ["x"], process_ids = [1, 2, 0])
// CHECK-COUNT-10: dist.permute
// CHECK-NOT: dist.permute
dist.process_mesh @m(shape = [3], dim_names = ["x"])

#left = affine_map<(i, j, k) -> (i, k)>
#right = affine_map<(i, j, k) -> (k, j)>
#result = affine_map<(i, j, k) -> (i, j)>
#each = affine_map<(i, j) -> (i, j)>

func.func private @numbers(%factor: f32) -> tensor<7x5xf32> {
  %empty = tensor.empty() : tensor<7x5xf32>
  %n = linalg.generic {indexing_maps = [#each], iterator_types = ["parallel", "parallel"]} outs(%empty : tensor<7x5xf32>) {
  ^bb0(%out: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %c5 = arith.constant 5 : index
    %row = arith.muli %i, %c5 : index
    %at = arith.addi %row, %j : index
    %int = arith.index_cast %at : index to i32
    %float = arith.sitofp %int : i32 to f32
    %scaled = arith.mulf %float, %factor : f32
    linalg.yield %scaled : f32
  } -> tensor<7x5xf32>
  return %n : tensor<7x5xf32>
}

func.func @main() -> (tensor<7x5xf32>, tensor<7x5xf32>, tensor<7x5xf32>, tensor<7x5xf32>, tensor<7x5xf32>, tensor<7x5xbf16>) {
  %one = arith.constant 1.0 : f32
  %two = arith.constant 2.0 : f32
  %a = func.call @numbers(%one) : (f32) -> tensor<7x5xf32>
  %b = func.call @numbers(%two) : (f32) -> tensor<7x5xf32>
  %square = tensor.extract_slice %b[1, 0] [5, 5] [1, 1] : tensor<7x5xf32> to tensor<5x5xf32>
  %zero = arith.constant dense<0.0> : tensor<7x5xf32>
  %ones = arith.constant dense<1.0> : tensor<7x5xf32>

  %rows = dist.shard_tensor %a, #dist.sharding<@m, [shard(0)]> : tensor<7x5xf32>
  %columns = dist.shard_tensor %square, #dist.sharding<@m, [shard(1)]> : tensor<5x5xf32>
  %y0 = linalg.contract indexing_maps = [#left, #right, #result] ins(%rows, %columns : tensor<7x5xf32>, tensor<5x5xf32>) outs(%zero : tensor<7x5xf32>) -> tensor<7x5xf32>
  %r0 = dist.shard_tensor %y0, #dist.sharding<@m, [shard(1)]> : tensor<7x5xf32>
  %y1 = linalg.contract indexing_maps = [#left, #right, #result] ins(%rows, %columns : tensor<7x5xf32>, tensor<5x5xf32>) outs(%ones : tensor<7x5xf32>) -> tensor<7x5xf32>
  %r1 = dist.shard_tensor %y1, #dist.sharding<@m, [shard(1)]> : tensor<7x5xf32>
  %r2 = dist.shard_tensor %rows, #dist.sharding<@m, [replicate]> : tensor<7x5xf32>

  %summed = dist.shard_tensor %a, #dist.sharding<@m, [shard(1)]> : tensor<7x5xf32>
  %y3 = linalg.contract indexing_maps = [#left, #right, #result] ins(%summed, %columns : tensor<7x5xf32>, tensor<5x5xf32>) outs(%ones : tensor<7x5xf32>) -> tensor<7x5xf32>
  %r3 = dist.shard_tensor %y3, #dist.sharding<@m, [shard(1)]> : tensor<7x5xf32>

  %cut = dist.shard_tensor %square, #dist.sharding<@m, [shard(0)]> : tensor<5x5xf32>
  %y4 = linalg.contract indexing_maps = [#left, #right, #result] ins(%summed, %cut : tensor<7x5xf32>, tensor<5x5xf32>) outs(%ones : tensor<7x5xf32>) -> tensor<7x5xf32>
  %r4 = dist.shard_tensor %y4, #dist.sharding<@m, [shard(0)]> : tensor<7x5xf32>

  %narrow = arith.truncf %a : tensor<7x5xf32> to tensor<7x5xbf16>
  %narrow_cut = dist.shard_tensor %narrow, #dist.sharding<@m, [shard(1)]> : tensor<7x5xbf16>
  %narrow_square = arith.truncf %square : tensor<5x5xf32> to tensor<5x5xbf16>
  %narrow_columns = dist.shard_tensor %narrow_square, #dist.sharding<@m, [shard(1)]> : tensor<5x5xbf16>
  %narrow_ones = arith.constant dense<1.0> : tensor<7x5xbf16>
  %y5 = linalg.contract indexing_maps = [#left, #right, #result] ins(%narrow_cut, %narrow_columns : tensor<7x5xbf16>, tensor<5x5xbf16>) outs(%narrow_ones : tensor<7x5xbf16>) -> tensor<7x5xbf16>
  %r5 = dist.shard_tensor %y5, #dist.sharding<@m, [shard(1)]> : tensor<7x5xbf16>
  return %r0, %r1, %r2, %r3, %r4, %r5 : tensor<7x5xf32>, tensor<7x5xf32>, tensor<7x5xf32>, tensor<7x5xf32>, tensor<7x5xf32>, tensor<7x5xbf16>
}
