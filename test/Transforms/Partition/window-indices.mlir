// RUN: tessera run %s --check | FileCheck %s
// RUN: tessera explain %s | FileCheck %s --check-prefix=PLAN
// A slice is computed from a window of what its indices determine; the window begins later along loops that are
// not cut, too.

// CHECK: check  result0  ok  equal
// PLAN: total: 0 collectives

dist.process_mesh @m(shape = [3, 4], dim_names = ["a0", "a1"])

func.func @main() -> (tensor<3x3xi32> {dist.sharding = #dist.sharding<@m, [shard(1), ?]>}, tensor<14x11x8xi32>) {
  %0 = tensor.empty() : tensor<14x8x11xi32>
  %1 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]}
      outs(%0 : tensor<14x8x11xi32>) {
  ^bb0(%out: i32):
    %c100 = arith.constant 100 : index
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %k = linalg.index 2 : index
    %2 = arith.muli %i, %c100 : index
    %3 = arith.addi %2, %j : index
    %4 = arith.muli %3, %c100 : index
    %5 = arith.addi %4, %k : index
    %6 = arith.index_cast %5 : index to i32
    linalg.yield %6 : i32
  } -> tensor<14x8x11xi32>
  %7 = tensor.empty() : tensor<14x11x8xi32>
  %8 = linalg.transpose ins(%1 : tensor<14x8x11xi32>) outs(%7 : tensor<14x11x8xi32>) permutation = [0, 2, 1]
  %9 = tensor.extract_slice %1[6, 7, 5] [3, 1, 3] [1, 1, 1] : tensor<14x8x11xi32> to tensor<3x3xi32>
  return %9, %8 : tensor<3x3xi32>, tensor<14x11x8xi32>
}
