// RUN: tessera-opt %s --dist-normalize | FileCheck %s
// RUN: tessera explain %s --function=rows --objective=bytes | FileCheck %s --check-prefix=BYTES
// RUN: tessera run %s --function=rows --check | FileCheck %s --check-prefix=VALUE
// RUN: tessera run %s --function=derivative --check | FileCheck %s --check-prefix=VALUE

// Each row looks up the matrix of its group, and multiplies. The matrices are not copied for each row, and
// devices multiply the rows of the groups that they have: rows and groups are sent, and sums of products.

dist.process_mesh @line(shape = [4], dim_names = ["s"])

#table = affine_map<(r, n, k, g) -> (g, n, k)>
#row = affine_map<(r, n, k, g) -> (r)>
#copies = affine_map<(r, n, k, g) -> (r, n, k)>
#matrix = affine_map<(r, n, one, k) -> (r, n, k)>
#vector = affine_map<(r, n, one, k) -> (r, k, one)>
#product = affine_map<(r, n, one, k) -> (r, n, one)>

// CHECK-DAG: #[[TABLE:.*]] = affine_map<(d0, d1, d2, d3) -> (d3, d1, d2)>
// CHECK-DAG: #[[ROW:.*]] = affine_map<(d0, d1, d2, d3) -> (d0)>
// CHECK-DAG: #[[VECTOR:.*]] = affine_map<(d0, d1, d2, d3) -> (d0, d2)>
// CHECK-DAG: #[[OUT:.*]] = affine_map<(d0, d1, d2, d3) -> (d0, d1)>

// CHECK-LABEL: func.func @rows(
// CHECK-NOT: 32x48x40x
// CHECK: %[[Y:.*]] = linalg.generic {indexing_maps = [#[[TABLE]], #[[ROW]], #[[VECTOR]], #[[OUT]]]
// CHECK-SAME: ins(%arg1, %arg2, %arg0 :
// CHECK: arith.mulf
// CHECK: arith.select
// CHECK: return %[[Y]]
// BYTES: total: 3 collectives
// VALUE: check {{.*}} ok
func.func @rows(%x: tensor<32x40xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>},
                %w: tensor<8x48x40xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>},
                %group: tensor<32xi32> {dist.sharding = #dist.sharding<@line, [shard(0)]>})
    -> (tensor<32x48xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>}) {
  %none = arith.constant dense<0.0> : tensor<32x48x40xf32>
  %m = linalg.generic {indexing_maps = [#table, #row, #copies],
                       iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%w, %group : tensor<8x48x40xf32>, tensor<32xi32>) outs(%none : tensor<32x48x40xf32>) {
  ^bb0(%in: f32, %at: i32, %out: f32):
    %g = linalg.index 3 : index
    %n = arith.index_cast %g : index to i32
    %is = arith.cmpi eq, %at, %n : i32
    %zero = arith.constant 0.0 : f32
    %term = arith.select %is, %in, %zero : f32
    %sum = arith.addf %out, %term : f32
    linalg.yield %sum : f32
  } -> tensor<32x48x40xf32>
  %column = tensor.expand_shape %x [[0], [1, 2]] output_shape [32, 40, 1] : tensor<32x40xf32> into tensor<32x40x1xf32>
  %start = arith.constant dense<0.0> : tensor<32x48x1xf32>
  %y = linalg.contract indexing_maps = [#matrix, #vector, #product]
      ins(%m, %column : tensor<32x48x40xf32>, tensor<32x40x1xf32>) outs(%start : tensor<32x48x1xf32>) -> tensor<32x48x1xf32>
  %flat = tensor.collapse_shape %y [[0], [1, 2]] : tensor<32x48x1xf32> into tensor<32x48xf32>
  return %flat : tensor<32x48xf32>
}

// The derivative by the matrices: a product for each row, of which those of a group are added.
// CHECK-LABEL: func.func @derivative(
// CHECK-NOT: 32x48x40x
// CHECK: %[[D:.*]] = linalg.generic {{.*}} : tensor<32x48xf32>, tensor<32x40xf32>, tensor<32xi32>) outs({{.*}} : tensor<8x48x40xf32>)
// CHECK: return %[[D]]
func.func @derivative(%x: tensor<32x1x40xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>},
                      %z: tensor<32x48x1xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>}, %group: tensor<32xi32>)
    -> (tensor<8x48x40xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>}) {
  %start = arith.constant dense<0.0> : tensor<32x48x40xf32>
  %e = linalg.contract indexing_maps = [affine_map<(r, n, k, one) -> (r, n, one)>, affine_map<(r, n, k, one) -> (r, one, k)>,
                                        affine_map<(r, n, k, one) -> (r, n, k)>]
      ins(%z, %x : tensor<32x48x1xf32>, tensor<32x1x40xf32>) outs(%start : tensor<32x48x40xf32>) -> tensor<32x48x40xf32>
  %none = arith.constant dense<0.0> : tensor<8x48x40xf32>
  %d = linalg.generic {indexing_maps = [affine_map<(g, n, k, r) -> (r, n, k)>, affine_map<(g, n, k, r) -> (r)>,
                                        affine_map<(g, n, k, r) -> (g, n, k)>],
                       iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%e, %group : tensor<32x48x40xf32>, tensor<32xi32>) outs(%none : tensor<8x48x40xf32>) {
  ^bb0(%in: f32, %at: i32, %out: f32):
    %g = linalg.index 0 : index
    %n = arith.index_cast %g : index to i32
    %is = arith.cmpi eq, %at, %n : i32
    %zero = arith.constant 0.0 : f32
    %term = arith.select %is, %in, %zero : f32
    %sum = arith.addf %out, %term : f32
    linalg.yield %sum : f32
  } -> tensor<8x48x40xf32>
  return %d : tensor<8x48x40xf32>
}
