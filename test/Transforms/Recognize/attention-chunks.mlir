// Queries that see keys of their own chunk only: chunks are batches, and devices that cut between them exchange nothing.
// RUN: tessera-opt %s --dist-recognize-attention | FileCheck %s
// RUN: tessera explain %s | FileCheck %s --check-prefix=BYTES
// RUN: tessera run %s --check
// RUN: tessera-opt %s --dist-autodiff=seed=argument -o %t.mlir
// RUN: tessera-opt %t.mlir --dist-recognize-attention | FileCheck %s --check-prefix=BACK
// RUN: tessera explain %t.mlir --function main_grad | FileCheck %s --check-prefix=BYTES
// RUN: tessera run %t.mlir --function main_grad --check
// RUN: sed 's/shape = .3./shape = [2]/' %s > %t.mlir && tessera-opt %t.mlir --dist-recognize-attention | FileCheck %s --check-prefix=KEPT

// CHECK-DAG: #[[Q:.*]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d5, d1, d3)>
// CHECK-DAG: #[[K:.*]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d5, d2, d3)>
// CHECK: tensor.expand_shape %{{.*}} output_shape [2, 3, 8, 4]
// CHECK: ext.attention indexing_maps = [#[[Q]], #[[K]], {{.*}} tensor<2x3x8x4xf32>, tensor<2x3x8x4xf32>, tensor<2x3x8x5xf32>
// CHECK-NEXT: ^bb0(%[[PRODUCT:.*]]: f32, %{{.*}}: f32, %{{.*}}: index, %[[M:.*]]: index, %[[N:.*]]: index, %{{.*}}: index, %{{.*}}: index, %[[CHUNK:.*]]: index):
// CHECK: %[[BEGIN:.*]] = arith.muli %[[CHUNK]]
// CHECK: arith.addi %[[BEGIN]], %[[M]]
// CHECK-NOT: arith.divui
// CHECK: weights {
// CHECK: tensor.collapse_shape {{.*}} : tensor<2x3x8x5xf32> into tensor<2x24x5xf32>
// BYTES: total: 0 collectives, 0 bytes
// BACK: ext.attention_backward {{.*}} tensor<2x3x8x4xf32>, tensor<2x3x8x4xf32>, tensor<2x3x8x5xf32>, tensor<2x3x8x5xf32>, tensor<2x3x8xf32>

// Two devices do not divide three chunks.
// KEPT-NOT: tensor.expand_shape
dist.process_mesh @m(shape = [3], dim_names = ["s"])

#q = affine_map<(b, m, n, f, g) -> (b, m, f)>
#k = affine_map<(b, m, n, f, g) -> (b, n, f)>
#v = affine_map<(b, m, n, f, g) -> (b, n, g)>
#bias = affine_map<(b, m, n, f, g) -> (n)>
#o = affine_map<(b, m, n, f, g) -> (b, m, g)>

func.func @main(%q: tensor<2x24x4xf32> {dist.sharding = #dist.sharding<@m, [shard(1)]>},
                %k: tensor<2x24x4xf32> {dist.sharding = #dist.sharding<@m, [shard(1)]>},
                %v: tensor<2x24x5xf32> {dist.sharding = #dist.sharding<@m, [shard(1)]>})
    -> (tensor<2x24x5xf32> {dist.sharding = #dist.sharding<@m, [shard(1)]>}) {
  %bias = arith.constant dense<0.5> : tensor<24xf32>
  %o = ext.attention indexing_maps = [#q, #k, #v, #bias, #o]
      ins(%q, %k, %v, %bias : tensor<2x24x4xf32>, tensor<2x24x4xf32>, tensor<2x24x5xf32>, tensor<24xf32>) {
  ^bb0(%product: f32, %x: f32, %b: index, %m: index, %n: index, %f: index, %g: index):
    %least = arith.constant 0xFF800000 : f32
    %c8 = arith.constant 8 : index
    %biased = arith.addf %product, %x : f32
    %i = arith.divui %m, %c8 : index
    %j = arith.divui %n, %c8 : index
    %same = arith.cmpi eq, %i, %j : index
    %before = arith.cmpi sge, %m, %n : index
    %sees = arith.andi %same, %before : i1
    %score = arith.select %sees, %biased, %least : f32
    ext.yield %score : f32
  } weights {
  ^bb0(%share: f32, %x: f32, %b: index, %m: index, %n: index, %f: index, %g: index):
    %zero = arith.constant 0.0 : f32
    %c5 = arith.constant 5 : index
    %c3 = arith.constant 3 : index
    %mn = arith.addi %m, %n : index
    %times = arith.muli %mn, %c5 : index
    %all = arith.addi %times, %b : index
    %c0 = arith.constant 0 : index
    %digit = arith.remui %all, %c3 : index
    %keep = arith.cmpi ne, %digit, %c0 : index
    %weight = arith.select %keep, %share, %zero : f32
    ext.yield %weight : f32
  } -> tensor<2x24x5xf32>
  return %o : tensor<2x24x5xf32>
}
