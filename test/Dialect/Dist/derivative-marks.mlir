// RUN: tessera-opt %s --verify-roundtrip | FileCheck %s
// RUN: tessera-opt %s --dist-guard --dist-normalize | FileCheck %s --check-prefix=GONE
// RUN: tessera-opt %s --interpret=function=values

// Marks for dist-autodiff: they parse and print, compute their region, and dist-normalize removes them.
// GONE-NOT: dist.stop_gradient
// GONE-NOT: dist.checkpoint
// GONE-NOT: custom_vjp
// GONE-NOT: @twice
// GONE: {{^[}]$}}

// CHECK-LABEL: func.func @marks(
func.func @marks(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<f32>) {
  // CHECK: dist.stop_gradient %{{.*}} : tensor<4xf32>
  %0 = dist.stop_gradient %x : tensor<4xf32>
  // CHECK: %{{.*}}:2 = dist.checkpoint {
  // CHECK: dist.yield %{{.*}}, %{{.*}} : tensor<4xf32>, tensor<f32>
  // CHECK: } : tensor<4xf32>, tensor<f32>
  %1:2 = dist.checkpoint {
    %a = arith.addf %0, %x : tensor<4xf32>
    %c = arith.constant dense<1.0> : tensor<f32>
    dist.yield %a, %c : tensor<4xf32>, tensor<f32>
  } : tensor<4xf32>, tensor<f32>
  // CHECK: call @twice(%{{.*}}) {dist.custom_vjp = @twice_vjp}
  %2 = func.call @twice(%1#0) {dist.custom_vjp = @twice_vjp} : (tensor<4xf32>) -> tensor<4xf32>
  return %2, %1#1 : tensor<4xf32>, tensor<f32>
}
func.func private @twice(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = arith.addf %x, %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @twice_vjp(%x: tensor<4xf32>, %y: tensor<4xf32>, %dy: tensor<4xf32>) -> tensor<4xf32> {
  %0 = arith.addf %dy, %dy : tensor<4xf32>
  return %0 : tensor<4xf32>
}

func.func @values() {
  %x = arith.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  %0:2 = func.call @marks(%x) : (tensor<4xf32>) -> (tensor<4xf32>, tensor<f32>)
  %expected = arith.constant dense<[4.0, 8.0, 12.0, 16.0]> : tensor<4xf32>
  check.expect_eq %0#0, %expected : tensor<4xf32>
  return
}
