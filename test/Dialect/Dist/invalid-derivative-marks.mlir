// RUN: tessera-opt %s --verify-diagnostics --split-input-file

// (D1)
func.func @f(%x: tensor<4xf32>) -> tensor<f32> {
  // expected-error@+1 {{yields ('tensor<4xf32>') but has results ('tensor<f32>'); types must be equal}}
  %0 = dist.checkpoint {
    dist.yield %x : tensor<4xf32>
  } : tensor<f32>
  return %0 : tensor<f32>
}

// -----
// expected-error@+2 {{ends with 'arith.constant'; a checkpoint ends with dist.yield}}
func.func @f() {
  dist.checkpoint {
    %0 = arith.constant 1 : i32
  }
  return
}

// -----
// (D2)
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{'dist.custom_vjp' is 'g', which is not a function of the module}}
  %0 = func.call @f(%x) {dist.custom_vjp = @g} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----
// (D2)
func.func @f(%x: tensor<4xf32>, %n: tensor<i32>) -> tensor<4xf32> {
  // expected-error@+1 {{'f' has type '(tensor<4xf32>, tensor<i32>) -> tensor<4xf32>'; as the derivative of this call it has type '(tensor<4xf32>, tensor<i32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>'}}
  %0 = func.call @f(%x, %n) {dist.custom_vjp = @f} : (tensor<4xf32>, tensor<i32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----
// (D2)
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{'dist.custom_vjp' must be the name of a function, on a func.call}}
  %0 = arith.addf %x, %x {dist.custom_vjp = @f} : tensor<4xf32>
  return %0 : tensor<4xf32>
}
