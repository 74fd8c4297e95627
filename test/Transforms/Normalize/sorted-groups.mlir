// RUN: tessera-opt %s --dist-normalize | FileCheck %s
// RUN: tessera run %s --function experts --check=interpreter | FileCheck %s --check-prefix=VALUE
// RUN: tessera run %s --function negative --check=interpreter | FileCheck %s --check-prefix=VALUE
// RUN: tessera explain %s --function experts | FileCheck %s --check-prefix=PLAN

// Rows are sorted by key, multiplied with the matrix of their group, which is found from the sizes
// of groups, and set at the places from which they came. The group is the sorted key, so the rows
// are multiplied where they are, and nothing is sorted.
// VALUE: check result0 ok
// PLAN: total: 0 collectives

dist.process_mesh @m(shape = [4], dim_names = ["x"])

#i = affine_map<(i) -> (i)>
#j = affine_map<(i, j) -> (j)>
#first = affine_map<(i, j) -> (i)>
#from = affine_map<(i, j, r) -> (r, j)>
#row = affine_map<(i, j, r) -> (i)>
#other = affine_map<(i, j, r) -> (r)>
#to = affine_map<(i, j, r) -> (i, j)>
#x = affine_map<(r, n, g, k) -> (r, k)>
#w = affine_map<(r, n, g, k) -> (g, k, n)>
#of = affine_map<(r, n, g, k) -> (r)>
#y = affine_map<(r, n, g, k) -> (r, n)>

