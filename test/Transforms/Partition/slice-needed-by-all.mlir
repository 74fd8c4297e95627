// RUN: tessera-opt %s --tessera-pipeline | FileCheck %s
// RUN: tessera explain %s | FileCheck %s --check-prefix=BYTES
// RUN: tessera run %s --check

// All devices need one row: its owner sends it.

dist.process_mesh @line(shape = [4], dim_names = ["s"])

// CHECK: dist.all_gather
// BYTES: total: 1 collective, 32 bytes on the wire
func.func @main(%x: tensor<16x8xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>})
    -> (tensor<8xf32> {dist.sharding = #dist.sharding<@line, [replicate]>}) {
  %y = tensor.extract_slice %x[15, 0] [1, 8] [1, 1] : tensor<16x8xf32> to tensor<8xf32>
  return %y : tensor<8xf32>
}
