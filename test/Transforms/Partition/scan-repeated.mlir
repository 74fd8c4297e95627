// RUN: tessera-opt %s --tessera-pipeline | FileCheck %s
// RUN: tessera run %s --check=interpreter | FileCheck %s --check-prefix=COMPARED
// RUN: tessera-opt %s --tessera-pipeline --interpret="poison=high" -o /dev/null

// A factor for each row of states is broadcast to them before the scan. Of its totals one element is
// sent for each row, unless the row is cut unevenly, where a device may have no element of it.

dist.process_mesh @m(shape = [4, 2], dim_names = ["d", "e"])

// Two scans of rows that are cut evenly, one in reverse; one of others; one whose first results
// depend on both inputs, and are sent whole.
// CHECK-LABEL: func.func @main
// CHECK: dist.exchange {{.*}}dist.global_type = [tensor<4x3x1xf32>, tensor<4x3x4xf32>, tensor<4x3x1xf32>,
// CHECK-SAME: tensor<4x3x4xf32>, tensor<4x3x5xf32>, tensor<4x3x5xf32>, tensor<4x3x4xf32>, tensor<4x3x4xf32>]
// CHECK: return
// COMPARED-COUNT-4: check {{.*}} ok
func.func @main(%a: tensor<10x3xf32> {dist.sharding = #dist.sharding<@m, [shard(0), replicate]>},
                %b: tensor<10x3x4xf32> {dist.sharding = #dist.sharding<@m, [shard(0), shard(2)]>},
                %u: tensor<10x3x5xf32> {dist.sharding = #dist.sharding<@m, [shard(0), shard(2)]>})
    -> (tensor<10x3x4xf32>, tensor<10x3x4xf32>, tensor<10x3x5xf32>, tensor<10x3x4xf32>) {
  %empty5 = tensor.empty() : tensor<10x3x5xf32>
  %wide5 = linalg.broadcast ins(%a : tensor<10x3xf32>) outs(%empty5 : tensor<10x3x5xf32>) dimensions = [2]
  %empty4 = tensor.empty() : tensor<10x3x4xf32>
  %wide4 = linalg.broadcast ins(%a : tensor<10x3xf32>) outs(%empty4 : tensor<10x3x4xf32>) dimensions = [2]
  %0:2 = ext.scan dim = 0 ins(%wide4, %b : tensor<10x3x4xf32>, tensor<10x3x4xf32>) {
  ^bb0(%a0: f32, %b0: f32, %a1: f32, %b1: f32):
    %factor = arith.mulf %a0, %a1 : f32
    %scaled = arith.mulf %b0, %a1 : f32
    %state = arith.addf %scaled, %b1 : f32
    ext.yield %factor, %state : f32, f32
  }
  %1:2 = ext.scan dim = 0 reverse ins(%wide4, %b : tensor<10x3x4xf32>, tensor<10x3x4xf32>) {
  ^bb0(%a0: f32, %b0: f32, %a1: f32, %b1: f32):
    %factor = arith.mulf %a0, %a1 : f32
    %scaled = arith.mulf %b0, %a1 : f32
    %state = arith.addf %scaled, %b1 : f32
    ext.yield %factor, %state : f32, f32
  }
  %2:2 = ext.scan dim = 0 ins(%wide5, %u : tensor<10x3x5xf32>, tensor<10x3x5xf32>) {
  ^bb0(%a0: f32, %b0: f32, %a1: f32, %b1: f32):
    %factor = arith.mulf %a0, %a1 : f32
    %scaled = arith.mulf %b0, %a1 : f32
    %state = arith.addf %scaled, %b1 : f32
    ext.yield %factor, %state : f32, f32
  }
  %3:2 = ext.scan dim = 0 ins(%wide4, %b : tensor<10x3x4xf32>, tensor<10x3x4xf32>) {
  ^bb0(%a0: f32, %b0: f32, %a1: f32, %b1: f32):
    %both = arith.addf %a0, %a1 : f32
    %product = arith.mulf %b0, %b1 : f32
    %factor = arith.addf %both, %product : f32
    %state = arith.addf %b0, %b1 : f32
    ext.yield %factor, %state : f32, f32
  }
  return %0#1, %1#1, %2#1, %3#0 : tensor<10x3x4xf32>, tensor<10x3x4xf32>, tensor<10x3x5xf32>, tensor<10x3x4xf32>
}
