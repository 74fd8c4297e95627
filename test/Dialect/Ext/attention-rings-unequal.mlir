// A ring may have more or fewer queries than keys, with even or uneven parts: cross attention, and
// a causal mask after a prefix of keys. Blocks of keys that no device sees are not sent.
// RUN: tessera-opt %s --dist-print-rules -o /dev/null 2>&1 | FileCheck %s --check-prefix=RULE
// RUN: tessera-opt %s --tessera-pipeline=compile-to=partitioned | FileCheck %s
// RUN: tessera run %s --check && tessera run %s --function prefix --check && tessera run %s --function more --check
// RUN: sed 's/\[4\]/[3]/' %s > %t.mlir && tessera run %t.mlir --check && tessera run %t.mlir --function prefix --check
// RUN: sed 's/\[4\]/[8]/' %s > %t.mlir && tessera run %t.mlir --check && tessera run %t.mlir --function prefix --check
// RUN: tessera-opt %s --dist-autodiff="function=prefix seed=argument recomputed-scores=0" -o %t.grad.mlir
// RUN: tessera run %t.grad.mlir --function prefix_grad --check
// RUN: tessera-fuzz --gradients --check %s

dist.process_mesh @m(shape = [4], dim_names = ["s"])

#q = affine_map<(m, n, f, g) -> (m, f)>
#k = affine_map<(m, n, f, g) -> (n, f)>
#v = affine_map<(m, n, f, g) -> (n, g)>
#o = affine_map<(m, n, f, g) -> (m, g)>

// RULE: remark: ([i, 1], [i, 1], [i, 1]) -> ([i, 1]) {i = 13, j = 22} whole j
// CHECK-LABEL: func.func @main(
// CHECK-NOT: dist.all
// CHECK-COUNT-12: dist.exchange
// CHECK-NOT: = dist.
func.func @main(%q: tensor<13x3xf64> {dist.sharding = #dist.sharding<@m, [shard(0)]>},
                %k: tensor<22x3xf64> {dist.sharding = #dist.sharding<@m, [shard(0)]>},
                %v: tensor<22x4xf64> {dist.sharding = #dist.sharding<@m, [shard(0)]>})
    -> (tensor<13x4xf64> {dist.sharding = #dist.sharding<@m, [shard(0)]>}) {
  %0 = ext.attention indexing_maps = [#q, #k, #v, #o] ins(%q, %k, %v : tensor<13x3xf64>, tensor<22x3xf64>, tensor<22x4xf64>)
      attributes {ring} {
  ^bb0(%product: f64, %m: index, %n: index, %f: index, %g: index):
    ext.yield %product : f64
  } -> tensor<13x4xf64>
  return %0 : tensor<13x4xf64>
}

// Eight keys before the first query. Parts of 3 queries and 5 keys: device 0 sees keys to 10, so block 1 and the first key of block 2,
// device 1 sees keys to 13, device 2 keys to 16 and so block 3.
// CHECK-LABEL: func.func @prefix(
// CHECK-NOT: dist.all
// CHECK-COUNT-10: dist.exchange
// CHECK-NOT: = dist.
func.func @prefix(%q: tensor<12x3xf64> {dist.sharding = #dist.sharding<@m, [shard(0)]>},
                  %k: tensor<20x3xf64> {dist.sharding = #dist.sharding<@m, [shard(0)]>},
                  %v: tensor<20x4xf64> {dist.sharding = #dist.sharding<@m, [shard(0)]>})
    -> (tensor<12x4xf64> {dist.sharding = #dist.sharding<@m, [shard(0)]>}) {
  %0 = ext.attention indexing_maps = [#q, #k, #v, #o] ins(%q, %k, %v : tensor<12x3xf64>, tensor<20x3xf64>, tensor<20x4xf64>)
      attributes {ring} {
  ^bb0(%product: f64, %m: index, %n: index, %f: index, %g: index):
    %least = arith.constant 0xFFF0000000000000 : f64
    %prefix = arith.constant 8 : index
    %position = arith.addi %m, %prefix : index
    %visible = arith.cmpi sge, %position, %n : index
    %score = arith.select %visible, %product, %least : f64
    ext.yield %score : f64
  } -> tensor<12x4xf64>
  return %0 : tensor<12x4xf64>
}

// More queries than keys, with a causal mask: with parts of 6 queries and 3 keys, device 0 sees one later block, device 1 two.
// CHECK-LABEL: func.func @more(
// CHECK-NOT: dist.all
// CHECK-COUNT-10: dist.exchange
// CHECK-NOT: = dist.
func.func @more(%q: tensor<23x3xf64> {dist.sharding = #dist.sharding<@m, [shard(0)]>},
                %k: tensor<10x3xf64> {dist.sharding = #dist.sharding<@m, [shard(0)]>},
                %v: tensor<10x4xf64> {dist.sharding = #dist.sharding<@m, [shard(0)]>})
    -> (tensor<23x4xf64> {dist.sharding = #dist.sharding<@m, [shard(0)]>}) {
  %0 = ext.attention indexing_maps = [#q, #k, #v, #o] ins(%q, %k, %v : tensor<23x3xf64>, tensor<10x3xf64>, tensor<10x4xf64>)
      attributes {ring} {
  ^bb0(%product: f64, %m: index, %n: index, %f: index, %g: index):
    %least = arith.constant 0xFFF0000000000000 : f64
    %visible = arith.cmpi sge, %m, %n : index
    %score = arith.select %visible, %product, %least : f64
    ext.yield %score : f64
  } -> tensor<23x4xf64>
  return %0 : tensor<23x4xf64>
}
