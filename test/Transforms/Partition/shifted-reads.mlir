// RUN: tessera-opt %s --tessera-pipeline | FileCheck %s
// RUN: tessera explain %s | FileCheck %s --check-prefix=BYTES
// RUN: tessera run %s --check

// Two overlapping windows of one value are moved once: two rows, not three. Each is sliced from the union.

dist.process_mesh @line(shape = [4], dim_names = ["s"])

// CHECK: %[[HULL:.*]] = dist.exchange %arg0
// CHECK-COUNT-2: dist.exchange %[[HULL]]
// BYTES: total: 1 collective, 64 bytes on the wire
func.func @main(%x: tensor<16x8xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>})
    -> (tensor<16x8xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>}) {
  %zero = arith.constant 0.0 : f32
  %p1 = tensor.pad %x low[1, 0] high[0, 0] {
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : f32
  } : tensor<16x8xf32> to tensor<17x8xf32>
  %s1 = tensor.extract_slice %p1[0, 0] [16, 8] [1, 1] : tensor<17x8xf32> to tensor<16x8xf32>
  %p2 = tensor.pad %x low[2, 0] high[0, 0] {
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : f32
  } : tensor<16x8xf32> to tensor<18x8xf32>
  %s2 = tensor.extract_slice %p2[0, 0] [16, 8] [1, 1] : tensor<18x8xf32> to tensor<16x8xf32>
  %a = arith.mulf %s1, %s2 : tensor<16x8xf32>
  %y = arith.addf %a, %x : tensor<16x8xf32>
  return %y : tensor<16x8xf32>
}
