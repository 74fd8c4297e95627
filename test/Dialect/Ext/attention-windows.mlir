// If a mask is a window of indices, devices exchange the halo of keys, forward and backward, and the
// parts equal the whole: with parts shorter than the window, uneven parts, and heads that share keys.
// RUN: tessera-opt %s --dist-print-rules -o /dev/null 2>&1 | FileCheck %s --check-prefix=RULE
// RUN: tessera-opt %s --tessera-pipeline=compile-to=partitioned | FileCheck %s
// RUN: tessera run %s --check
// RUN: sed 's/\[8\]/[3]/' %s > %t.mlir && tessera run %t.mlir --check
// RUN: tessera-fuzz --gradients --check %s

dist.process_mesh @m(shape = [8], dim_names = ["s"])

#q = affine_map<(b, h, m, n, f, g) -> (b, m, h, f)>
#k = affine_map<(b, h, m, n, f, g) -> (b, n, f)>
#v = affine_map<(b, h, m, n, f, g) -> (b, n, g)>
#o = affine_map<(b, h, m, n, f, g) -> (b, m, h, g)>
#row = affine_map<(b, h, m, n, f, g) -> (b, h, m)>

// RULE: remark: ([i, k, j, 1], [i, k - 4 .. + 6, 1], [i, k - 4 .. + 6, 1], [k - 4 .. + 6]) -> ([i, k, j, 1]) {i = 2, j = 3, k = 21, l = 21} whole l
// CHECK-LABEL: func.func @main(
// CHECK-NOT: dist.all
func.func @main(%q: tensor<2x21x3x5xf64> {dist.sharding = #dist.sharding<@m, [shard(1)]>},
                %k: tensor<2x21x5xf64> {dist.sharding = #dist.sharding<@m, [shard(1)]>},
                %v: tensor<2x21x4xf64> {dist.sharding = #dist.sharding<@m, [shard(1)]>})
    -> (tensor<2x21x3x4xf64> {dist.sharding = #dist.sharding<@m, [shard(1)]>}) {
  %bias = arith.constant dense<0.5> : tensor<21xf64>
  %o = ext.attention indexing_maps = [#q, #k, #v, affine_map<(b, h, m, n, f, g) -> (n)>, #o]
      ins(%q, %k, %v, %bias : tensor<2x21x3x5xf64>, tensor<2x21x5xf64>, tensor<2x21x4xf64>, tensor<21xf64>) {
  ^bb0(%product: f64, %b: f64, %i0: index, %i1: index, %m: index, %n: index, %i4: index, %i5: index):
    %least = arith.constant 0xFFF0000000000000 : f64
    %c5 = arith.constant 5 : index
    %c1 = arith.constant 1 : index
    %back = arith.subi %m, %n : index
    %near = arith.cmpi slt, %back, %c5 : index
    %next = arith.addi %m, %c1 : index
    %known = arith.cmpi sle, %n, %next : index
    %visible = arith.andi %near, %known : i1
    %biased = arith.addf %product, %b : f64
    %score = arith.select %visible, %biased, %least : f64
    ext.yield %score : f64
  } -> tensor<2x21x3x4xf64>
  return %o : tensor<2x21x3x4xf64>
}
