// RUN: tessera-opt %s --dist-normalize | FileCheck %s
// RUN: tessera explain %s --function undone | FileCheck %s --check-prefix=UNDONE
// RUN: tessera explain %s --function added | FileCheck %s --check-prefix=ADDED
// RUN: tessera explain %s --function consecutive | FileCheck %s --check-prefix=CONSECUTIVE
// RUN: tessera run %s --function undone --check=interpreter | FileCheck %s --check-prefix=VALUE
// RUN: tessera run %s --function sorted_twice --check=interpreter | FileCheck %s --check-prefix=VALUE
// RUN: tessera run %s --function added --check=interpreter | FileCheck %s --check-prefix=VALUE
// RUN: tessera run %s --function returned --check=interpreter | FileCheck %s --check-prefix=VALUE
// RUN: tessera run %s --function other_rows --check=interpreter | FileCheck %s --check-prefix=VALUE
// RUN: tessera run %s --function consecutive --check=interpreter | FileCheck %s --check-prefix=VALUE

// Rows that are permuted by sorted keys, changed, and put back are computed where they are; their
// positions need the sorted keys alone.
// VALUE: check result0 ok

dist.process_mesh @m(shape = [4], dim_names = ["x"])

#id = affine_map<(i, j) -> (i, j)>
#i = affine_map<(i) -> (i)>
#row = affine_map<(i, j, r) -> (i)>
#other = affine_map<(i, j, r) -> (r)>
#to = affine_map<(i, j, r) -> (i, j)>
#from = affine_map<(i, j, r) -> (r, j)>

