// RUN: tessera-opt %s --tessera-pipeline="compile-to=normalized" | FileCheck %s --check-prefix=FORM
// RUN: tessera-opt %s --tessera-pipeline | FileCheck %s
// RUN: tessera explain %s | FileCheck %s --check-prefix=BYTES
// RUN: tessera run %s --check

// Two slices and a concatenation are one move: in one exchange, the last row goes to device 0, and
// the last row of each other device to its neighbor.

dist.process_mesh @line(shape = [4], dim_names = ["s"])

// FORM: dist.rearrange %[[X:.*]], %[[X]] dim = 0 segments = [63, 1, 0, 1, 1, 0, 1, 1, 1, 63] {{.*}}: (tensor<64x8xf32>, tensor<64x8xf32>) -> tensor<64x8xf32>
// CHECK: dist.exchange %[[X:.*]], %[[X]] from
// CHECK-NOT: dist.exchange
// CHECK-NOT: dist.all_gather
// BYTES: total: 1 collective, 32 bytes on the wire
func.func @main(%x: tensor<64x8xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>})
    -> (tensor<64x8xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>}) {
  %last = tensor.extract_slice %x[63, 0] [1, 8] [1, 1] : tensor<64x8xf32> to tensor<1x8xf32>
  %rest = tensor.extract_slice %x[0, 0] [63, 8] [1, 1] : tensor<64x8xf32> to tensor<63x8xf32>
  %y = tensor.concat dim(0) %last, %rest : (tensor<1x8xf32>, tensor<63x8xf32>) -> tensor<64x8xf32>
  return %y : tensor<64x8xf32>
}
