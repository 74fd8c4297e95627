// A balanced ring of a causal mask: device i of n computes chunks i and 2n - 1 - i. The parts equal the whole: with
// even and uneven lengths, heads that share keys, a bias of all scores and a mask of keys, forward and backward.
// RUN: tessera-opt %s --tessera-pipeline=compile-to=partitioned | FileCheck %s
// RUN: tessera run %s --check && tessera run %s --function uneven --check
// RUN: sed 's/\[4\]/[2]/' %s > %t.mlir && tessera run %t.mlir --check && tessera run %t.mlir --function uneven --check
// RUN: sed 's/\[4\]/[3]/' %s > %t.mlir && tessera run %t.mlir --check && tessera run %t.mlir --function uneven --check
// RUN: sed 's/\[4\]/[8]/' %s > %t.mlir && tessera run %t.mlir --check && tessera run %t.mlir --function uneven --check
// RUN: tessera-opt %s --dist-autodiff="function=main seed=argument recomputed-scores=0" -o %t.grad.mlir
// RUN: tessera run %t.grad.mlir --function main_grad --check
// RUN: tessera-opt %s --dist-autodiff="function=uneven seed=argument recomputed-scores=0" -o %t.grad.mlir
// RUN: tessera run %t.grad.mlir --function uneven_grad --check
// RUN: sed 's/\[4\]/[3]/' %t.grad.mlir > %t.mlir && tessera run %t.mlir --function uneven_grad --check
// RUN: tessera-fuzz --gradients --check %s

dist.process_mesh @m(shape = [4], dim_names = ["s"])

#q = affine_map<(m, n, f, g) -> (m, f)>
#k = affine_map<(m, n, f, g) -> (n, f)>
#v = affine_map<(m, n, f, g) -> (n, g)>
#o = affine_map<(m, n, f, g) -> (m, g)>

// Query, key and value arrive as heads and tails. Each of three turns receives keys and values: the heads of a device before
// or after, and the tails of one after. The output leaves as heads and tails. All products are of chunks of 2 positions.
// CHECK-LABEL: func.func @main(
// CHECK-NOT: dist.all
// CHECK-NOT: tensor<4x4xf64>
// CHECK-COUNT-26: dist.exchange
// CHECK-NOT: = dist.
func.func @main(%q: tensor<16x3xf64> {dist.sharding = #dist.sharding<@m, [shard(0)]>},
                %k: tensor<16x3xf64> {dist.sharding = #dist.sharding<@m, [shard(0)]>},
                %v: tensor<16x3xf64> {dist.sharding = #dist.sharding<@m, [shard(0)]>})
    -> (tensor<16x3xf64> {dist.sharding = #dist.sharding<@m, [shard(0)]>}) {
  %0 = ext.attention indexing_maps = [#q, #k, #v, #o] ins(%q, %k, %v : tensor<16x3xf64>, tensor<16x3xf64>, tensor<16x3xf64>)
      attributes {ring, balanced} {
  ^bb0(%product: f64, %m: index, %n: index, %f: index, %g: index):
    %least = arith.constant 0xFFF0000000000000 : f64
    %visible = arith.cmpi sge, %m, %n : index
    %score = arith.select %visible, %product, %least : f64
    ext.yield %score : f64
  } -> tensor<16x3xf64>
  return %0 : tensor<16x3xf64>
}

#hq = affine_map<(b, h, m, n, f, g) -> (b, m, h, f)>
#hk = affine_map<(b, h, m, n, f, g) -> (b, n, f)>
#hv = affine_map<(b, h, m, n, f, g) -> (b, n, g)>
#ho = affine_map<(b, h, m, n, f, g) -> (b, m, h, g)>

// CHECK-LABEL: func.func @uneven(
func.func @uneven(%q: tensor<2x21x3x5xf64> {dist.sharding = #dist.sharding<@m, [shard(1)]>},
                  %k: tensor<2x21x5xf64> {dist.sharding = #dist.sharding<@m, [shard(1)]>},
                  %v: tensor<2x21x4xf64> {dist.sharding = #dist.sharding<@m, [shard(1)]>},
                  %bias: tensor<21x21xf64> {dist.sharding = #dist.sharding<@m, [shard(0)]>},
                  %mask: tensor<21xf64> {dist.sharding = #dist.sharding<@m, [replicate]>})
    -> (tensor<2x21x3x4xf64> {dist.sharding = #dist.sharding<@m, [shard(1)]>}) {
  %o = ext.attention indexing_maps = [#hq, #hk, #hv, affine_map<(b, h, m, n, f, g) -> (m, n)>, affine_map<(b, h, m, n, f, g) -> (n)>, #ho]
      ins(%q, %k, %v, %bias, %mask : tensor<2x21x3x5xf64>, tensor<2x21x5xf64>, tensor<2x21x4xf64>, tensor<21x21xf64>, tensor<21xf64>)
      attributes {ring, balanced} {
  ^bb0(%product: f64, %b: f64, %ofKey: f64, %i0: index, %i1: index, %m: index, %n: index, %i4: index, %i5: index):
    %least = arith.constant 0xFFF0000000000000 : f64
    %biased = arith.addf %product, %b : f64
    %masked = arith.addf %biased, %ofKey : f64
    %visible = arith.cmpi sge, %m, %n : index
    %score = arith.select %visible, %masked, %least : f64
    ext.yield %score : f64
  } -> tensor<2x21x3x4xf64>
  return %o : tensor<2x21x3x4xf64>
}
