// RUN: tessera-opt %s --tessera-pipeline="compile-to=planned" | FileCheck %s
// RUN: tessera run %s --check=interpreter | FileCheck %s --check-prefix=VALUE

// Every second row of a function of indices: a device computes the rows that it keeps, whose indices
// are apart from each other as those of the selection are.

dist.process_mesh @m(shape = [4], dim_names = ["d"])

#two = affine_map<(d0, d1) -> (d0, d1)>

// CHECK: linalg.generic {{.*}} windows = [(0, 2, 0, 2, 1, 2, 2, 5)]
// VALUE: check {{.*}} ok
func.func @main() -> (tensor<5x3xi32> {dist.sharding = #dist.sharding<@m, [shard(0)]>}) {
  %e = tensor.empty() : tensor<11x3xi32>
  %n = linalg.generic {indexing_maps = [#two], iterator_types = ["parallel", "parallel"]} outs(%e : tensor<11x3xi32>) {
  ^bb0(%out: i32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %three = arith.constant 3 : index
    %row = arith.muli %i, %three : index
    %place = arith.addi %row, %j : index
    %number = arith.index_cast %place : index to i32
    linalg.yield %number : i32
  } -> tensor<11x3xi32>
  %rows = tensor.extract_slice %n[2, 0] [5, 3] [2, 1] : tensor<11x3xi32> to tensor<5x3xi32>
  return %rows : tensor<5x3xi32>
}
