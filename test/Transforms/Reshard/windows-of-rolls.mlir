// RUN: tessera explain %s | FileCheck %s
// RUN: tessera run %s --check

// Rolls by 1 and by 2 of one value need overlapping windows, which are moved once: two rows of the neighbour. The rows that
// the first device takes from the last are a window of their own.

dist.process_mesh @line(shape = [4], dim_names = ["s"])

// CHECK: exchange {{.*}} 64 on the wire {{.*}} several of its windows are read
// CHECK: total: 1 collective, 64 bytes on the wire
func.func @main(%x: tensor<32x8xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>})
    -> (tensor<32x8xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>}) {
  %a = tensor.extract_slice %x[31, 0] [1, 8] [1, 1] : tensor<32x8xf32> to tensor<1x8xf32>
  %b = tensor.extract_slice %x[0, 0] [31, 8] [1, 1] : tensor<32x8xf32> to tensor<31x8xf32>
  %one = tensor.concat dim(0) %a, %b : (tensor<1x8xf32>, tensor<31x8xf32>) -> tensor<32x8xf32>
  %c = tensor.extract_slice %x[30, 0] [2, 8] [1, 1] : tensor<32x8xf32> to tensor<2x8xf32>
  %d = tensor.extract_slice %x[0, 0] [30, 8] [1, 1] : tensor<32x8xf32> to tensor<30x8xf32>
  %two = tensor.concat dim(0) %c, %d : (tensor<2x8xf32>, tensor<30x8xf32>) -> tensor<32x8xf32>
  %y = arith.mulf %one, %two : tensor<32x8xf32>
  return %y : tensor<32x8xf32>
}
