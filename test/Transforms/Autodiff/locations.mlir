// RUN: tessera-opt %s --dist-autodiff --mlir-print-debuginfo | FileCheck %s

// Ops of a derivative have the location of the differentiated op.
// CHECK: #[[TANH:.*]] = loc("model.py":12:0)
// CHECK-LABEL: func.func @main_grad(
// CHECK: math.tanh %{{.*}} : f32 loc(#[[TANH]])
// CHECK: arith.subf %{{.*}}, %{{.*}} : f32 loc(#[[TANH]])
// CHECK: } -> tensor<4xf32> loc(#[[TANH]])
func.func @main(%x: tensor<4xf32>) -> tensor<f32> {
  %zero = arith.constant dense<0.0> : tensor<f32>
  %e = math.tanh %x : tensor<4xf32> loc("model.py":12:0)
  %s = linalg.reduce { arith.addf } ins(%e : tensor<4xf32>) outs(%zero : tensor<f32>) dimensions = [0]
  return %s : tensor<f32>
}
