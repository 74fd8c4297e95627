// The library assembles kernels like ptxas: without register spills.
// REQUIRES: nvjitlink
// RUN: tessera-opt %s --tessera-compile-gpu-kernels="arch=sm_80,sm_90a ptxas=%cuda/lib64/libnvJitLink.so" -o /dev/null | FileCheck %s
// RUN: tessera-opt %s --tessera-compile-gpu-kernels="arch=sm_80,sm_90a ptxas=%cuda/bin/ptxas" -o /dev/null | FileCheck %s

// CHECK-LABEL: norm: launches 1
// CHECK-NEXT: rows: {{.*}} sm_80: {{[0-9]+}} registers, 0 spilled, sm_90a: {{[0-9]+}} registers, 0 spilled
func.func private @norm(%x: tensor<64x4096xf32>, %o: tensor<64x4096xf32>) -> tensor<64x4096xf32>
    attributes {kernel.reads = 1 : i64} {
  %0 = linalg.softmax dimension(1) ins(%x : tensor<64x4096xf32>) outs(%o : tensor<64x4096xf32>) -> tensor<64x4096xf32>
  return %0 : tensor<64x4096xf32>
}
