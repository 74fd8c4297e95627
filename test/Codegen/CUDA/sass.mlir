// The assembler preserves wide accesses, and the command that reads machine code reports them.
// REQUIRES: ptxas, nvdisasm
// RUN: %python %source/bench/gpu/kernels --build %unittests/.. --sass %s | FileCheck %s

// CHECK: strided 0 pointwise sm_90a: 4 LDG.32, 1 STG.128
// CHECK-NEXT: reads argument 0 by 32 bits: elements 7 apart
// CHECK: sm_90a: 2 launches, 1 with accesses of 128 bits only, 0 with spills
func.func private @masked(%x: tensor<1000x64xbf16>, %m: tensor<1000x64xi1>, %o: tensor<1000x64xbf16>)
    -> tensor<1000x64xbf16> attributes {kernel.reads = 2 : i64} {
  %z = arith.constant dense<0.0> : tensor<1000x64xbf16>
  %1 = arith.select %m, %x, %z : tensor<1000x64xi1>, tensor<1000x64xbf16>
  return %1 : tensor<1000x64xbf16>
}

func.func private @strided(%x: tensor<512x7xf32>, %o: tensor<512xf32>) -> tensor<512xf32>
    attributes {kernel.reads = 1 : i64} {
  %w = tensor.extract_slice %x[0, 2] [512, 1] [1, 1] : tensor<512x7xf32> to tensor<512xf32>
  %0 = linalg.exp ins(%w : tensor<512xf32>) outs(%o : tensor<512xf32>) -> tensor<512xf32>
  return %0 : tensor<512xf32>
}
