// A product of zeros: the fill is an operand of the product, not only its zero init, so it is a kernel of its own.
// RUN: tessera-opt %s --tessera-pipeline --codegen | FileCheck %s
// RUN: tessera run %s --check | FileCheck %s --check-prefix=VALUE

// CHECK: rt.launch @k0_fill() to (%[[ZEROS:[a-z0-9_]+]])
// CHECK: rt.gemm %[[ZEROS]],
// VALUE: check {{.*}} ok
func.func @main(%w: tensor<16x8xf32>) -> tensor<4x8xf32> {
  %zero = arith.constant 0.0 : f32
  %a = tensor.empty() : tensor<4x16xf32>
  %c = tensor.empty() : tensor<4x8xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%a : tensor<4x16xf32>) -> tensor<4x16xf32>
  %init = linalg.fill ins(%zero : f32) outs(%c : tensor<4x8xf32>) -> tensor<4x8xf32>
  %y = linalg.matmul ins(%zeros, %w : tensor<4x16xf32>, tensor<16x8xf32>) outs(%init : tensor<4x8xf32>) -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}
