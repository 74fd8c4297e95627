// RUN: tessera-opt %s --tessera-pipeline="compile-to=resharded narrow-reductions=true" | FileCheck %s
// RUN: tessera explain %s | FileCheck %s --check-prefix=WIDE
// RUN: tessera explain %s --narrow-reductions | FileCheck %s --check-prefix=NARROW
// RUN: tessera explain %s --narrow-reductions --mode dynamic_programming | FileCheck %s --check-prefix=NARROW
// RUN: tessera run %s --narrow-reductions --check=interpreter | FileCheck %s --check-prefix=EXEC

// A product of bf16 as frontends emit it: in f32, then rounded. With --narrow-reductions its
// contributions pass the rounding and are sent in bf16.
dist.process_mesh @m(shape = [4], dim_names = ["x"])

// CHECK: %[[P:.*]] = linalg.contract {{.*}} -> tensor<64x256xf32>
// CHECK: %[[T:.*]] = linalg.generic {{.*}} ins(%[[P]] : tensor<64x256xf32>) {{.*}} {dist.op_sharding = {{.*}} dist.rounds_partials
// CHECK: arith.truncf
// CHECK: %[[R:.*]] = dist.reshard %[[T]] to #dist.sharding<@m, [replicate]> {{.*}} : tensor<64x256xbf16>

// WIDE: reduce_scatter @m [x] of 4 f32 65536 B, 49152 on the wire
// WIDE: all_gather @m [x] of 4 bf16 32768 B, 24576 on the wire
// WIDE: total: 2 collectives, 73728 bytes
// NARROW: all_reduce @m [x] of 4 bf16 32768 B, 49152 on the wire
// NARROW: total: 1 collective, 49152 bytes
// EXEC: check  result0  ok

#left = affine_map<(i, j, k) -> (i, k)>
#right = affine_map<(i, j, k) -> (k, j)>
#product = affine_map<(i, j, k) -> (i, j)>
func.func @main(%a: tensor<64x512xbf16> {dist.sharding = #dist.sharding<@m, [shard(1)]>},
                %b: tensor<512x256xbf16> {dist.sharding = #dist.sharding<@m, [shard(0)]>})
    -> (tensor<64x256xbf16> {dist.sharding = #dist.sharding<@m, [replicate]>}) {
  %zero = arith.constant dense<0.0> : tensor<64x256xf32>
  %p = linalg.contract indexing_maps = [#left, #right, #product] ins(%a, %b : tensor<64x512xbf16>, tensor<512x256xbf16>)
      outs(%zero : tensor<64x256xf32>) -> tensor<64x256xf32>
  %t = arith.truncf %p : tensor<64x256xf32> to tensor<64x256xbf16>
  return %t : tensor<64x256xbf16>
}
