// RUN: tessera-opt %s --dist-normalize | FileCheck %s
// RUN: tessera explain %s | FileCheck %s --check-prefix=PLAN
// RUN: tessera run %s --check=interpreter

// A sum over y whose value is only constrained, and a sum over x of it, as psum and psum_scatter write them, are one sum:
// contributions are scattered over x before those of y are added. 2 x 4 parts of 128 floats: 256 + 2 x 256 x 3/4 bytes.
// Where something else reads the first sum, it stays.

// CHECK-LABEL: func.func @main
// CHECK: linalg.generic {{.*}} iterator_types = ["reduction", "reduction", "parallel", "parallel"]
// CHECK-NOT: dist.shard_tensor
// CHECK: return

// PLAN: reduce_scatter @m [x] of 2 f32 512 B, 256 on the wire
// PLAN: all_reduce @m [y] of 4 f32 256 B, 384 on the wire
// PLAN: total: 2 collectives, 640 bytes on the wire
dist.process_mesh @m(shape = [2, 4], dim_names = ["x", "y"])
func.func @main(%g: tensor<2x4x16x8xf32> {dist.sharding = #dist.sharding<@m, [shard(0), shard(1)]>})
    -> (tensor<16x8xf32> {dist.sharding = #dist.sharding<@m, [shard(0), replicate]>}) {
  %zero = arith.constant dense<0.0> : tensor<2x16x8xf32>
  %y = linalg.reduce ins(%g : tensor<2x4x16x8xf32>) outs(%zero : tensor<2x16x8xf32>) dimensions = [1]
    (%a: f32, %b: f32) { %s = arith.addf %a, %b : f32
      linalg.yield %s : f32 }
  %all = dist.shard_tensor %y, #dist.sharding<@m, [shard(0), replicate]> : tensor<2x16x8xf32>
  %none = arith.constant dense<0.0> : tensor<16x8xf32>
  %x = linalg.reduce ins(%all : tensor<2x16x8xf32>) outs(%none : tensor<16x8xf32>) dimensions = [0]
    (%a: f32, %b: f32) { %s = arith.addf %a, %b : f32
      linalg.yield %s : f32 }
  return %x : tensor<16x8xf32>
}
