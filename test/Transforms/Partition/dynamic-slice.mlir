// RUN: tessera-opt %s --tessera-pipeline | FileCheck %s
// RUN: tessera explain %s | FileCheck %s --check-prefix=BYTES
// RUN: tessera run %s --check

// Each device contributes its elements of the slice, -0.0 elsewhere; only the slice is reduced.

dist.process_mesh @line(shape = [4], dim_names = ["s"])

// CHECK: arith.constant -0.000000e+00 : f32
// CHECK: dist.all_reduce %{{.*}} reduction = sum {{.*}} tensor<2x8xf32>
// 2 B (n-1)/n of 64 bytes.
// BYTES: total: 1 collective, 96 bytes on the wire
func.func @main(%x: tensor<16x8xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>},
                %at: tensor<i64> {dist.sharding = #dist.sharding<@line, [replicate]>, dist.range = [-3, 20]})
    -> (tensor<2x8xf32> {dist.sharding = #dist.sharding<@line, [replicate]>}) {
  %scalar = tensor.extract %at[] : tensor<i64>
  %index = arith.index_cast %scalar : i64 to index
  %y = tensor.extract_slice %x[%index, 0] [2, 8] [1, 1] : tensor<16x8xf32> to tensor<2x8xf32>
  return %y : tensor<2x8xf32>
}
