// RUN: tessera run %s --function of_tokens --check=interpreter | FileCheck %s --check-prefix=VALUE
// RUN: tessera run %s --function of_groups --check=interpreter | FileCheck %s --check-prefix=VALUE
// RUN: tessera run %s --function sums --check=interpreter | FileCheck %s --check-prefix=VALUE
// RUN: tessera-opt %s --tessera-pipeline --codegen-prepare | FileCheck %s

// Each token has the matrices of several groups: rows are merged to one dimension, and what does not depend on the
// choice is copied. No extent divides by the number of devices.
// VALUE: check result0 ok

// CHECK-LABEL: func.func @of_tokens
// CHECK: linalg.contract {{.*}} ins(%{{.*}} : tensor<{{.*}}x61xf32>, tensor<61x100xf32>)
// CHECK: tensor.expand_shape {{.*}} into tensor<12x2x100xf32>

dist.process_mesh @m(shape = [3], dim_names = ["x"])

#x = affine_map<(t, c, n, g, k) -> (t, k)>
#w = affine_map<(t, c, n, g, k) -> (g, k, n)>
#row = affine_map<(t, c, n, g, k) -> (t, c)>
#y = affine_map<(t, c, n, g, k) -> (t, c, n)>
#dx = affine_map<(g, k, n, t, c) -> (t, k)>
#dy = affine_map<(g, k, n, t, c) -> (t, c, n)>
#drow = affine_map<(g, k, n, t, c) -> (t, c)>
#d = affine_map<(g, k, n, t, c) -> (g, k, n)>

func.func @of_tokens(%x: tensor<35x61xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>}, %w: tensor<5x61x100xf32> {dist.sharding = #dist.sharding<@m, [replicate]>}, %group: tensor<35x2xi32> {dist.sharding = #dist.sharding<@m, [shard(0)]>, dist.range = [-1, 7]})
    -> (tensor<35x2x100xf32> {dist.sharding = #dist.sharding<@m, [?]>}) {
  %zero = arith.constant dense<0.0> : tensor<35x2x100xf32>
  %y = linalg.generic {indexing_maps = [#x, #w, #row, #y], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%x, %w, %group : tensor<35x61xf32>, tensor<5x61x100xf32>, tensor<35x2xi32>) outs(%zero : tensor<35x2x100xf32>) {
  ^bb0(%a: f32, %b: f32, %g: i32, %acc: f32):
    %n = linalg.index 3 : index
    %m = arith.index_cast %n : index to i32
    %is = arith.cmpi eq, %g, %m : i32
    %product = arith.mulf %a, %b : f32
    %none = arith.constant 0.0 : f32
    %term = arith.select %is, %product, %none : f32
    %sum = arith.addf %acc, %term : f32
    linalg.yield %sum : f32
  } -> tensor<35x2x100xf32>
  return %y : tensor<35x2x100xf32>
}

func.func @of_groups(%x: tensor<35x61xf32> {dist.sharding = #dist.sharding<@m, [replicate]>}, %w: tensor<5x61x100xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>}, %group: tensor<35x2xi32> {dist.sharding = #dist.sharding<@m, [replicate]>, dist.range = [-1, 7]})
    -> (tensor<35x2x100xf32> {dist.sharding = #dist.sharding<@m, [?]>}) {
  %zero = arith.constant dense<0.0> : tensor<35x2x100xf32>
  %y = linalg.generic {indexing_maps = [#x, #w, #row, #y], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%x, %w, %group : tensor<35x61xf32>, tensor<5x61x100xf32>, tensor<35x2xi32>) outs(%zero : tensor<35x2x100xf32>) {
  ^bb0(%a: f32, %b: f32, %g: i32, %acc: f32):
    %n = linalg.index 3 : index
    %m = arith.index_cast %n : index to i32
    %is = arith.cmpi eq, %g, %m : i32
    %product = arith.mulf %a, %b : f32
    %none = arith.constant 0.0 : f32
    %term = arith.select %is, %product, %none : f32
    %sum = arith.addf %acc, %term : f32
    linalg.yield %sum : f32
  } -> tensor<35x2x100xf32>
  return %y : tensor<35x2x100xf32>
}

func.func @sums(%x: tensor<35x61xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>}, %y: tensor<35x2x100xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>}, %group: tensor<35x2xi32> {dist.sharding = #dist.sharding<@m, [shard(0)]>, dist.range = [-1, 7]})
    -> (tensor<5x61x100xf32> {dist.sharding = #dist.sharding<@m, [?]>}) {
  %zero = arith.constant dense<0.0> : tensor<5x61x100xf32>
  %d = linalg.generic {indexing_maps = [#dx, #dy, #drow, #d], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%x, %y, %group : tensor<35x61xf32>, tensor<35x2x100xf32>, tensor<35x2xi32>) outs(%zero : tensor<5x61x100xf32>) {
  ^bb0(%a: f32, %b: f32, %g: i32, %acc: f32):
    %n = linalg.index 0 : index
    %m = arith.index_cast %n : index to i32
    %is = arith.cmpi eq, %g, %m : i32
    %product = arith.mulf %a, %b : f32
    %none = arith.constant 0.0 : f32
    %term = arith.select %is, %product, %none : f32
    %sum = arith.addf %acc, %term : f32
    linalg.yield %sum : f32
  } -> tensor<5x61x100xf32>
  return %d : tensor<5x61x100xf32>
}
