// RUN: tessera-opt %s --split-input-file --verify-diagnostics

// (E1)
func.func @dim(%x: tensor<f32>) {
  // expected-error@+1 {{'ext.sort' op has dim = 0, and its inputs are 'tensor<f32>'; dim must be in [0, 0)}}
  %0 = ext.sort dim = 0 keys = 1 ins(%x : tensor<f32>)
  return
}

// -----

// (E5)
func.func @keys(%x: tensor<4xf32>) {
  // expected-error@+1 {{'ext.sort' op has keys = 2 and 1 inputs; keys must be in [1, 1]}}
  %0 = ext.sort dim = 0 keys = 2 ins(%x : tensor<4xf32>)
  return
}

// -----

// (E6)
func.func @limit(%x: tensor<4xf32>) {
  // expected-error@+1 {{'ext.sort' op has limit = 5, and dimension 0 has 4 elements; limit must be in [0, 4]}}
  %0 = ext.sort dim = 0 keys = 1 limit = 5 ins(%x : tensor<4xf32>)
  return
}
