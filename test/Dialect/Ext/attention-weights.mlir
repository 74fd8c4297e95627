// Weights of an attention that are not the softmax itself: half of the shares are dropped, by bits of their global
// indices, the others scaled by a tensor. Parts equal the whole: batches, heads, queries, keys, unevenly cut.
// RUN: tessera-opt %s | FileCheck %s
// RUN: tessera-opt %s | tessera-opt -o /dev/null
// RUN: tessera-opt %s --interpret -o /dev/null
// RUN: tessera run %s --check
// RUN: sed 's/%[kv]: tensor<[0-9x]*f32>/& {dist.sharding = #dist.sharding<@m, [shard(0), shard(1)]>}/g' %s > %t.mlir && tessera run %t.mlir --check
// RUN: sed 's/%[q]: tensor<[0-9x]*f32>/& {dist.sharding = #dist.sharding<@m, [shard(1), shard(2)]>}/g' %s > %t.mlir && tessera run %t.mlir --check
// RUN: sed 's/%[qkv]: tensor<[0-9x]*f32>/& {dist.sharding = #dist.sharding<@m, [replicate, shard(1)]>}/g' %s > %t.mlir && tessera run %t.mlir --check
// RUN: sed 's/%[qkv]: tensor<[0-9x]*f32>/& {dist.sharding = #dist.sharding<@m, [shard(0), shard(1)]>}/g' %s > %t.mlir && tessera run %t.mlir --attention-sequence ring --check

// CHECK: ext.yield %{{.*}} : f32
// CHECK-NEXT: } weights {
// CHECK-NEXT: ^bb0(%[[SHARE:.*]]: f32, %{{.*}}: i32, %{{.*}}: f32, %{{.*}}: index
// CHECK: arith.divf %[[SHARE]]
// CHECK: ext.yield
// CHECK-NEXT: } -> tensor<4x3x7x6xf32>, tensor<7x4x3xf32>

dist.process_mesh @m(shape = [2, 3], dim_names = ["x", "y"])

#q = affine_map<(b, h, m, n, f, g) -> (b, m, h, f)>
#k = affine_map<(b, h, m, n, f, g) -> (b, n, f)>
#v = affine_map<(b, h, m, n, f, g) -> (b, n, g)>
#o = affine_map<(b, h, m, n, f, g) -> (b, h, m, g)>
#row = affine_map<(b, h, m, n, f, g) -> (m, b, h)>
#word = affine_map<(b, h, m, n, f, g) -> ()>
#given = affine_map<(b, h, m, n, f, g) -> (m, n)>

func.func @main(%q: tensor<4x7x3x5xf32>, %k: tensor<4x7x5xf32>, %v: tensor<4x7x6xf32>, %word: tensor<i32>,
                %given: tensor<7x7xf32>) -> (tensor<4x3x7x6xf32>, tensor<7x4x3xf32>) {
  %o:2 = ext.attention indexing_maps = [#q, #k, #v, #word, #given, #o, #row]
      ins(%q, %k, %v, %word, %given : tensor<4x7x3x5xf32>, tensor<4x7x5xf32>, tensor<4x7x6xf32>, tensor<i32>, tensor<7x7xf32>) {
  ^bb0(%product: f32, %w: i32, %x: f32, %i0: index, %i1: index, %m: index, %n: index, %i4: index, %i5: index):
    ext.yield %product : f32
  } weights {
  ^bb0(%share: f32, %w: i32, %x: f32, %b: index, %h: index, %m: index, %n: index, %i4: index, %i5: index):
    %c1 = arith.constant 21 : index
    %c7 = arith.constant 7 : index
    %zero = arith.constant 0.0 : f32
    %p = arith.constant 0.5 : f32
    %odd = arith.constant 1 : i32
    %many = arith.constant 741103597 : i32
    %hm = arith.muli %m, %c7 : index
    %bh = arith.muli %b, %c1 : index
    %s0 = arith.addi %hm, %bh : index
    %s1 = arith.addi %s0, %h : index
    %s2 = arith.addi %s1, %n : index
    %i = arith.index_cast %s2 : index to i32
    %j = arith.addi %i, %w : i32
    %hash = arith.muli %j, %many : i32
    %c16 = arith.constant 16 : i32
    %high = arith.shrui %hash, %c16 : i32
    %bit = arith.andi %high, %odd : i32
    %keep = arith.cmpi eq, %bit, %odd : i32
    %scaled = arith.divf %share, %p : f32
    %moved = arith.mulf %x, %scaled : f32
    %weight = arith.select %keep, %moved, %zero : f32
    ext.yield %weight : f32
  } -> tensor<4x3x7x6xf32>, tensor<7x4x3xf32>
  return %o#0, %o#1 : tensor<4x3x7x6xf32>, tensor<7x4x3xf32>
}
