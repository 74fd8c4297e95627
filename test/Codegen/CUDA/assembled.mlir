// NVIDIA's assembler accepts LLVM's output and spills no register.
// REQUIRES: ptxas
// RUN: tessera-opt %s --tessera-compile-gpu-kernels="arch=sm_80,sm_90a" -o /dev/null | FileCheck %s
// One text serves all architectures, also beside one with architecture-specific instructions.
// RUN: tessera-opt %s --tessera-compile-gpu-kernels="arch=sm_90a,sm_100,sm_120" -o /dev/null | FileCheck %s --check-prefix=LATER
// LATER: sm_90a: {{[0-9]+}} registers, 0 spilled, sm_100: {{[0-9]+}} registers, 0 spilled, sm_120

// CHECK-LABEL: softmax: launches 1
// CHECK-NEXT: rows: {{.*}} sm_80: {{[0-9]+}} registers, 0 spilled, sm_90a: {{[0-9]+}} registers, 0 spilled
func.func private @softmax(%x: tensor<64x8192xf32>, %o: tensor<64x8192xf32>) -> tensor<64x8192xf32>
    attributes {kernel.reads = 1 : i64} {
  %0 = linalg.softmax dimension(1) ins(%x : tensor<64x8192xf32>) outs(%o : tensor<64x8192xf32>) -> tensor<64x8192xf32>
  return %0 : tensor<64x8192xf32>
}
