// RUN: tessera explain %s --objective bytes | FileCheck %s
// RUN: tessera run %s --check

// Of a value that is gathered, its halves are taken: it is gathered once, 3/4 of 16 x 8 x 4 bytes.
// CHECK: total: 1 collective, 384 bytes on the wire

dist.process_mesh @line(shape = [4], dim_names = ["s"])

func.func @main(%x: tensor<16x8xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>})
    -> (tensor<16x8xf32> {dist.sharding = #dist.sharding<@line, [replicate]>},
        tensor<16x8xf32> {dist.sharding = #dist.sharding<@line, [replicate]>}) {
  %a = tensor.extract_slice %x[0, 0] [8, 8] [1, 1] : tensor<16x8xf32> to tensor<8x8xf32>
  %b = tensor.extract_slice %x[8, 0] [8, 8] [1, 1] : tensor<16x8xf32> to tensor<8x8xf32>
  %swapped = tensor.concat dim(0) %b, %a : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<16x8xf32>
  return %x, %swapped : tensor<16x8xf32>, tensor<16x8xf32>
}
