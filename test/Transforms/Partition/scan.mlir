// RUN: tessera-opt %s --tessera-pipeline | FileCheck %s
// RUN: tessera run %s --check=interpreter | FileCheck %s --check-prefix=COMPARED
// RUN: tessera run %s --check=interpreter --backend stub | FileCheck %s --check-prefix=COMPARED
// RUN: tessera-opt %s --tessera-pipeline --interpret="poison=high" -o /dev/null

// A scan of a cut dimension: each device scans its part, and one element per line and device is
// sent. 10 over 4 is 3, 3, 3, 1, and 5 over 4 is 2, 2, 1, 0; a reverse scan begins with padding.

dist.process_mesh @m(shape = [4], dim_names = ["d"])

// CHECK-LABEL: func.func @main
// CHECK-NOT: dist.all_gather {{.*}}10x3
// CHECK: return
// COMPARED-COUNT-4: check {{.*}} ok
func.func @main(%x: tensor<10x3xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>},
                %y: tensor<5xi32> {dist.sharding = #dist.sharding<@m, [shard(0)]>})
    -> (tensor<10x3xf32>, tensor<10x3xf32>, tensor<10x3xf32>, tensor<5xi32>) {
  %0 = ext.scan dim = 0 ins(%x : tensor<10x3xf32>) {
  ^bb0(%before: f32, %behind: f32):
    %sum = arith.addf %before, %behind : f32
    ext.yield %sum : f32
  }
  %1 = ext.scan dim = 0 reverse ins(%x : tensor<10x3xf32>) {
  ^bb0(%before: f32, %behind: f32):
    %sum = arith.addf %before, %behind : f32
    ext.yield %sum : f32
  }
  %2 = ext.scan dim = 0 exclusive reverse ins(%x : tensor<10x3xf32>) identity [0.0 : f32] {
  ^bb0(%before: f32, %behind: f32):
    %sum = arith.addf %before, %behind : f32
    ext.yield %sum : f32
  }
  // The last nonzero element, in reverse: not commutative.
  %3 = ext.scan dim = 0 reverse ins(%y : tensor<5xi32>) {
  ^bb0(%before: i32, %behind: i32):
    %zero = arith.constant 0 : i32
    %is = arith.cmpi ne, %behind, %zero : i32
    %last = arith.select %is, %behind, %before : i32
    ext.yield %last : i32
  }
  return %0, %1, %2, %3 : tensor<10x3xf32>, tensor<10x3xf32>, tensor<10x3xf32>, tensor<5xi32>
}
