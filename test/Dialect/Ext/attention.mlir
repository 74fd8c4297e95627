// The rule of attention. Parts equal the whole: batches, queries, keys, unevenly cut.
// RUN: tessera-opt %s --dist-print-rules -o /dev/null 2>&1 | FileCheck %s --check-prefix=RULE
// RUN: tessera-opt %s | tessera-opt -o /dev/null
// RUN: tessera-opt %s --interpret -o /dev/null
// RUN: tessera run %s --check
// RUN: sed 's/%[kv]: tensor<[0-9x]*f32>/& {dist.sharding = #dist.sharding<@m, [shard(0), shard(1)]>}/g' %s > %t.mlir && tessera run %t.mlir --check
// RUN: sed 's/%[kv]: tensor<[0-9x]*f32>/& {dist.sharding = #dist.sharding<@m, [replicate, shard(1)]>}/g' %s > %t.mlir && tessera run %t.mlir --check
// RUN: sed 's/%[q]: tensor<[0-9x]*f32>/& {dist.sharding = #dist.sharding<@m, [shard(1), shard(2)]>}/g' %s > %t.mlir && tessera run %t.mlir --check
// RUN: sed 's/%[qkv]: tensor<[0-9x]*f32>/& {dist.sharding = #dist.sharding<@m, [replicate, shard(1)]>}/g' %s > %t.mlir && tessera run %t.mlir --check

dist.process_mesh @m(shape = [2, 3], dim_names = ["x", "y"])

#q = affine_map<(b, h, m, n, f, g) -> (b, m, h, f)>
#k = affine_map<(b, h, m, n, f, g) -> (b, n, f)>
#v = affine_map<(b, h, m, n, f, g) -> (b, n, g)>
#o = affine_map<(b, h, m, n, f, g) -> (b, h, m, g)>
#row = affine_map<(b, h, m, n, f, g) -> (m, b, h)>
#bias = affine_map<(b, h, m, n, f, g) -> (h, n)>

// RULE: remark: ([j, i, k, 1], [j, l, 1], [j, l, 1], [k, l]) -> ([j, k, i, 1], [i, j, k]) {i = 7, j = 4, k = 3, l = 7} sum over l
func.func @main(%q: tensor<4x7x3x5xf32>, %k: tensor<4x7x5xf32>, %v: tensor<4x7x6xf32>, %bias: tensor<3x7xf32>)
    -> (tensor<4x3x7x6xf32>, tensor<7x4x3xf32>) {
  %o:2 = ext.attention indexing_maps = [#q, #k, #v, #bias, #o, #row]
      ins(%q, %k, %v, %bias : tensor<4x7x3x5xf32>, tensor<4x7x5xf32>, tensor<4x7x6xf32>, tensor<3x7xf32>) {
  ^bb0(%product: f32, %b: f32, %i0: index, %i1: index, %m: index, %n: index, %i4: index, %i5: index):
    %least = arith.constant 0xFF800000 : f32
    %scale = arith.constant 0.5 : f32
    %scaled = arith.mulf %product, %scale : f32
    %biased = arith.addf %scaled, %b : f32
    %visible = arith.cmpi sge, %m, %n : index
    %score = arith.select %visible, %biased, %least : f32
    ext.yield %score : f32
  } -> tensor<4x3x7x6xf32>, tensor<7x4x3xf32>
  return %o#0, %o#1 : tensor<4x3x7x6xf32>, tensor<7x4x3xf32>
}
