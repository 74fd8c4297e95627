// RUN: tessera-opt %s --dist-normalize | FileCheck %s
// RUN: tessera explain %s --objective bytes | FileCheck %s --check-prefix=BYTES
// RUN: tessera run %s --check

// A grid continues at its other end, in rows and columns. What a stencil slices of it along both is a roll of rows and
// one of columns; equal rolls are made once. Only the grid's rows at the ends of parts are sent.

dist.process_mesh @line(shape = [4], dim_names = ["s"])

// CHECK-LABEL: func.func @main(
// CHECK: %[[UP:.*]] = dist.rearrange %arg0, %arg0 dim = 0 segments = [7, 1, 0, 1, 1, 0, 1, 1, 1, 7] {{.*}} -> tensor<8x5xf32>
// CHECK: %[[LEFT:.*]] = dist.rearrange %[[UP]], %[[UP]] dim = 1 segments = [4, 1, 0, 1, 1, 0, 1, 1, 1, 4]
// CHECK: %[[DOWN:.*]] = dist.rearrange %arg0, %arg0 dim = 0 segments = [1, 1, 0, 1, 7, 0, 1, 7, 1, 1]
// CHECK-NOT: dist.rearrange
// CHECK-NOT: tensor.extract_slice
// BYTES: 40 bytes on the wire
func.func @main(%u: tensor<8x5xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>})
    -> (tensor<8x5xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>}) {
  %last = tensor.extract_slice %u[7, 0] [1, 5] [1, 1] : tensor<8x5xf32> to tensor<1x5xf32>
  %first = tensor.extract_slice %u[0, 0] [1, 5] [1, 1] : tensor<8x5xf32> to tensor<1x5xf32>
  %rows = tensor.concat dim(0) %last, %u, %first : (tensor<1x5xf32>, tensor<8x5xf32>, tensor<1x5xf32>) -> tensor<10x5xf32>
  %right = tensor.extract_slice %rows[0, 4] [10, 1] [1, 1] : tensor<10x5xf32> to tensor<10x1xf32>
  %left = tensor.extract_slice %rows[0, 0] [10, 1] [1, 1] : tensor<10x5xf32> to tensor<10x1xf32>
  %p = tensor.concat dim(1) %right, %rows, %left : (tensor<10x1xf32>, tensor<10x5xf32>, tensor<10x1xf32>) -> tensor<10x7xf32>
  %a = tensor.extract_slice %p[0, 0] [8, 5] [1, 1] : tensor<10x7xf32> to tensor<8x5xf32>
  %b = tensor.extract_slice %p[0, 1] [8, 5] [1, 1] : tensor<10x7xf32> to tensor<8x5xf32>
  %c = tensor.extract_slice %p[2, 1] [8, 5] [1, 1] : tensor<10x7xf32> to tensor<8x5xf32>
  %d = tensor.extract_slice %p[1, 1] [8, 5] [1, 1] : tensor<10x7xf32> to tensor<8x5xf32>
  %0 = arith.addf %a, %b : tensor<8x5xf32>
  %1 = arith.subf %c, %d : tensor<8x5xf32>
  %2 = arith.mulf %0, %1 : tensor<8x5xf32>
  return %2 : tensor<8x5xf32>
}
