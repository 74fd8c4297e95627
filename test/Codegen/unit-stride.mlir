// RUN: tessera run %s --check=interpreter --no-cache | FileCheck %s

// A rank-reducing slice with a stride along dimensions of one: the stride is never taken.
// CHECK: check  result0  ok
func.func @main(%x: tensor<14x3x1xf32>) -> tensor<1x2xf32> {
  %0 = tensor.extract_slice %x[8, 0, 0] [1, 2, 1] [2, 2, 2] : tensor<14x3x1xf32> to tensor<1x2xf32>
  return %0 : tensor<1x2xf32>
}
