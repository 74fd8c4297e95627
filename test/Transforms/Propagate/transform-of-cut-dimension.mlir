// RUN: tessera explain %s --objective bytes | FileCheck %s
// RUN: tessera run %s --check

// A product with a known matrix along a cut dimension, as in a Fourier transform. It is computed
// along the batch, to which the value moves and moves back, 7/8 of 8 x 64 x 4 / 8 bytes each,
// instead of reducing 8 x 64 contributions.

// CHECK: total: 2 collectives, 448 bytes on the wire

dist.process_mesh @line(shape = [8], dim_names = ["s"])

func.func @main(%x: tensor<8x64xf32> {dist.sharding = #dist.sharding<@line, [shard(1)]>})
    -> (tensor<8x64xf32> {dist.sharding = #dist.sharding<@line, [shard(1)]>}) {
  %zero = arith.constant dense<0.0> : tensor<8x64xf32>
  %matrix = arith.constant dense<0.125> : tensor<64x64xf32>
  %f = linalg.matmul ins(%x, %matrix : tensor<8x64xf32>, tensor<64x64xf32>)
                     outs(%zero : tensor<8x64xf32>) -> tensor<8x64xf32>
  %g = math.tanh %f : tensor<8x64xf32>
  %back = linalg.matmul ins(%g, %matrix : tensor<8x64xf32>, tensor<64x64xf32>)
                        outs(%zero : tensor<8x64xf32>) -> tensor<8x64xf32>
  return %back : tensor<8x64xf32>
}
