// RUN: tessera-opt %s --dist-print-rules --verify-diagnostics -o /dev/null

// Look-ups and scatter-adds, written as sums in which one iteration is not zero: a table that is
// cut over its rows yields contributions.

#row = affine_map<(i, j, v) -> (i)>
#table = affine_map<(i, j, v) -> (v, j)>
#out = affine_map<(i, j, v) -> (i, j)>
func.func @look_up(%index: tensor<4xi32>, %table: tensor<16x6xf32>, %init: tensor<4x6xf32>) -> tensor<4x6xf32> {
  // expected-remark @+1 {{([i], [k, j], [i, j]) -> ([i, j]) {i = 4, j = 6, k = 16} sum over k, operand 2 accumulates; forwards sums from {1, 2}}}
  %0 = linalg.generic {indexing_maps = [#row, #table, #out], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%index, %table : tensor<4xi32>, tensor<16x6xf32>) outs(%init : tensor<4x6xf32>) {
  ^bb0(%place: i32, %x: f32, %sum: f32):
    %v = linalg.index 2 : index
    %row = arith.index_cast %v : index to i32
    %hit = arith.cmpi eq, %row, %place : i32
    %zero = arith.constant 0.0 : f32
    %one = arith.select %hit, %x, %zero : f32
    %next = arith.addf %sum, %one : f32
    linalg.yield %next : f32
  } -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}
#update = affine_map<(v, j, i) -> (i, j)>
#which = affine_map<(v, j, i) -> (i)>
#grad = affine_map<(v, j, i) -> (v, j)>
func.func @scatter_add(%index: tensor<32xi32>, %rows: tensor<32x6xf32>, %init: tensor<16x6xf32>) -> tensor<16x6xf32> {
  // expected-remark @+1 {{([k], [k, j], [i, j]) -> ([i, j]) {i = 16, j = 6, k = 32} sum over k, operand 2 accumulates; forwards sums from {1, 2}}}
  %0 = linalg.generic {indexing_maps = [#which, #update, #grad], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%index, %rows : tensor<32xi32>, tensor<32x6xf32>) outs(%init : tensor<16x6xf32>) {
  ^bb0(%place: i32, %x: f32, %sum: f32):
    %v = linalg.index 0 : index
    %row = arith.index_cast %v : index to i32
    %hit = arith.cmpi eq, %row, %place : i32
    %zero = arith.constant 0.0 : f32
    %one = arith.select %hit, %x, %zero : f32
    %next = arith.addf %sum, %one : f32
    linalg.yield %next : f32
  } -> tensor<16x6xf32>
  return %0 : tensor<16x6xf32>
}
