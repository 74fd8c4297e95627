// A pad is written once: every element is from the source or padding.
// RUN: tessera-opt %s --tessera-compile-gpu-kernels -o /dev/null | FileCheck %s
// RUN: tessera-opt %s --tessera-check-gpu-kernels -o /dev/null | FileCheck %s --check-prefix=EQUAL

// CHECK-LABEL: pad: launches 1, workspace 0, bytes 133248 of 133248
// CHECK-NEXT: pointwise
// EQUAL: pad: pointwise equal
func.func private @pad(%x: tensor<16x30x32xf32>, %o: tensor<16x33x34xf32>) -> tensor<16x33x34xf32>
    attributes {kernel.reads = 1 : i64} {
  %c = arith.constant 1.5 : f32
  %f = linalg.fill ins(%c : f32) outs(%o : tensor<16x33x34xf32>) -> tensor<16x33x34xf32>
  %0 = tensor.insert_slice %x into %f[0, 1, 2] [16, 30, 32] [1, 1, 1] : tensor<16x30x32xf32> into tensor<16x33x34xf32>
  return %0 : tensor<16x33x34xf32>
}

// A source much smaller than the result is written by a separate launch.
// CHECK-LABEL: small: launches 1, workspace 0, bytes 8448 of 8320
// EQUAL: small: {{.*}} equal
func.func private @small(%x: tensor<1x32xf32>, %o: tensor<64x32xf32>) -> tensor<64x32xf32>
    attributes {kernel.reads = 1 : i64} {
  %c = arith.constant 0.0 : f32
  %f = linalg.fill ins(%c : f32) outs(%o : tensor<64x32xf32>) -> tensor<64x32xf32>
  %0 = tensor.insert_slice %x into %f[7, 0] [1, 32] [1, 1] : tensor<1x32xf32> into tensor<64x32xf32>
  return %0 : tensor<64x32xf32>
}
