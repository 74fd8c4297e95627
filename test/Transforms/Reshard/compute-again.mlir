// RUN: tessera-opt %s --tessera-pipeline="compile-to=planned" | FileCheck %s
// RUN: tessera run %s --function rows_of_small_table --check
// RUN: tessera run %s --function indices --check
// RUN: tessera run %s --function small_gain --check

// What is larger than what it is computed from is computed again in the sharding that a user needs.
dist.process_mesh @line(shape = [8], dim_names = ["d"])

#table = affine_map<(d0, d1, d2) -> (d2, d1)>
#values = affine_map<(d0, d1, d2) -> (d0)>
#result = affine_map<(d0, d1, d2) -> (d0, d1)>
#id = affine_map<(d0) -> (d0)>
#all = affine_map<(d0, d1) -> (d0, d1)>

// 8,192 rows of a table of 16 are read by columns, and whole: the table is gathered, not the rows.
// CHECK-LABEL: func.func @rows_of_small_table(
// CHECK-NOT: dist.reshard {{.*}} tensor<8192x64xf32>
// CHECK: dist.reshard %arg0 to #dist.sharding<@line, [replicate]> {{.*}} tensor<16x64xf32>
// CHECK-NOT: dist.reshard
// CHECK: %[[AGAIN:.*]] = linalg.generic {{.*}} outs({{.*}} tensor<8192x64xf32>) attrs = {dist.shardings = [#dist.sharding<@line, [replicate]>]}
// CHECK: linalg.generic {{.*}} ins(%[[AGAIN]]
func.func @rows_of_small_table(
    %t: tensor<16x64xf32> {dist.sharding = #dist.sharding<@line, [shard(1)]>},
    %v: tensor<8192xi32> {dist.range = [0, 16], dist.sharding = #dist.sharding<@line, [replicate]>})
    -> (tensor<8192x64xf32> {dist.sharding = #dist.sharding<@line, [shard(1)]>},
        tensor<8192x64xf32> {dist.sharding = #dist.sharding<@line, [replicate]>}) {
  %zero = arith.constant dense<0.0> : tensor<8192x64xf32>
  %r = linalg.generic {indexing_maps = [#table, #values, #result],
                       iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%t, %v : tensor<16x64xf32>, tensor<8192xi32>) outs(%zero : tensor<8192x64xf32>) {
  ^bb0(%x: f32, %at: i32, %acc: f32):
    %row = linalg.index 2 : index
    %here = arith.index_cast %row : index to i32
    %is = arith.cmpi eq, %at, %here : i32
    %none = arith.constant 0.0 : f32
    %term = arith.select %is, %x, %none : f32
    %sum = arith.addf %acc, %term : f32
    linalg.yield %sum : f32
  } -> tensor<8192x64xf32>
  %a = math.exp %r : tensor<8192x64xf32>
  %whole = dist.shard_tensor %r, #dist.sharding<@line, [replicate]> : tensor<8192x64xf32>
  %b = arith.negf %whole : tensor<8192x64xf32>
  return %a, %b : tensor<8192x64xf32>, tensor<8192x64xf32>
}

// Clamped and masked indices are computed from what all devices have: one move in place of two.
// CHECK-LABEL: func.func @indices(
// CHECK: dist.reshard %arg0 to #dist.sharding<@line, [replicate]> {{.*}} tensor<8192xi32>
// CHECK-NOT: dist.reshard
// CHECK: return
func.func @indices(%v: tensor<8192xi32> {dist.range = [-10, 40], dist.sharding = #dist.sharding<@line, [shard(0)]>})
    -> (tensor<8192xi32> {dist.sharding = #dist.sharding<@line, [replicate]>},
        tensor<8192xi32> {dist.sharding = #dist.sharding<@line, [replicate]>},
        tensor<8192xi32> {dist.sharding = #dist.sharding<@line, [shard(0)]>}) {
  %empty = tensor.empty() : tensor<8192xi32>
  %clamped = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%v : tensor<8192xi32>) outs(%empty : tensor<8192xi32>) {
  ^bb0(%i: i32, %out: i32):
    %c0 = arith.constant 0 : i32
    %c15 = arith.constant 15 : i32
    %least = arith.maxsi %i, %c0 : i32
    %most = arith.minsi %least, %c15 : i32
    linalg.yield %most : i32
  } -> tensor<8192xi32>
  %bits = tensor.empty() : tensor<8192xi1>
  %inside = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%v : tensor<8192xi32>) outs(%bits : tensor<8192xi1>) {
  ^bb0(%i: i32, %out: i1):
    %c16 = arith.constant 16 : i32
    %ok = arith.cmpi ult, %i, %c16 : i32
    linalg.yield %ok : i1
  } -> tensor<8192xi1>
  %masked = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}
      ins(%inside, %v : tensor<8192xi1>, tensor<8192xi32>) outs(%empty : tensor<8192xi32>) {
  ^bb0(%ok: i1, %i: i32, %out: i32):
    %none = arith.constant -1 : i32
    %one = arith.select %ok, %i, %none : i32
    linalg.yield %one : i32
  } -> tensor<8192xi32>
  %a = dist.shard_tensor %clamped, #dist.sharding<@line, [shard(0)]> : tensor<8192xi32>
  %b = dist.shard_tensor %masked, #dist.sharding<@line, [shard(0)]> : tensor<8192xi32>
  %sum = arith.addi %a, %b : tensor<8192xi32>
  return %a, %b, %sum : tensor<8192xi32>, tensor<8192xi32>, tensor<8192xi32>
}

// A sum of two values is moved: both would have to be.
// CHECK-LABEL: func.func @small_gain(
// CHECK-COUNT-1: dist.reshard
// CHECK-NOT: dist.reshard
// CHECK: return
func.func @small_gain(%x: tensor<1024x64xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>},
                      %y: tensor<1024x64xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>})
    -> (tensor<1024x64xf32> {dist.sharding = #dist.sharding<@line, [replicate]>},
        tensor<1024x64xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>}) {
  %s = arith.addf %x, %y : tensor<1024x64xf32>
  %a = dist.shard_tensor %s, #dist.sharding<@line, [shard(0)]> : tensor<1024x64xf32>
  %e = math.exp %a : tensor<1024x64xf32>
  return %a, %e : tensor<1024x64xf32>, tensor<1024x64xf32>
}
