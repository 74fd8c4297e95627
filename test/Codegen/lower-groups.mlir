// RUN: tessera run %s --function of_rows --check=interpreter | FileCheck %s --check-prefix=VALUE
// RUN: tessera run %s --function of_groups --check=interpreter | FileCheck %s --check-prefix=VALUE
// RUN: tessera run %s --function of_depth --check=interpreter | FileCheck %s --check-prefix=VALUE
// RUN: tessera run %s --function of_columns --check=interpreter | FileCheck %s --check-prefix=VALUE
// RUN: tessera run %s --function sums_of_rows --check=interpreter | FileCheck %s --check-prefix=VALUE
// RUN: tessera run %s --function sums_of_groups --check=interpreter | FileCheck %s --check-prefix=VALUE
// RUN: tessera run %s --function sums_of_depth --check=interpreter | FileCheck %s --check-prefix=VALUE
// RUN: tessera-opt %s --tessera-pipeline --codegen-prepare | FileCheck %s
// RUN: tessera-opt %s --tessera-pipeline=compile-to=partitioned | FileCheck %s --check-prefix=LOCAL

// Products of rows with the matrix of their group: rows are sorted by group, and blocks of rows of
// one group are multiplied, as many as the device's groups have. Groups out of range give zeros. No
// extent divides by the number of devices.
// VALUE: check result0 ok

// CHECK-LABEL: func.func @of_rows
// CHECK: %[[COUNT:.*]] = arith.index_cast %{{.*}} : i32 to index
// CHECK: scf.for %{{.*}} = %c0{{.*}} to %{{.*}} step
// CHECK: linalg.contract {{.*}} ins(%{{.*}} : tensor<5x61xf32>, tensor<61x100xf32>)

// The cost counts a device's share of the rows of all groups.
// LOCAL-LABEL: func.func @of_groups
// LOCAL: linalg.generic {{.*}}dist.groups = 5 : i64

dist.process_mesh @m(shape = [3], dim_names = ["x"])

#x = affine_map<(r, n, g, k) -> (r, k)>
#w = affine_map<(r, n, g, k) -> (g, k, n)>
#row = affine_map<(r, n, g, k) -> (r)>
#y = affine_map<(r, n, g, k) -> (r, n)>
#dx = affine_map<(g, k, n, r) -> (r, k)>
#dy = affine_map<(g, k, n, r) -> (r, n)>
#drow = affine_map<(g, k, n, r) -> (r)>
#d = affine_map<(g, k, n, r) -> (g, k, n)>

