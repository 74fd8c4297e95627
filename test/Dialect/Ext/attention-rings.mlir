// In a ring keys and values are cut like the queries and arrive block by block. The parts equal the whole: with uneven parts,
// heads that share keys, a causal mask by global positions, a bias of all scores and a mask of keys, forward and backward.
// RUN: tessera-opt %s --dist-print-rules -o /dev/null 2>&1 | FileCheck %s --check-prefix=RULE
// RUN: tessera-opt %s --tessera-pipeline=compile-to=partitioned | FileCheck %s
// RUN: tessera run %s --check
// RUN: sed 's/\[4\]/[3]/' %s > %t.mlir && tessera run %t.mlir --check
// RUN: sed 's/\[4\]/[8]/' %s > %t.mlir && tessera run %t.mlir --check
// RUN: tessera-fuzz --gradients --check %s

dist.process_mesh @m(shape = [4], dim_names = ["s"])

#q = affine_map<(b, h, m, n, f, g) -> (b, m, h, f)>
#k = affine_map<(b, h, m, n, f, g) -> (b, n, f)>
#v = affine_map<(b, h, m, n, f, g) -> (b, n, g)>
#o = affine_map<(b, h, m, n, f, g) -> (b, m, h, g)>

// RULE: remark: ([i, k, j, 1], [i, k, 1], [i, k, 1], [k, l], [l]) -> ([i, k, j, 1]) {i = 2, j = 3, k = 21, l = 21} whole l
// Without a mask of indices, each device receives the blocks of the three others: keys, then values, from two owners each.
// CHECK-LABEL: func.func @main(
// CHECK-NOT: dist.all
// CHECK-COUNT-12: dist.exchange
// CHECK-NOT: = dist.
func.func @main(%q: tensor<2x21x3x5xf64> {dist.sharding = #dist.sharding<@m, [shard(1)]>},
                %k: tensor<2x21x5xf64> {dist.sharding = #dist.sharding<@m, [shard(1)]>},
                %v: tensor<2x21x4xf64> {dist.sharding = #dist.sharding<@m, [shard(1)]>},
                %bias: tensor<21x21xf64> {dist.sharding = #dist.sharding<@m, [shard(0)]>},
                %mask: tensor<21xi1> {dist.sharding = #dist.sharding<@m, [replicate]>})
    -> (tensor<2x21x3x4xf64> {dist.sharding = #dist.sharding<@m, [shard(1)]>}) {
  %o = ext.attention indexing_maps = [#q, #k, #v, affine_map<(b, h, m, n, f, g) -> (m, n)>, affine_map<(b, h, m, n, f, g) -> (n)>, #o]
      ins(%q, %k, %v, %bias, %mask : tensor<2x21x3x5xf64>, tensor<2x21x5xf64>, tensor<2x21x4xf64>, tensor<21x21xf64>, tensor<21xi1>)
      attributes {ring} {
  ^bb0(%product: f64, %b: f64, %isThere: i1, %i0: index, %i1: index, %m: index, %n: index, %i4: index, %i5: index):
    %least = arith.constant -1.0e30 : f64
    %biased = arith.addf %product, %b : f64
    %score = arith.select %isThere, %biased, %least : f64
    ext.yield %score : f64
  } -> tensor<2x21x3x4xf64>
  return %o : tensor<2x21x3x4xf64>
}