// CHECK-LABEL: func.func @undone(
// CHECK: %[[S:.*]]:2 = ext.sort
// CHECK-NOT: tensor<16x3xf32>, tensor<16xi32>) outs
// CHECK: %[[Q:.*]] = linalg.generic {{.*}} ins(%{{.*}}, %[[S]]#1 :
// CHECK: linalg.generic {{.*}}iterator_types = ["parallel", "parallel"]} ins(%{{.*}}, %[[Q]] : tensor<16x3xf32>, tensor<16xi32>)
// CHECK-NOT: "reduction"
// CHECK: return
// Keys and their numbers to all, no row.
// UNDONE: collectives
// UNDONE-NOT: f32
// UNDONE: total: 2 collectives, 144 bytes
func.func @undone(%x: tensor<16x3xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>}, %k: tensor<16xi32> {dist.sharding = #dist.sharding<@m, [shard(0)]>}) -> (tensor<16x3xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>}) {
  %rowse = tensor.empty() : tensor<16xi32>
  %rows = linalg.generic {indexing_maps = [#i], iterator_types = ["parallel"]} outs(%rowse : tensor<16xi32>) {
  ^bb0(%o: i32):
    %n = linalg.index 0 : index
    %m = arith.index_cast %n : index to i32
    linalg.yield %m : i32
  } -> tensor<16xi32>
  %s:2 = ext.sort dim = 0 keys = 1 ins(%k, %rows : tensor<16xi32>, tensor<16xi32>)
  %az = arith.constant dense<0.0> : tensor<16x3xf32>
  %a = linalg.generic {indexing_maps = [#from, #row, #to], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %s#1 : tensor<16x3xf32>, tensor<16xi32>) outs(%az : tensor<16x3xf32>) {
  ^bb0(%in: f32, %at: i32, %acc: f32):
    %n = linalg.index 2 : index
    %m = arith.index_cast %n : index to i32
    %is = arith.cmpi eq, %at, %m : i32
    %none = arith.constant 0.0 : f32
    %taken = arith.select %is, %in, %none : f32
    %sum = arith.addf %acc, %taken : f32
    linalg.yield %sum : f32
  } -> tensor<16x3xf32>
  %be = tensor.empty() : tensor<16x3xf32>
  %b = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%a : tensor<16x3xf32>) outs(%be : tensor<16x3xf32>) {
  ^bb0(%in: f32, %o: f32):
    %n = linalg.index 0 : index
    %m = arith.index_cast %n : index to i32
    %p = arith.sitofp %m : i32 to f32
    %r = arith.addf %in, %p : f32
    linalg.yield %r : f32
  } -> tensor<16x3xf32>
  %yz = arith.constant dense<0.0> : tensor<16x3xf32>
  %y = linalg.generic {indexing_maps = [#from, #other, #to], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%b, %s#1 : tensor<16x3xf32>, tensor<16xi32>) outs(%yz : tensor<16x3xf32>) {
  ^bb0(%in: f32, %at: i32, %acc: f32):
    %n = linalg.index 0 : index
    %m = arith.index_cast %n : index to i32
    %is = arith.cmpi eq, %at, %m : i32
    %none = arith.constant 0.0 : f32
    %taken = arith.select %is, %in, %none : f32
    %sum = arith.addf %acc, %taken : f32
    linalg.yield %sum : f32
  } -> tensor<16x3xf32>
  return %y : tensor<16x3xf32>
}

// The inverse permutation is found by sorting the permutation.
// CHECK-LABEL: func.func @sorted_twice(
// CHECK-COUNT-1: "reduction"
// CHECK-NOT: "reduction"
// CHECK: return
func.func @sorted_twice(%x: tensor<16x3xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>}, %k: tensor<16xi32> {dist.sharding = #dist.sharding<@m, [shard(0)]>}) -> (tensor<16x3xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>}) {
  %rowse = tensor.empty() : tensor<16xi32>
  %rows = linalg.generic {indexing_maps = [#i], iterator_types = ["parallel"]} outs(%rowse : tensor<16xi32>) {
  ^bb0(%o: i32):
    %n = linalg.index 0 : index
    %m = arith.index_cast %n : index to i32
    linalg.yield %m : i32
  } -> tensor<16xi32>
  %s:2 = ext.sort dim = 0 keys = 1 ins(%k, %rows : tensor<16xi32>, tensor<16xi32>)
  %az = arith.constant dense<0.0> : tensor<16x3xf32>
  %a = linalg.generic {indexing_maps = [#from, #row, #to], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %s#1 : tensor<16x3xf32>, tensor<16xi32>) outs(%az : tensor<16x3xf32>) {
  ^bb0(%in: f32, %at: i32, %acc: f32):
    %n = linalg.index 2 : index
    %m = arith.index_cast %n : index to i32
    %is = arith.cmpi eq, %at, %m : i32
    %none = arith.constant 0.0 : f32
    %taken = arith.select %is, %in, %none : f32
    %sum = arith.addf %acc, %taken : f32
    linalg.yield %sum : f32
  } -> tensor<16x3xf32>
  %be = tensor.empty() : tensor<16x3xf32>
  %b = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%a : tensor<16x3xf32>) outs(%be : tensor<16x3xf32>) {
  ^bb0(%in: f32, %o: f32):
    %n = linalg.index 0 : index
    %m = arith.index_cast %n : index to i32
    %p = arith.sitofp %m : i32 to f32
    %r = arith.addf %in, %p : f32
    linalg.yield %r : f32
  } -> tensor<16x3xf32>
  %q:2 = ext.sort dim = 0 keys = 1 ins(%s#1, %rows : tensor<16xi32>, tensor<16xi32>)
  %yz = arith.constant dense<0.0> : tensor<16x3xf32>
  %y = linalg.generic {indexing_maps = [#from, #row, #to], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%b, %q#1 : tensor<16x3xf32>, tensor<16xi32>) outs(%yz : tensor<16x3xf32>) {
  ^bb0(%in: f32, %at: i32, %acc: f32):
    %n = linalg.index 2 : index
    %m = arith.index_cast %n : index to i32
    %is = arith.cmpi eq, %at, %m : i32
    %none = arith.constant 0.0 : f32
    %taken = arith.select %is, %in, %none : f32
    %sum = arith.addf %acc, %taken : f32
    linalg.yield %sum : f32
  } -> tensor<16x3xf32>
  return %y : tensor<16x3xf32>
}

// A sum over sorted rows is one over the others.
// CHECK-LABEL: func.func @added(
// CHECK-NOT: ext.sort
// ADDED: total: 1 collective, 18 bytes
func.func @added(%x: tensor<16x3xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>}, %k: tensor<16xi32> {dist.sharding = #dist.sharding<@m, [shard(0)]>}) -> (tensor<3xf32> {dist.sharding = #dist.sharding<@m, [replicate]>}) {
  %rowse = tensor.empty() : tensor<16xi32>
  %rows = linalg.generic {indexing_maps = [#i], iterator_types = ["parallel"]} outs(%rowse : tensor<16xi32>) {
  ^bb0(%o: i32):
    %n = linalg.index 0 : index
    %m = arith.index_cast %n : index to i32
    linalg.yield %m : i32
  } -> tensor<16xi32>
  %s:2 = ext.sort dim = 0 keys = 1 ins(%k, %rows : tensor<16xi32>, tensor<16xi32>)
  %az = arith.constant dense<0.0> : tensor<16x3xf32>
  %a = linalg.generic {indexing_maps = [#from, #row, #to], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %s#1 : tensor<16x3xf32>, tensor<16xi32>) outs(%az : tensor<16x3xf32>) {
  ^bb0(%in: f32, %at: i32, %acc: f32):
    %n = linalg.index 2 : index
    %m = arith.index_cast %n : index to i32
    %is = arith.cmpi eq, %at, %m : i32
    %none = arith.constant 0.0 : f32
    %taken = arith.select %is, %in, %none : f32
    %sum = arith.addf %acc, %taken : f32
    linalg.yield %sum : f32
  } -> tensor<16x3xf32>
  %z = arith.constant dense<0.0> : tensor<3xf32>
  %y = linalg.reduce ins(%a : tensor<16x3xf32>) outs(%z : tensor<3xf32>) dimensions = [0]
    (%in: f32, %acc: f32) {
      %sum = arith.addf %in, %acc : f32
      linalg.yield %sum : f32
    }
  return %y : tensor<3xf32>
}

// Rows that are also needed in the sorted order are computed in that order alone.
// CHECK-LABEL: func.func @returned(
// CHECK: %[[S:.*]]:2 = ext.sort
// CHECK: linalg.generic {{.*}} ins(%arg0, %[[S]]#1 :
// CHECK: linalg.generic {{.*}} ins(%{{.*}}, %[[S]]#1 :
func.func @returned(%x: tensor<16x3xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>}, %k: tensor<16xi32> {dist.sharding = #dist.sharding<@m, [shard(0)]>}) -> (tensor<16x3xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>}, tensor<16x3xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>}) {
  %rowse = tensor.empty() : tensor<16xi32>
  %rows = linalg.generic {indexing_maps = [#i], iterator_types = ["parallel"]} outs(%rowse : tensor<16xi32>) {
  ^bb0(%o: i32):
    %n = linalg.index 0 : index
    %m = arith.index_cast %n : index to i32
    linalg.yield %m : i32
  } -> tensor<16xi32>
  %s:2 = ext.sort dim = 0 keys = 1 ins(%k, %rows : tensor<16xi32>, tensor<16xi32>)
  %az = arith.constant dense<0.0> : tensor<16x3xf32>
  %a = linalg.generic {indexing_maps = [#from, #row, #to], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %s#1 : tensor<16x3xf32>, tensor<16xi32>) outs(%az : tensor<16x3xf32>) {
  ^bb0(%in: f32, %at: i32, %acc: f32):
    %n = linalg.index 2 : index
    %m = arith.index_cast %n : index to i32
    %is = arith.cmpi eq, %at, %m : i32
    %none = arith.constant 0.0 : f32
    %taken = arith.select %is, %in, %none : f32
    %sum = arith.addf %acc, %taken : f32
    linalg.yield %sum : f32
  } -> tensor<16x3xf32>
  %be = tensor.empty() : tensor<16x3xf32>
  %b = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%a : tensor<16x3xf32>) outs(%be : tensor<16x3xf32>) {
  ^bb0(%in: f32, %o: f32):
    %n = linalg.index 0 : index
    %m = arith.index_cast %n : index to i32
    %p = arith.sitofp %m : i32 to f32
    %r = arith.addf %in, %p : f32
    linalg.yield %r : f32
  } -> tensor<16x3xf32>
  %yz = arith.constant dense<0.0> : tensor<16x3xf32>
  %y = linalg.generic {indexing_maps = [#from, #other, #to], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%b, %s#1 : tensor<16x3xf32>, tensor<16xi32>) outs(%yz : tensor<16x3xf32>) {
  ^bb0(%in: f32, %at: i32, %acc: f32):
    %n = linalg.index 0 : index
    %m = arith.index_cast %n : index to i32
    %is = arith.cmpi eq, %at, %m : i32
    %none = arith.constant 0.0 : f32
    %taken = arith.select %is, %in, %none : f32
    %sum = arith.addf %acc, %taken : f32
    linalg.yield %sum : f32
  } -> tensor<16x3xf32>
  return %y, %b : tensor<16x3xf32>, tensor<16x3xf32>
}

// Rows put to the places of other keys do not return.
// CHECK-LABEL: func.func @other_rows(
// CHECK: %[[S:.*]]:2 = ext.sort
// CHECK: %[[O:.*]]:2 = ext.sort
// CHECK: linalg.generic {{.*}} ins(%{{.*}}, %{{.*}}#1 :
func.func @other_rows(%x: tensor<16x3xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>}, %k: tensor<16xi32> {dist.sharding = #dist.sharding<@m, [shard(0)]>}, %l: tensor<16xi32> {dist.sharding = #dist.sharding<@m, [shard(0)]>}) -> (tensor<16x3xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>}) {
  %rowse = tensor.empty() : tensor<16xi32>
  %rows = linalg.generic {indexing_maps = [#i], iterator_types = ["parallel"]} outs(%rowse : tensor<16xi32>) {
  ^bb0(%o: i32):
    %n = linalg.index 0 : index
    %m = arith.index_cast %n : index to i32
    linalg.yield %m : i32
  } -> tensor<16xi32>
  %s:2 = ext.sort dim = 0 keys = 1 ins(%k, %rows : tensor<16xi32>, tensor<16xi32>)
  %t:2 = ext.sort dim = 0 keys = 1 ins(%l, %rows : tensor<16xi32>, tensor<16xi32>)
  %az = arith.constant dense<0.0> : tensor<16x3xf32>
  %a = linalg.generic {indexing_maps = [#from, #row, #to], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %s#1 : tensor<16x3xf32>, tensor<16xi32>) outs(%az : tensor<16x3xf32>) {
  ^bb0(%in: f32, %at: i32, %acc: f32):
    %n = linalg.index 2 : index
    %m = arith.index_cast %n : index to i32
    %is = arith.cmpi eq, %at, %m : i32
    %none = arith.constant 0.0 : f32
    %taken = arith.select %is, %in, %none : f32
    %sum = arith.addf %acc, %taken : f32
    linalg.yield %sum : f32
  } -> tensor<16x3xf32>
  %be = tensor.empty() : tensor<16x3xf32>
  %b = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%a : tensor<16x3xf32>) outs(%be : tensor<16x3xf32>) {
  ^bb0(%in: f32, %o: f32):
    %n = linalg.index 0 : index
    %m = arith.index_cast %n : index to i32
    %p = arith.sitofp %m : i32 to f32
    %r = arith.addf %in, %p : f32
    linalg.yield %r : f32
  } -> tensor<16x3xf32>
  %yz = arith.constant dense<0.0> : tensor<16x3xf32>
  %y = linalg.generic {indexing_maps = [#from, #row, #to], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%b, %t#1 : tensor<16x3xf32>, tensor<16xi32>) outs(%yz : tensor<16x3xf32>) {
  ^bb0(%in: f32, %at: i32, %acc: f32):
    %n = linalg.index 2 : index
    %m = arith.index_cast %n : index to i32
    %is = arith.cmpi eq, %at, %m : i32
    %none = arith.constant 0.0 : f32
    %taken = arith.select %is, %in, %none : f32
    %sum = arith.addf %acc, %taken : f32
    linalg.yield %sum : f32
  } -> tensor<16x3xf32>
  return %y : tensor<16x3xf32>
}

// Rows 2 i and 2 i + 1 are added to row i.
// CHECK-LABEL: func.func @consecutive(
// CHECK: %[[G:.*]] = tensor.expand_shape %arg0 {{\[\[}}0, 1], [2]] output_shape [8, 2, 3]
// CHECK: linalg.generic {{.*}} ins(%[[G]] : tensor<8x2x3xf32>)
// CONSECUTIVE: total: 0 collectives
func.func @consecutive(%x: tensor<16x3xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>}) -> (tensor<8x3xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>}) {
  %rowse = tensor.empty() : tensor<16xi32>
  %rows = linalg.generic {indexing_maps = [#i], iterator_types = ["parallel"]} outs(%rowse : tensor<16xi32>) {
  ^bb0(%o: i32):
    %n = linalg.index 0 : index
    %m = arith.index_cast %n : index to i32
    linalg.yield %m : i32
  } -> tensor<16xi32>
  %he = tensor.empty() : tensor<16xi32>
  %half = linalg.generic {indexing_maps = [#i, #i], iterator_types = ["parallel"]} ins(%rows : tensor<16xi32>) outs(%he : tensor<16xi32>) {
  ^bb0(%in: i32, %o: i32):
    %two = arith.constant 2 : i32
    %q = arith.floordivsi %in, %two : i32
    linalg.yield %q : i32
  } -> tensor<16xi32>
  %yz = arith.constant dense<0.0> : tensor<8x3xf32>
  %y = linalg.generic {indexing_maps = [#from, #other, #to], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %half : tensor<16x3xf32>, tensor<16xi32>) outs(%yz : tensor<8x3xf32>) {
  ^bb0(%in: f32, %at: i32, %acc: f32):
    %n = linalg.index 0 : index
    %m = arith.index_cast %n : index to i32
    %is = arith.cmpi eq, %at, %m : i32
    %none = arith.constant 0.0 : f32
    %taken = arith.select %is, %in, %none : f32
    %sum = arith.addf %acc, %taken : f32
    linalg.yield %sum : f32
  } -> tensor<8x3xf32>
  return %y : tensor<8x3xf32>
}
