// RUN: tessera-opt %s --tessera-pipeline | FileCheck %s
// RUN: tessera explain %s | FileCheck %s --check-prefix=BYTES
// RUN: tessera run %s --check

// Only the selected rows are sent: device 2 has four of the eight and sends them all, 16 bytes each.

dist.process_mesh @line(shape = [4], dim_names = ["s"])

// CHECK: tensor.extract_slice %{{.*}}[0, 0] [4, 4] [2, 1] {{.*}}: tensor<8x4xf32> to tensor<4x4xf32>
// CHECK: dist.exchange
// BYTES: total: 1 collective, 64 bytes on the wire
func.func @main(%x: tensor<32x4xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>})
    -> (tensor<8x4xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>}) {
  %y = tensor.extract_slice %x[16, 0] [8, 4] [2, 1] : tensor<32x4xf32> to tensor<8x4xf32>
  return %y : tensor<8x4xf32>
}
