// RUN: tessera-opt %s --tessera-pipeline="compile-to=partitioned" | FileCheck %s
// RUN: tessera run %s --function by_rows --check
// RUN: tessera run %s --function by_columns --check
// RUN: tessera run %s --function whole --check
// RUN: tessera run %s --function twice --check
// RUN: tessera run %s --function in_turn --check
// RUN: tessera run %s --function of_products --check
// RUN: tessera run %s --function out_of_range --check

// The gradient of bags of rows: a row of the sum for each of many values, added to the table. Where
// the table's rows are cut, all devices need those of all values: the 256 sums are sent, 64 KiB,
// and looked up by all, not the 8,192 rows that are looked up, 2 MiB. Where its columns are cut,
// the sums go there by an all-to-all.
dist.process_mesh @line(shape = [8], dim_names = ["d"])

#table = affine_map<(d0, d1, d2) -> (d2, d1)>
#values = affine_map<(d0, d1, d2) -> (d0)>
#reduced = affine_map<(d0, d1, d2) -> (d2)>
#result = affine_map<(d0, d1, d2) -> (d0, d1)>
#id = affine_map<(d0) -> (d0)>
#rows = affine_map<(d0, d1) -> (d0)>
#all = affine_map<(d0, d1) -> (d0, d1)>

