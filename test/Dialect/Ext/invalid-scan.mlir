// RUN: tessera-opt %s --split-input-file --verify-diagnostics

// (E1)
func.func @dim(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  // expected-error@+1 {{'ext.scan' op has dim = 2, and its inputs are 'tensor<4x8xf32>'; dim must be in [0, 2)}}
  %0 = ext.scan dim = 2 ins(%x : tensor<4x8xf32>) {
  ^bb0(%before: f32, %after: f32):
    ext.yield %after : f32
  }
  return %0 : tensor<4x8xf32>
}

// -----

// (E1)
func.func @shapes(%x: tensor<4xf32>, %y: tensor<5xf32>) {
  // expected-error@+1 {{'ext.scan' op has input 1 of 'tensor<5xf32>' beside 'tensor<4xf32>'; inputs must have the same shape}}
  %0:2 = ext.scan dim = 0 ins(%x, %y : tensor<4xf32>, tensor<5xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32, %d: f32):
    ext.yield %a, %b : f32, f32
  }
  return
}

// -----

// (E2)
func.func @arguments(%x: tensor<4xf32>) {
  // expected-error@+1 {{'ext.scan' op has a region over ('f32', 'f64'); expected two scalars of each element type: ('f32', 'f32')}}
  %0 = ext.scan dim = 0 ins(%x : tensor<4xf32>) {
  ^bb0(%before: f32, %after: f64):
    ext.yield %before : f32
  }
  return
}

// -----

// (E2)
func.func @yields(%x: tensor<4xf32>) {
  %0 = ext.scan dim = 0 ins(%x : tensor<4xf32>) {
  ^bb0(%before: f32, %after: f32):
    // expected-error@+1 {{'ext.yield' op yields ('f32', 'f32') in 'ext.scan'; expected ('f32')}}
    ext.yield %before, %after : f32, f32
  }
  return
}

// -----

// (E3)
func.func @tensors(%x: tensor<4xf32>) {
  %0 = ext.scan dim = 0 ins(%x : tensor<4xf32>) {
  ^bb0(%before: f32, %after: f32):
    // expected-error@+1 {{'tensor.empty' op is not allowed in the region of 'ext.scan'; its ops must compute scalars and have no regions}}
    %0 = tensor.empty() : tensor<4xf32>
    ext.yield %after : f32
  }
  return
}

// -----

// (E4)
func.func @exclusive(%x: tensor<4xf32>) {
  // expected-error@+1 {{'ext.scan' op is exclusive without an identity, which is its first element; give 'identity'}}
  %0 = ext.scan dim = 0 exclusive ins(%x : tensor<4xf32>) {
  ^bb0(%before: f32, %after: f32):
    ext.yield %after : f32
  }
  return
}

// -----

// (E4)
func.func @identity(%x: tensor<4xf32>) {
  // expected-error@+1 {{'ext.scan' op has identity 0 : i32 for input 0 of 'tensor<4xf32>'; expected a value of the element type}}
  %0 = ext.scan dim = 0 ins(%x : tensor<4xf32>) identity [0 : i32] {
  ^bb0(%before: f32, %after: f32):
    ext.yield %after : f32
  }
  return
}
