// RUN: tessera-opt %s --dist-autodiff="seed=argument" | FileCheck %s
// RUN: tessera-fuzz --gradients --check %s

// The cotangents of slices that tile a tensor are concatenated, not padded and added.
// CHECK-LABEL: func.func @main_grad(
// CHECK-NOT: tensor.pad
// CHECK: tensor.concat dim(1) %{{.*}}, %{{.*}}, %{{.*}} : (tensor<2x1x4xf64>, tensor<2x1x4xf64>, tensor<2x1x4xf64>) -> tensor<2x3x4xf64>
// CHECK-NOT: arith.addf
func.func @main(%qkv: tensor<2x3x4xf64>) -> (tensor<2x4xf64>, tensor<2x4xf64>, tensor<2x4xf64>) {
  %k = tensor.extract_slice %qkv[0, 1, 0] [2, 1, 4] [1, 1, 1] : tensor<2x3x4xf64> to tensor<2x4xf64>
  %v = tensor.extract_slice %qkv[0, 2, 0] [2, 1, 4] [1, 1, 1] : tensor<2x3x4xf64> to tensor<2x4xf64>
  %q = tensor.extract_slice %qkv[0, 0, 0] [2, 1, 4] [1, 1, 1] : tensor<2x3x4xf64> to tensor<2x4xf64>
  return %q, %k, %v : tensor<2x4xf64>, tensor<2x4xf64>, tensor<2x4xf64>
}