func.func @of_rows(%x: tensor<70x61xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>}, %w: tensor<5x61x100xf32> {dist.sharding = #dist.sharding<@m, [replicate]>}, %group: tensor<70xi32> {dist.sharding = #dist.sharding<@m, [shard(0)]>, dist.range = [-1, 7]})
    -> (tensor<70x100xf32> {dist.sharding = #dist.sharding<@m, [?]>}) {
  %zero = arith.constant dense<0.0> : tensor<70x100xf32>
  %y = linalg.generic {indexing_maps = [#x, #w, #row, #y], iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
      ins(%x, %w, %group : tensor<70x61xf32>, tensor<5x61x100xf32>, tensor<70xi32>) outs(%zero : tensor<70x100xf32>) {
  ^bb0(%a: f32, %b: f32, %g: i32, %acc: f32):
    %n = linalg.index 2 : index
    %m = arith.index_cast %n : index to i32
    %is = arith.cmpi eq, %g, %m : i32
    %product = arith.mulf %a, %b : f32
    %none = arith.constant 0.0 : f32
    %term = arith.select %is, %product, %none : f32
    %sum = arith.addf %acc, %term : f32
    linalg.yield %sum : f32
  } -> tensor<70x100xf32>
  return %y : tensor<70x100xf32>
}

func.func @of_groups(%x: tensor<70x61xf32> {dist.sharding = #dist.sharding<@m, [replicate]>}, %w: tensor<5x61x100xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>}, %group: tensor<70xi32> {dist.sharding = #dist.sharding<@m, [replicate]>, dist.range = [-1, 7]})
    -> (tensor<70x100xf32> {dist.sharding = #dist.sharding<@m, [?]>}) {
  %zero = arith.constant dense<0.0> : tensor<70x100xf32>
  %y = linalg.generic {indexing_maps = [#x, #w, #row, #y], iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
      ins(%x, %w, %group : tensor<70x61xf32>, tensor<5x61x100xf32>, tensor<70xi32>) outs(%zero : tensor<70x100xf32>) {
  ^bb0(%a: f32, %b: f32, %g: i32, %acc: f32):
    %n = linalg.index 2 : index
    %m = arith.index_cast %n : index to i32
    %is = arith.cmpi eq, %g, %m : i32
    %product = arith.mulf %a, %b : f32
    %none = arith.constant 0.0 : f32
    %term = arith.select %is, %product, %none : f32
    %sum = arith.addf %acc, %term : f32
    linalg.yield %sum : f32
  } -> tensor<70x100xf32>
  return %y : tensor<70x100xf32>
}

func.func @of_depth(%x: tensor<70x61xf32> {dist.sharding = #dist.sharding<@m, [shard(1)]>}, %w: tensor<5x61x100xf32> {dist.sharding = #dist.sharding<@m, [shard(1)]>}, %group: tensor<70xi32> {dist.sharding = #dist.sharding<@m, [replicate]>, dist.range = [-1, 7]})
    -> (tensor<70x100xf32> {dist.sharding = #dist.sharding<@m, [?]>}) {
  %zero = arith.constant dense<0.0> : tensor<70x100xf32>
  %y = linalg.generic {indexing_maps = [#x, #w, #row, #y], iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
      ins(%x, %w, %group : tensor<70x61xf32>, tensor<5x61x100xf32>, tensor<70xi32>) outs(%zero : tensor<70x100xf32>) {
  ^bb0(%a: f32, %b: f32, %g: i32, %acc: f32):
    %n = linalg.index 2 : index
    %m = arith.index_cast %n : index to i32
    %is = arith.cmpi eq, %g, %m : i32
    %product = arith.mulf %a, %b : f32
    %none = arith.constant 0.0 : f32
    %term = arith.select %is, %product, %none : f32
    %sum = arith.addf %acc, %term : f32
    linalg.yield %sum : f32
  } -> tensor<70x100xf32>
  return %y : tensor<70x100xf32>
}

func.func @of_columns(%x: tensor<70x61xf32> {dist.sharding = #dist.sharding<@m, [replicate]>}, %w: tensor<5x61x100xf32> {dist.sharding = #dist.sharding<@m, [shard(2)]>}, %group: tensor<70xi32> {dist.sharding = #dist.sharding<@m, [replicate]>, dist.range = [-1, 7]})
    -> (tensor<70x100xf32> {dist.sharding = #dist.sharding<@m, [?]>}) {
  %zero = arith.constant dense<0.0> : tensor<70x100xf32>
  %y = linalg.generic {indexing_maps = [#x, #w, #row, #y], iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
      ins(%x, %w, %group : tensor<70x61xf32>, tensor<5x61x100xf32>, tensor<70xi32>) outs(%zero : tensor<70x100xf32>) {
  ^bb0(%a: f32, %b: f32, %g: i32, %acc: f32):
    %n = linalg.index 2 : index
    %m = arith.index_cast %n : index to i32
    %is = arith.cmpi eq, %g, %m : i32
    %product = arith.mulf %a, %b : f32
    %none = arith.constant 0.0 : f32
    %term = arith.select %is, %product, %none : f32
    %sum = arith.addf %acc, %term : f32
    linalg.yield %sum : f32
  } -> tensor<70x100xf32>
  return %y : tensor<70x100xf32>
}

func.func @sums_of_rows(%x: tensor<70x61xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>}, %y: tensor<70x100xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>}, %group: tensor<70xi32> {dist.sharding = #dist.sharding<@m, [shard(0)]>, dist.range = [-1, 7]})
    -> (tensor<5x61x100xf32> {dist.sharding = #dist.sharding<@m, [?]>}) {
  %zero = arith.constant dense<0.0> : tensor<5x61x100xf32>
  %d = linalg.generic {indexing_maps = [#dx, #dy, #drow, #d], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%x, %y, %group : tensor<70x61xf32>, tensor<70x100xf32>, tensor<70xi32>) outs(%zero : tensor<5x61x100xf32>) {
  ^bb0(%a: f32, %b: f32, %g: i32, %acc: f32):
    %n = linalg.index 0 : index
    %m = arith.index_cast %n : index to i32
    %is = arith.cmpi eq, %g, %m : i32
    %none = arith.constant 0.0 : f32
    %own = arith.select %is, %a, %none : f32
    %term = arith.mulf %own, %b : f32
    %sum = arith.addf %acc, %term : f32
    linalg.yield %sum : f32
  } -> tensor<5x61x100xf32>
  return %d : tensor<5x61x100xf32>
}

func.func @sums_of_groups(%x: tensor<70x61xf32> {dist.sharding = #dist.sharding<@m, [replicate]>}, %y: tensor<70x100xf32> {dist.sharding = #dist.sharding<@m, [replicate]>}, %group: tensor<70xi32> {dist.sharding = #dist.sharding<@m, [replicate]>, dist.range = [-1, 7]})
    -> (tensor<5x61x100xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>}) {
  %zero = arith.constant dense<0.0> : tensor<5x61x100xf32>
  %d = linalg.generic {indexing_maps = [#dx, #dy, #drow, #d], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%x, %y, %group : tensor<70x61xf32>, tensor<70x100xf32>, tensor<70xi32>) outs(%zero : tensor<5x61x100xf32>) {
  ^bb0(%a: f32, %b: f32, %g: i32, %acc: f32):
    %n = linalg.index 0 : index
    %m = arith.index_cast %n : index to i32
    %is = arith.cmpi eq, %g, %m : i32
    %none = arith.constant 0.0 : f32
    %own = arith.select %is, %a, %none : f32
    %term = arith.mulf %own, %b : f32
    %sum = arith.addf %acc, %term : f32
    linalg.yield %sum : f32
  } -> tensor<5x61x100xf32>
  return %d : tensor<5x61x100xf32>
}

func.func @sums_of_depth(%x: tensor<70x61xf32> {dist.sharding = #dist.sharding<@m, [shard(1)]>}, %y: tensor<70x100xf32> {dist.sharding = #dist.sharding<@m, [replicate]>}, %group: tensor<70xi32> {dist.sharding = #dist.sharding<@m, [replicate]>, dist.range = [-1, 7]})
    -> (tensor<5x61x100xf32> {dist.sharding = #dist.sharding<@m, [?]>}) {
  %zero = arith.constant dense<0.0> : tensor<5x61x100xf32>
  %d = linalg.generic {indexing_maps = [#dx, #dy, #drow, #d], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%x, %y, %group : tensor<70x61xf32>, tensor<70x100xf32>, tensor<70xi32>) outs(%zero : tensor<5x61x100xf32>) {
  ^bb0(%a: f32, %b: f32, %g: i32, %acc: f32):
    %n = linalg.index 0 : index
    %m = arith.index_cast %n : index to i32
    %is = arith.cmpi eq, %g, %m : i32
    %none = arith.constant 0.0 : f32
    %own = arith.select %is, %a, %none : f32
    %term = arith.mulf %own, %b : f32
    %sum = arith.addf %acc, %term : f32
    linalg.yield %sum : f32
  } -> tensor<5x61x100xf32>
  return %d : tensor<5x61x100xf32>
}
