// RUN: tessera explain %s --function experts | FileCheck %s --check-prefix=EXPERTS
// RUN: tessera run %s --function experts --check | FileCheck %s --check-prefix=VALUE
// RUN: tessera explain %s --function gradient | FileCheck %s --check-prefix=GRADIENT
// RUN: tessera run %s --function gradient --check | FileCheck %s --check-prefix=VALUE
// RUN: tessera explain %s --function rows | FileCheck %s --check-prefix=ROWS
// RUN: tessera run %s --function rows --check | FileCheck %s --check-prefix=VALUE

// Rows of groups are computed where the matrices, or the rows of tables, of their groups are.
dist.process_mesh @line(shape = [4], dim_names = ["s"])

// VALUE: check {{.*}} ok

#x = affine_map<(r, f, g, k) -> (r, k)>
#w = affine_map<(r, f, g, k) -> (g, k, f)>
#g = affine_map<(r, f, g, k) -> (r)>
#y = affine_map<(r, f, g, k) -> (r, f)>
#groups = #dist.sharding<@line, [shard(0)]>

// Two products with a nonlinear function between them. Rows to all, 64 * 32 * 4 * 3 / 4 bytes, groups of rows to all,
// 64 * 4 * 3 / 4, contributions to the rows; not those to the first product, of twice as many elements.
// EXPERTS-DAG: all_gather {{.*}} 6144 on the wire
// EXPERTS-DAG: all_gather {{.*}} 192 on the wire
// EXPERTS-DAG: reduce_scatter {{.*}} 6144 on the wire
// EXPERTS: total: 3 collectives, 12480 bytes on the wire
func.func @experts(%x: tensor<64x32xf32> {dist.sharding = #groups}, %w: tensor<8x32x64xf32> {dist.sharding = #groups},
                   %v: tensor<8x64x32xf32> {dist.sharding = #groups},
                   %at: tensor<64xi32> {dist.range = [0, 8], dist.sharding = #groups})
    -> (tensor<64x32xf32> {dist.sharding = #groups}) {
  %h = func.call @first(%x, %w, %at) : (tensor<64x32xf32>, tensor<8x32x64xf32>, tensor<64xi32>) -> tensor<64x64xf32>
  %t = math.cos %h : tensor<64x64xf32>
  %y = func.call @second(%t, %v, %at) : (tensor<64x64xf32>, tensor<8x64x32xf32>, tensor<64xi32>) -> tensor<64x32xf32>
  return %y : tensor<64x32xf32>
}

// The gradient of the second matrices by that of the result: rows and gradients to all, and nothing back.
// GRADIENT-NOT: reduce
// GRADIENT: total: {{.*}} collectives, 12480 bytes on the wire
func.func @gradient(%x: tensor<64x32xf32> {dist.sharding = #groups}, %w: tensor<8x32x64xf32> {dist.sharding = #groups},
                    %dy: tensor<64x32xf32> {dist.sharding = #groups},
                    %at: tensor<64xi32> {dist.range = [0, 8], dist.sharding = #groups})
    -> (tensor<8x64x32xf32> {dist.sharding = #groups}) {
  %h = func.call @first(%x, %w, %at) : (tensor<64x32xf32>, tensor<8x32x64xf32>, tensor<64xi32>) -> tensor<64x64xf32>
  %t = math.cos %h : tensor<64x64xf32>
  %zero = arith.constant dense<0.0> : tensor<8x64x32xf32>
  %dv = linalg.generic {indexing_maps = [affine_map<(g, f, d, r) -> (r, f)>, affine_map<(g, f, d, r) -> (r, d)>,
                                         affine_map<(g, f, d, r) -> (r)>, affine_map<(g, f, d, r) -> (g, f, d)>],
                        iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%t, %dy, %at : tensor<64x64xf32>, tensor<64x32xf32>, tensor<64xi32>) outs(%zero : tensor<8x64x32xf32>) {
  ^bb0(%a: f32, %b: f32, %group: i32, %acc: f32):
    %number = linalg.index 0 : index
    %here = arith.index_cast %number : index to i32
    %is = arith.cmpi eq, %group, %here : i32
    %product = arith.mulf %a, %b : f32
    %none = arith.constant 0.0 : f32
    %term = arith.select %is, %product, %none : f32
    %sum = arith.addf %acc, %term : f32
    linalg.yield %sum : f32
  } -> tensor<8x64x32xf32>
  return %dv : tensor<8x64x32xf32>
}

// Sums of products of rows of two tables at the same indices: the indices, and one number of each, to all.
// ROWS-NOT: f32 {{.*}} all_gather
// ROWS: total: {{.*}} collectives, 384 bytes on the wire
func.func @rows(%t: tensor<4096x32xf32> {dist.sharding = #groups}, %u: tensor<4096x32xf32> {dist.sharding = #groups},
                %at: tensor<64xi32> {dist.range = [0, 4096], dist.sharding = #groups})
    -> (tensor<64xf32> {dist.sharding = #groups}) {
  %a = func.call @look_up(%t, %at) : (tensor<4096x32xf32>, tensor<64xi32>) -> tensor<64x32xf32>
  %b = func.call @look_up(%u, %at) : (tensor<4096x32xf32>, tensor<64xi32>) -> tensor<64x32xf32>
  %c = arith.mulf %a, %b : tensor<64x32xf32>
  %d = math.sin %c : tensor<64x32xf32>
  %none = arith.constant dense<0.0> : tensor<64xf32>
  %r = linalg.reduce {arith.addf} ins(%d : tensor<64x32xf32>) outs(%none : tensor<64xf32>) dimensions = [1]
  return %r : tensor<64xf32>
}

func.func private @first(%x: tensor<64x32xf32>, %w: tensor<8x32x64xf32>, %at: tensor<64xi32>) -> tensor<64x64xf32> {
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %y = linalg.generic {indexing_maps = [#x, #w, #g, #y], iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
      ins(%x, %w, %at : tensor<64x32xf32>, tensor<8x32x64xf32>, tensor<64xi32>) outs(%zero : tensor<64x64xf32>) {
  ^bb0(%a: f32, %b: f32, %group: i32, %acc: f32):
    %number = linalg.index 2 : index
    %here = arith.index_cast %number : index to i32
    %is = arith.cmpi eq, %group, %here : i32
    %product = arith.mulf %a, %b : f32
    %none = arith.constant 0.0 : f32
    %term = arith.select %is, %product, %none : f32
    %sum = arith.addf %acc, %term : f32
    linalg.yield %sum : f32
  } -> tensor<64x64xf32>
  return %y : tensor<64x64xf32>
}

func.func private @second(%x: tensor<64x64xf32>, %w: tensor<8x64x32xf32>, %at: tensor<64xi32>) -> tensor<64x32xf32> {
  %zero = arith.constant dense<0.0> : tensor<64x32xf32>
  %y = linalg.generic {indexing_maps = [#x, #w, #g, #y], iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
      ins(%x, %w, %at : tensor<64x64xf32>, tensor<8x64x32xf32>, tensor<64xi32>) outs(%zero : tensor<64x32xf32>) {
  ^bb0(%a: f32, %b: f32, %group: i32, %acc: f32):
    %number = linalg.index 2 : index
    %here = arith.index_cast %number : index to i32
    %is = arith.cmpi eq, %group, %here : i32
    %product = arith.mulf %a, %b : f32
    %none = arith.constant 0.0 : f32
    %term = arith.select %is, %product, %none : f32
    %sum = arith.addf %acc, %term : f32
    linalg.yield %sum : f32
  } -> tensor<64x32xf32>
  return %y : tensor<64x32xf32>
}

func.func private @look_up(%t: tensor<4096x32xf32>, %at: tensor<64xi32>) -> tensor<64x32xf32> {
  %zero = arith.constant dense<0.0> : tensor<64x32xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j, v) -> (v, j)>, affine_map<(i, j, v) -> (i)>, affine_map<(i, j, v) -> (i, j)>],
                       iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%t, %at : tensor<4096x32xf32>, tensor<64xi32>) outs(%zero : tensor<64x32xf32>) {
  ^bb0(%a: f32, %row: i32, %acc: f32):
    %number = linalg.index 2 : index
    %here = arith.index_cast %number : index to i32
    %is = arith.cmpi eq, %row, %here : i32
    %none = arith.constant 0.0 : f32
    %term = arith.select %is, %a, %none : f32
    %sum = arith.addf %acc, %term : f32
    linalg.yield %sum : f32
  } -> tensor<64x32xf32>
  return %y : tensor<64x32xf32>
}
