// Values without a sharding, of a program that was not propagated, are left to dist-partition, which rejects them.
// RUN: tessera-opt %s --dist-plan-reshards | FileCheck %s
// RUN: not tessera-opt %s --tessera-pipeline=compile-from=resharded -o /dev/null 2>&1 | FileCheck %s --check-prefix=ERROR

dist.process_mesh @d(shape = [4], dim_names = ["d"])

// CHECK-LABEL: func @padded
// CHECK: tensor.pad
// CHECK: dist.reshard
// ERROR: :[[#@LINE+3]]:{{[0-9]+}}: error:
func.func @padded(%x: tensor<8xf32> {dist.sharding = #dist.sharding<@d, [shard(0)]>}) -> tensor<10xf32> {
  %zero = arith.constant 0.0 : f32
  %p = tensor.pad %x low[1] high[1] {
  ^bb0(%i: index):
    tensor.yield %zero : f32
  } : tensor<8xf32> to tensor<10xf32>
  %w = dist.reshard %p to #dist.sharding<@d, [replicate]> : tensor<10xf32>
  return %w : tensor<10xf32>
}