// CHECK-LABEL: func.func @experts(
// CHECK: %[[KEYS:.*]] = linalg.generic
// CHECK-NOT: ext.sort
// CHECK: %[[Y:.*]] = linalg.generic {{.*}} ins(%arg0, %arg1, %[[KEYS]] : tensor<16x3xf32>, tensor<4x3x5xf32>, tensor<16xi32>)
// CHECK: return %[[Y]]
func.func @experts(%x: tensor<16x3xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>}, %w: tensor<4x3x5xf32> {dist.sharding = #dist.sharding<@m, [replicate]>},
                   %k: tensor<16xi32> {dist.sharding = #dist.sharding<@m, [shard(0)]>}) -> (tensor<16x5xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>}) {
  %e = tensor.empty() : tensor<16xi32>
  %keys = linalg.generic {indexing_maps = [#i, #i], iterator_types = ["parallel"]} ins(%k : tensor<16xi32>) outs(%e : tensor<16xi32>) {
  ^bb0(%a: i32, %o: i32):
    %low = arith.constant 0 : i32
    %high = arith.constant 3 : i32
    %b = arith.maxsi %a, %low : i32
    %c = arith.minsi %b, %high : i32
    linalg.yield %c : i32
  } -> tensor<16xi32>
  %y = func.call @multiply(%x, %w, %keys) : (tensor<16x3xf32>, tensor<4x3x5xf32>, tensor<16xi32>) -> tensor<16x5xf32>
  return %y : tensor<16x5xf32>
}

// A negative key is of no group, and the rows of all groups begin behind it.
// CHECK-LABEL: func.func @negative(
// CHECK: ext.sort
func.func @negative(%x: tensor<16x3xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>}, %w: tensor<4x3x5xf32> {dist.sharding = #dist.sharding<@m, [replicate]>},
                    %k: tensor<16xi32> {dist.sharding = #dist.sharding<@m, [shard(0)]>}) -> (tensor<16x5xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>}) {
  %e = tensor.empty() : tensor<16xi32>
  %keys = linalg.generic {indexing_maps = [#i, #i], iterator_types = ["parallel"]} ins(%k : tensor<16xi32>) outs(%e : tensor<16xi32>) {
  ^bb0(%a: i32, %o: i32):
    %low = arith.constant -1 : i32
    %high = arith.constant 3 : i32
    %b = arith.maxsi %a, %low : i32
    %c = arith.minsi %b, %high : i32
    linalg.yield %c : i32
  } -> tensor<16xi32>
  %y = func.call @multiply(%x, %w, %keys) : (tensor<16x3xf32>, tensor<4x3x5xf32>, tensor<16xi32>) -> tensor<16x5xf32>
  return %y : tensor<16x5xf32>
}

func.func private @multiply(%x: tensor<16x3xf32>, %w: tensor<4x3x5xf32>, %keys: tensor<16xi32>) -> tensor<16x5xf32> {
  %e = tensor.empty() : tensor<16xi32>
  %rows = linalg.generic {indexing_maps = [#i], iterator_types = ["parallel"]} outs(%e : tensor<16xi32>) {
  ^bb0(%o: i32):
    %n = linalg.index 0 : index
    %m = arith.index_cast %n : index to i32
    linalg.yield %m : i32
  } -> tensor<16xi32>
  %s:2 = ext.sort dim = 0 keys = 1 ins(%keys, %rows : tensor<16xi32>, tensor<16xi32>)
  %zeros = arith.constant dense<0> : tensor<4xi32>
  %sizes = linalg.generic {indexing_maps = [#j, #first], iterator_types = ["parallel", "reduction"]} ins(%keys : tensor<16xi32>) outs(%zeros : tensor<4xi32>) {
  ^bb0(%key: i32, %acc: i32):
    %n = linalg.index 0 : index
    %m = arith.index_cast %n : index to i32
    %is = arith.cmpi eq, %key, %m : i32
    %one = arith.constant 1 : i32
    %none = arith.constant 0 : i32
    %term = arith.select %is, %one, %none : i32
    %sum = arith.addi %acc, %term : i32
    linalg.yield %sum : i32
  } -> tensor<4xi32>
  %ends = ext.scan dim = 0 ins(%sizes : tensor<4xi32>) identity [0 : i32] {
  ^bb0(%a: i32, %b: i32):
    %sum = arith.addi %a, %b : i32
    ext.yield %sum : i32
  }
  %none = arith.constant dense<0> : tensor<16xi32>
  %group = linalg.generic {indexing_maps = [#j, #first, #first], iterator_types = ["parallel", "reduction"]} ins(%ends, %rows : tensor<4xi32>, tensor<16xi32>) outs(%none : tensor<16xi32>) {
  ^bb0(%end: i32, %r: i32, %acc: i32):
    %is = arith.cmpi sle, %end, %r : i32
    %one = arith.extui %is : i1 to i32
    %sum = arith.addi %acc, %one : i32
    linalg.yield %sum : i32
  } -> tensor<16xi32>
  %xz = arith.constant dense<0.0> : tensor<16x3xf32>
  %xs = linalg.generic {indexing_maps = [#from, #row, #to], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %s#1 : tensor<16x3xf32>, tensor<16xi32>) outs(%xz : tensor<16x3xf32>) {
  ^bb0(%in: f32, %at: i32, %acc: f32):
    %n = linalg.index 2 : index
    %m = arith.index_cast %n : index to i32
    %is = arith.cmpi eq, %at, %m : i32
    %zero = arith.constant 0.0 : f32
    %taken = arith.select %is, %in, %zero : f32
    %sum = arith.addf %acc, %taken : f32
    linalg.yield %sum : f32
  } -> tensor<16x3xf32>
  %yz = arith.constant dense<0.0> : tensor<16x5xf32>
  %ys = linalg.generic {indexing_maps = [#x, #w, #of, #y], iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
      ins(%xs, %w, %group : tensor<16x3xf32>, tensor<4x3x5xf32>, tensor<16xi32>) outs(%yz : tensor<16x5xf32>) {
  ^bb0(%a: f32, %b: f32, %g: i32, %acc: f32):
    %n = linalg.index 2 : index
    %m = arith.index_cast %n : index to i32
    %is = arith.cmpi eq, %g, %m : i32
    %product = arith.mulf %a, %b : f32
    %zero = arith.constant 0.0 : f32
    %term = arith.select %is, %product, %zero : f32
    %sum = arith.addf %acc, %term : f32
    linalg.yield %sum : f32
  } -> tensor<16x5xf32>
  %y = linalg.generic {indexing_maps = [#from, #other, #to], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%ys, %s#1 : tensor<16x5xf32>, tensor<16xi32>) outs(%yz : tensor<16x5xf32>) {
  ^bb0(%in: f32, %at: i32, %acc: f32):
    %n = linalg.index 0 : index
    %m = arith.index_cast %n : index to i32
    %is = arith.cmpi eq, %at, %m : i32
    %set = arith.select %is, %in, %acc : f32
    linalg.yield %set : f32
  } -> tensor<16x5xf32>
  return %y : tensor<16x5xf32>
}
