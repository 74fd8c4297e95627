// RUN: tessera-opt %s --dist-normalize --split-input-file | FileCheck %s
// Slices of integers that their indices determine are computed from the offsets of the slice.

dist.process_mesh @mesh(shape = [2], dim_names = ["d"])

// arange(8)[i] is i, also through casts, sums and a transposition; the tensor itself is not left.
// CHECK-LABEL: func.func @chain
// CHECK-NOT: tensor<4x8xi32>
// CHECK: scf.for %[[I:.+]] =
// CHECK-NOT: extract_slice
// CHECK: return
#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d1)>
func.func @chain(%x: tensor<1x2xi32> {dist.sharding = #dist.sharding<@mesh, [shard(1)]>}) -> tensor<1x2xi32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %e8 = tensor.empty() : tensor<8xi32>
  %iota = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} outs(%e8 : tensor<8xi32>) {
  ^bb0(%o: i32):
    %i = linalg.index 0 : index
    %c = arith.index_cast %i : index to i32
    linalg.yield %c : i32
  } -> tensor<8xi32>
  %e = tensor.empty() : tensor<4x8xi32>
  %table = linalg.generic {indexing_maps = [#row, #id], iterator_types = ["parallel", "parallel"]} ins(%iota : tensor<8xi32>) outs(%e : tensor<4x8xi32>) {
  ^bb0(%a: i32, %o: i32):
    %i = linalg.index 0 : index
    %c = arith.index_cast %i : index to i32
    %s = arith.addi %a, %c : i32
    linalg.yield %s : i32
  } -> tensor<4x8xi32>
  %r = scf.for %i = %c0 to %c4 step %c1 iter_args(%acc = %x) -> tensor<1x2xi32> {
    %part = tensor.extract_slice %table[%i, %i] [1, 2] [1, 2] : tensor<4x8xi32> to tensor<1x2xi32>
    %e2 = tensor.empty() : tensor<1x2xi32>
    %sum = linalg.add ins(%acc, %part : tensor<1x2xi32>, tensor<1x2xi32>) outs(%e2 : tensor<1x2xi32>) -> tensor<1x2xi32>
    scf.yield %sum : tensor<1x2xi32>
  }
  return %r : tensor<1x2xi32>
}

// -----

// Data stays a slice.
dist.process_mesh @mesh(shape = [2], dim_names = ["d"])
// CHECK-LABEL: func.func @data
// CHECK: extract_slice
func.func @data(%x: tensor<8xi32>, %y: tensor<2xi32> {dist.sharding = #dist.sharding<@mesh, [shard(0)]>}) -> tensor<2xi32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %r = scf.for %i = %c0 to %c4 step %c1 iter_args(%acc = %y) -> tensor<2xi32> {
    %part = tensor.extract_slice %x[%i] [2] [1] : tensor<8xi32> to tensor<2xi32>
    %e2 = tensor.empty() : tensor<2xi32>
    %sum = linalg.add ins(%acc, %part : tensor<2xi32>, tensor<2xi32>) outs(%e2 : tensor<2xi32>) -> tensor<2xi32>
    scf.yield %sum : tensor<2xi32>
  }
  return %r : tensor<2xi32>
}

// -----

// A slice beyond the end is moved inside, as slices of values are.
dist.process_mesh @mesh(shape = [2], dim_names = ["x"])
// CHECK-LABEL: func.func @beyond
// CHECK: arith.minsi
func.func @beyond(%at: tensor<i64>, %x: tensor<4xi32> {dist.sharding = #dist.sharding<@mesh, [shard(0)]>}) -> tensor<4xi32> {
  %e = tensor.empty() : tensor<8xi32>
  %i = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]} outs(%e : tensor<8xi32>) {
  ^bb0(%out: i32):
    %a = linalg.index 0 : index
    %b = arith.index_cast %a : index to i32
    linalg.yield %b : i32
  } -> tensor<8xi32>
  %n = tensor.extract %at[] : tensor<i64>
  %offset = arith.index_cast %n : i64 to index
  %s = tensor.extract_slice %i[%offset] [4] [1] : tensor<8xi32> to tensor<4xi32>
  %r = arith.subi %s, %x : tensor<4xi32>
  return %r : tensor<4xi32>
}
