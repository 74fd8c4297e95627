// RUN: tessera explain %s | FileCheck %s
// RUN: tessera run %s --check

// A slice of one row, which is on one device, is not cut: its owner sends it to all.

dist.process_mesh @line(shape = [8], dim_names = ["s"])

// CHECK: total: 1 collective, 256 bytes on the wire
func.func @main(%x: tensor<1024x64xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>})
    -> (tensor<64xf32> {dist.sharding = #dist.sharding<@line, [replicate]>}) {
  %row = tensor.extract_slice %x[1023, 0] [1, 64] [1, 1] : tensor<1024x64xf32> to tensor<1x64xf32>
  %y = tensor.collapse_shape %row [[0, 1]] : tensor<1x64xf32> into tensor<64xf32>
  return %y : tensor<64xf32>
}
