// Blocks that a mask of indices hides from all devices are not sent: with a causal mask the blocks
// after the query's own, with a window also the blocks before the window.
// RUN: tessera-opt %s --tessera-pipeline=compile-to=partitioned | FileCheck %s
// RUN: tessera run %s --check
// RUN: tessera run %s --function near --check
// RUN: sed 's/\[4\]/[3]/' %s > %t.mlir && tessera run %t.mlir --check && tessera run %t.mlir --function near --check
// RUN: tessera-opt %s --dist-autodiff="function=main seed=argument recomputed-scores=0" -o %t.grad.mlir
// RUN: tessera run %t.grad.mlir --function main_grad --check
// RUN: tessera-fuzz --gradients --check %s

dist.process_mesh @m(shape = [4], dim_names = ["s"])

#q = affine_map<(m, n, f, g) -> (m, f)>
#k = affine_map<(m, n, f, g) -> (n, f)>
#v = affine_map<(m, n, f, g) -> (n, g)>
#o = affine_map<(m, n, f, g) -> (m, g)>

// CHECK-LABEL: func.func @main(
// CHECK-NOT: dist.all
// CHECK-COUNT-6: dist.exchange
// CHECK-NOT: = dist.
func.func @main(%q: tensor<18x4xf64> {dist.sharding = #dist.sharding<@m, [shard(0)]>},
                %k: tensor<18x4xf64> {dist.sharding = #dist.sharding<@m, [shard(0)]>},
                %v: tensor<18x4xf64> {dist.sharding = #dist.sharding<@m, [shard(0)]>})
    -> (tensor<18x4xf64> {dist.sharding = #dist.sharding<@m, [shard(0)]>}) {
  %0 = ext.attention indexing_maps = [#q, #k, #v, #o] ins(%q, %k, %v : tensor<18x4xf64>, tensor<18x4xf64>, tensor<18x4xf64>)
      attributes {ring} {
  ^bb0(%product: f64, %m: index, %n: index, %f: index, %g: index):
    %least = arith.constant 0xFFF0000000000000 : f64
    %visible = arith.cmpi sge, %m, %n : index
    %score = arith.select %visible, %product, %least : f64
    ext.yield %score : f64
  } -> tensor<18x4xf64>
  return %0 : tensor<18x4xf64>
}

// Parts of 5: the third part before a query is 11 positions away.
// CHECK-LABEL: func.func @near(
// CHECK-NOT: dist.all
// CHECK-COUNT-4: dist.exchange
// CHECK-NOT: = dist.
func.func @near(%q: tensor<18x4xf64> {dist.sharding = #dist.sharding<@m, [shard(0)]>},
                %k: tensor<18x4xf64> {dist.sharding = #dist.sharding<@m, [shard(0)]>},
                %v: tensor<18x4xf64> {dist.sharding = #dist.sharding<@m, [shard(0)]>})
    -> (tensor<18x4xf64> {dist.sharding = #dist.sharding<@m, [shard(0)]>}) {
  %0 = ext.attention indexing_maps = [#q, #k, #v, #o] ins(%q, %k, %v : tensor<18x4xf64>, tensor<18x4xf64>, tensor<18x4xf64>)
      attributes {ring} {
  ^bb0(%product: f64, %m: index, %n: index, %f: index, %g: index):
    %least = arith.constant 0xFFF0000000000000 : f64
    %c10 = arith.constant 10 : index
    %back = arith.subi %m, %n : index
    %close = arith.cmpi sle, %back, %c10 : index
    %behind = arith.cmpi sge, %m, %n : index
    %visible = arith.andi %behind, %close : i1
    %score = arith.select %visible, %product, %least : f64
    ext.yield %score : f64
  } -> tensor<18x4xf64>
  return %0 : tensor<18x4xf64>
}