// CHECK-LABEL: func.func @by_rows(
// CHECK-NOT: dist.all_gather {{.*}}x64xf32> to
// CHECK-COUNT-3: dist.all_gather
// CHECK-NOT: dist.all_
// CHECK: return
func.func @by_rows(%t: tensor<4096x64xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>},
    %d: tensor<256x64xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>},
    %v: tensor<8192xi32> {dist.range = [0, 4096], dist.sharding = #dist.sharding<@line, [shard(0)]>},
    %s: tensor<8192xi32> {dist.range = [0, 256], dist.sharding = #dist.sharding<@line, [shard(0)]>})
    -> (tensor<4096x64xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>}) {
  %zero = arith.constant dense<0.0> : tensor<8192x64xf32>
  %u = linalg.generic {indexing_maps = [#table, #values, #result],
                       iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%d, %s : tensor<256x64xf32>, tensor<8192xi32>) outs(%zero : tensor<8192x64xf32>) {
  ^bb0(%x: f32, %at: i32, %acc: f32):
    %row = linalg.index 2 : index
    %here = arith.index_cast %row : index to i32
    %is = arith.cmpi eq, %at, %here : i32
    %none = arith.constant 0.0 : f32
    %term = arith.select %is, %x, %none : f32
    %sum = arith.addf %acc, %term : f32
    linalg.yield %sum : f32
  } -> tensor<8192x64xf32>
  %n = arith.negf %u : tensor<8192x64xf32>
  %start = arith.constant dense<0.0> : tensor<4096x64xf32>
  %g = linalg.generic {indexing_maps = [#table, #reduced, #result],
                       iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%n, %v : tensor<8192x64xf32>, tensor<8192xi32>) outs(%start : tensor<4096x64xf32>) {
  ^bb0(%x: f32, %at: i32, %acc: f32):
    %row = linalg.index 0 : index
    %here = arith.index_cast %row : index to i32
    %is = arith.cmpi eq, %at, %here : i32
    %none = arith.constant 0.0 : f32
    %term = arith.select %is, %x, %none : f32
    %sum = arith.addf %acc, %term : f32
    linalg.yield %sum : f32
  } -> tensor<4096x64xf32>
  %r = arith.addf %t, %g : tensor<4096x64xf32>
  return %r : tensor<4096x64xf32>
}

// CHECK-LABEL: func.func @by_columns(
// CHECK-DAG: dist.all_to_all {{.*}} tensor<32x64xf32>
// CHECK-DAG: dist.all_gather {{.*}} tensor<1024xi32>
// CHECK-DAG: dist.all_gather {{.*}} tensor<1024xi32>
// CHECK-NOT: dist.all_
// CHECK: return
func.func @by_columns(%t: tensor<4096x64xf32> {dist.sharding = #dist.sharding<@line, [shard(1)]>},
    %d: tensor<256x64xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>},
    %v: tensor<8192xi32> {dist.range = [0, 4096], dist.sharding = #dist.sharding<@line, [shard(0)]>},
    %s: tensor<8192xi32> {dist.range = [0, 256], dist.sharding = #dist.sharding<@line, [shard(0)]>})
    -> (tensor<4096x64xf32> {dist.sharding = #dist.sharding<@line, [shard(1)]>}) {
  %zero = arith.constant dense<0.0> : tensor<8192x64xf32>
  %u = linalg.generic {indexing_maps = [#table, #values, #result],
                       iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%d, %s : tensor<256x64xf32>, tensor<8192xi32>) outs(%zero : tensor<8192x64xf32>) {
  ^bb0(%x: f32, %at: i32, %acc: f32):
    %row = linalg.index 2 : index
    %here = arith.index_cast %row : index to i32
    %is = arith.cmpi eq, %at, %here : i32
    %none = arith.constant 0.0 : f32
    %term = arith.select %is, %x, %none : f32
    %sum = arith.addf %acc, %term : f32
    linalg.yield %sum : f32
  } -> tensor<8192x64xf32>
  %n = arith.negf %u : tensor<8192x64xf32>
  %start = arith.constant dense<0.0> : tensor<4096x64xf32>
  %g = linalg.generic {indexing_maps = [#table, #reduced, #result],
                       iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%n, %v : tensor<8192x64xf32>, tensor<8192xi32>) outs(%start : tensor<4096x64xf32>) {
  ^bb0(%x: f32, %at: i32, %acc: f32):
    %row = linalg.index 0 : index
    %here = arith.index_cast %row : index to i32
    %is = arith.cmpi eq, %at, %here : i32
    %none = arith.constant 0.0 : f32
    %term = arith.select %is, %x, %none : f32
    %sum = arith.addf %acc, %term : f32
    linalg.yield %sum : f32
  } -> tensor<4096x64xf32>
  %r = arith.addf %t, %g : tensor<4096x64xf32>
  return %r : tensor<4096x64xf32>
}

// Where the table is whole it is added to by columns, and gathered.
// CHECK-LABEL: func.func @whole(
// CHECK-DAG: dist.all_to_all {{.*}} tensor<32x64xf32>
// CHECK-DAG: dist.all_gather {{.*}} tensor<1024xi32>
// CHECK-DAG: dist.all_gather {{.*}} tensor<1024xi32>
// CHECK: dist.all_gather {{.*}} tensor<4096x8xf32>
// CHECK-NOT: dist.all_
// CHECK: return
func.func @whole(%t: tensor<4096x64xf32> {dist.sharding = #dist.sharding<@line, [replicate]>},
    %d: tensor<256x64xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>},
    %v: tensor<8192xi32> {dist.range = [0, 4096], dist.sharding = #dist.sharding<@line, [shard(0)]>},
    %s: tensor<8192xi32> {dist.range = [0, 256], dist.sharding = #dist.sharding<@line, [shard(0)]>})
    -> (tensor<4096x64xf32> {dist.sharding = #dist.sharding<@line, [replicate]>}) {
  %zero = arith.constant dense<0.0> : tensor<8192x64xf32>
  %u = linalg.generic {indexing_maps = [#table, #values, #result],
                       iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%d, %s : tensor<256x64xf32>, tensor<8192xi32>) outs(%zero : tensor<8192x64xf32>) {
  ^bb0(%x: f32, %at: i32, %acc: f32):
    %row = linalg.index 2 : index
    %here = arith.index_cast %row : index to i32
    %is = arith.cmpi eq, %at, %here : i32
    %none = arith.constant 0.0 : f32
    %term = arith.select %is, %x, %none : f32
    %sum = arith.addf %acc, %term : f32
    linalg.yield %sum : f32
  } -> tensor<8192x64xf32>
  %n = arith.negf %u : tensor<8192x64xf32>
  %start = arith.constant dense<0.0> : tensor<4096x64xf32>
  %g = linalg.generic {indexing_maps = [#table, #reduced, #result],
                       iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%n, %v : tensor<8192x64xf32>, tensor<8192xi32>) outs(%start : tensor<4096x64xf32>) {
  ^bb0(%x: f32, %at: i32, %acc: f32):
    %row = linalg.index 0 : index
    %here = arith.index_cast %row : index to i32
    %is = arith.cmpi eq, %at, %here : i32
    %none = arith.constant 0.0 : f32
    %term = arith.select %is, %x, %none : f32
    %sum = arith.addf %acc, %term : f32
    linalg.yield %sum : f32
  } -> tensor<4096x64xf32>
  %r = arith.addf %t, %g : tensor<4096x64xf32>
  return %r : tensor<4096x64xf32>
}

// Nor are contributions of two updates reduced whose sum has the size of the table.
// CHECK-LABEL: func.func @twice(
// CHECK-NOT: dist.all_reduce
// CHECK-NOT: dist.reduce_scatter
// CHECK: return
func.func @twice(%t: tensor<4096x64xf32> {dist.sharding = #dist.sharding<@line, [replicate]>},
    %d: tensor<256x64xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>},
    %v: tensor<8192xi32> {dist.range = [0, 4096], dist.sharding = #dist.sharding<@line, [shard(0)]>},
    %s: tensor<8192xi32> {dist.range = [0, 256], dist.sharding = #dist.sharding<@line, [shard(0)]>},
    %w: tensor<8192xi32> {dist.range = [0, 4096], dist.sharding = #dist.sharding<@line, [shard(0)]>})
    -> (tensor<4096x64xf32> {dist.sharding = #dist.sharding<@line, [replicate]>}) {
  %zero = arith.constant dense<0.0> : tensor<8192x64xf32>
  %u = linalg.generic {indexing_maps = [#table, #values, #result],
                       iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%d, %s : tensor<256x64xf32>, tensor<8192xi32>) outs(%zero : tensor<8192x64xf32>) {
  ^bb0(%x: f32, %at: i32, %acc: f32):
    %row = linalg.index 2 : index
    %here = arith.index_cast %row : index to i32
    %is = arith.cmpi eq, %at, %here : i32
    %none = arith.constant 0.0 : f32
    %term = arith.select %is, %x, %none : f32
    %sum = arith.addf %acc, %term : f32
    linalg.yield %sum : f32
  } -> tensor<8192x64xf32>
  %n = arith.negf %u : tensor<8192x64xf32>
  %start = arith.constant dense<0.0> : tensor<4096x64xf32>
  %g = linalg.generic {indexing_maps = [#table, #reduced, #result],
                       iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%n, %v : tensor<8192x64xf32>, tensor<8192xi32>) outs(%start : tensor<4096x64xf32>) {
  ^bb0(%x: f32, %at: i32, %acc: f32):
    %row = linalg.index 0 : index
    %here = arith.index_cast %row : index to i32
    %is = arith.cmpi eq, %at, %here : i32
    %none = arith.constant 0.0 : f32
    %term = arith.select %is, %x, %none : f32
    %sum = arith.addf %acc, %term : f32
    linalg.yield %sum : f32
  } -> tensor<4096x64xf32>
  %h = linalg.generic {indexing_maps = [#table, #reduced, #result],
                       iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%u, %w : tensor<8192x64xf32>, tensor<8192xi32>) outs(%start : tensor<4096x64xf32>) {
  ^bb0(%x: f32, %at: i32, %acc: f32):
    %row = linalg.index 0 : index
    %here = arith.index_cast %row : index to i32
    %is = arith.cmpi eq, %at, %here : i32
    %none = arith.constant 0.0 : f32
    %term = arith.select %is, %x, %none : f32
    %sum = arith.addf %acc, %term : f32
    linalg.yield %sum : f32
  } -> tensor<4096x64xf32>
  %both = arith.addf %g, %h : tensor<4096x64xf32>
  %r = arith.addf %t, %both : tensor<4096x64xf32>
  return %r : tensor<4096x64xf32>
}

// Nor where rows that are added are contributions themselves, as gradients of what all rows of a batch share.
// CHECK-LABEL: func.func @of_products(
// CHECK-NOT: tensor<4096x64xf32> to tensor
// CHECK-NOT: dist.{{.*}}reduce{{.*}}tensor<4096x64xf32>
// CHECK: return
func.func @of_products(%t: tensor<4096x64xf32> {dist.sharding = #dist.sharding<@line, [replicate]>},
    %u: tensor<512x64xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>},
    %v: tensor<512xi32> {dist.range = [0, 4096], dist.sharding = #dist.sharding<@line, [shard(0)]>},
    %a: tensor<32x512xf32> {dist.sharding = #dist.sharding<@line, [shard(1)]>},
    %w: tensor<32xi32> {dist.range = [0, 4096], dist.sharding = #dist.sharding<@line, [replicate]>})
    -> (tensor<4096x64xf32> {dist.sharding = #dist.sharding<@line, [replicate]>}) {
  %zero = arith.constant dense<0.0> : tensor<32x64xf32>
  %n = linalg.matmul ins(%a, %u : tensor<32x512xf32>, tensor<512x64xf32>) outs(%zero : tensor<32x64xf32>) -> tensor<32x64xf32>
  %g = linalg.generic {indexing_maps = [#table, #reduced, #result],
                       iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%u, %v : tensor<512x64xf32>, tensor<512xi32>) outs(%t : tensor<4096x64xf32>) {
  ^bb0(%x: f32, %at: i32, %acc: f32):
    %row = linalg.index 0 : index
    %here = arith.index_cast %row : index to i32
    %is = arith.cmpi eq, %at, %here : i32
    %none = arith.constant 0.0 : f32
    %term = arith.select %is, %x, %none : f32
    %sum = arith.addf %acc, %term : f32
    linalg.yield %sum : f32
  } -> tensor<4096x64xf32>
  %h = linalg.generic {indexing_maps = [#table, #reduced, #result],
                       iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%n, %w : tensor<32x64xf32>, tensor<32xi32>) outs(%g : tensor<4096x64xf32>) {
  ^bb0(%x: f32, %at: i32, %acc: f32):
    %row = linalg.index 0 : index
    %here = arith.index_cast %row : index to i32
    %is = arith.cmpi eq, %at, %here : i32
    %none = arith.constant 0.0 : f32
    %term = arith.select %is, %x, %none : f32
    %sum = arith.addf %acc, %term : f32
    linalg.yield %sum : f32
  } -> tensor<4096x64xf32>
  return %h : tensor<4096x64xf32>
}

// Nor those of updates of which one adds to what the other made.
// CHECK-LABEL: func.func @in_turn(
// CHECK-NOT: dist.all_reduce
// CHECK-NOT: dist.reduce_scatter
// CHECK: return
func.func @in_turn(%t: tensor<4096x64xf32> {dist.sharding = #dist.sharding<@line, [replicate]>},
    %d: tensor<256x64xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>},
    %v: tensor<8192xi32> {dist.range = [0, 4096], dist.sharding = #dist.sharding<@line, [shard(0)]>},
    %s: tensor<8192xi32> {dist.range = [0, 256], dist.sharding = #dist.sharding<@line, [shard(0)]>},
    %w: tensor<8192xi32> {dist.range = [0, 4096], dist.sharding = #dist.sharding<@line, [shard(0)]>})
    -> (tensor<4096x64xf32> {dist.sharding = #dist.sharding<@line, [replicate]>}) {
  %zero = arith.constant dense<0.0> : tensor<8192x64xf32>
  %u = linalg.generic {indexing_maps = [#table, #values, #result],
                       iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%d, %s : tensor<256x64xf32>, tensor<8192xi32>) outs(%zero : tensor<8192x64xf32>) {
  ^bb0(%x: f32, %at: i32, %acc: f32):
    %row = linalg.index 2 : index
    %here = arith.index_cast %row : index to i32
    %is = arith.cmpi eq, %at, %here : i32
    %none = arith.constant 0.0 : f32
    %term = arith.select %is, %x, %none : f32
    %sum = arith.addf %acc, %term : f32
    linalg.yield %sum : f32
  } -> tensor<8192x64xf32>
  %n = arith.negf %u : tensor<8192x64xf32>
  %g = linalg.generic {indexing_maps = [#table, #reduced, #result],
                       iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%n, %v : tensor<8192x64xf32>, tensor<8192xi32>) outs(%t : tensor<4096x64xf32>) {
  ^bb0(%x: f32, %at: i32, %acc: f32):
    %row = linalg.index 0 : index
    %here = arith.index_cast %row : index to i32
    %is = arith.cmpi eq, %at, %here : i32
    %none = arith.constant 0.0 : f32
    %term = arith.select %is, %x, %none : f32
    %sum = arith.addf %acc, %term : f32
    linalg.yield %sum : f32
  } -> tensor<4096x64xf32>
  %h = linalg.generic {indexing_maps = [#table, #reduced, #result],
                       iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%u, %w : tensor<8192x64xf32>, tensor<8192xi32>) outs(%g : tensor<4096x64xf32>) {
  ^bb0(%x: f32, %at: i32, %acc: f32):
    %row = linalg.index 0 : index
    %here = arith.index_cast %row : index to i32
    %is = arith.cmpi eq, %at, %here : i32
    %none = arith.constant 0.0 : f32
    %term = arith.select %is, %x, %none : f32
    %sum = arith.addf %acc, %term : f32
    linalg.yield %sum : f32
  } -> tensor<4096x64xf32>
  return %h : tensor<4096x64xf32>
}

// A look-up starts from -1 where an index is out of range. What it starts from is made by columns,
// too, from the indices that all devices have.
// CHECK-LABEL: func.func @out_of_range(
// CHECK-NOT: dist.all_to_all
// CHECK: dist.all_gather {{.*}} tensor<1024xi32>
// CHECK-NOT: dist.all_
// CHECK: return
func.func @out_of_range(%t: tensor<4096x64xf32> {dist.sharding = #dist.sharding<@line, [shard(1)]>},
    %v: tensor<8192xi32> {dist.range = [0, 5000], dist.sharding = #dist.sharding<@line, [shard(0)]>})
    -> (tensor<8192x64xf32> {dist.sharding = #dist.sharding<@line, [shard(1)]>}) {
  %empty = tensor.empty() : tensor<8192xf32>
  %inside = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%v : tensor<8192xi32>) outs(%empty : tensor<8192xf32>) {
  ^bb0(%at: i32, %out: f32):
    %most = arith.constant 4095 : i32
    %ok = arith.cmpi ule, %at, %most : i32
    %zero = arith.constant 0.0 : f32
    %less = arith.constant -1.0 : f32
    %one = arith.select %ok, %zero, %less : f32
    linalg.yield %one : f32
  } -> tensor<8192xf32>
  %wide = tensor.empty() : tensor<8192x64xf32>
  %start = linalg.generic {indexing_maps = [#rows, #all], iterator_types = ["parallel", "parallel"]}
      ins(%inside : tensor<8192xf32>) outs(%wide : tensor<8192x64xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<8192x64xf32>
  %y = linalg.generic {indexing_maps = [#table, #values, #result],
                       iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%t, %v : tensor<4096x64xf32>, tensor<8192xi32>) outs(%start : tensor<8192x64xf32>) {
  ^bb0(%x: f32, %at: i32, %acc: f32):
    %row = linalg.index 2 : index
    %here = arith.index_cast %row : index to i32
    %is = arith.cmpi eq, %at, %here : i32
    %none = arith.constant 0.0 : f32
    %term = arith.select %is, %x, %none : f32
    %sum = arith.addf %acc, %term : f32
    linalg.yield %sum : f32
  } -> tensor<8192x64xf32>
  return %y : tensor<8192x64xf32>
}
