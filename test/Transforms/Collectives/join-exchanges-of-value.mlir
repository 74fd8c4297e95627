// RUN: tessera-opt %s --tessera-pipeline | FileCheck %s
// RUN: tessera explain %s | FileCheck %s --check-prefix=BYTES
// RUN: tessera run %s --check

// Two halves of a cut tensor meet. Of the first the busiest device is device 1, of the second device 2: one exchange of
// both sends less than two, also where different ops read them.

dist.process_mesh @line(shape = [4], dim_names = ["s"])

// CHECK: dist.exchange %[[X:.*]], %[[X]] from
// CHECK-NOT: dist.exchange
// BYTES: total: 1 collective, 128 bytes on the wire
func.func @main(%x: tensor<32x4xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>})
    -> (tensor<16x4xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>}) {
  %a = tensor.extract_slice %x[0, 0] [16, 4] [1, 1] : tensor<32x4xf32> to tensor<16x4xf32>
  %b = tensor.extract_slice %x[16, 0] [16, 4] [1, 1] : tensor<32x4xf32> to tensor<16x4xf32>
  %c = math.tanh %b : tensor<16x4xf32>
  %y = arith.mulf %a, %c : tensor<16x4xf32>
  return %y : tensor<16x4xf32>
}
