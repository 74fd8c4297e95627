// RUN: tessera-opt %s --split-input-file --verify-diagnostics

// R1
func.func @dimension(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  // expected-error @+1 {{dim = 2 of a rank-2 tensor 'tensor<8x4xf32>'; it must be in [0, 2)}}
  %y = dist.rearrange %x dim = 2 segments = [0, 1, 0, 1, 8] : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return %y : tensor<8x4xf32>
}

// -----

// R2
func.func @numbers(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  // expected-error @+1 {{has 1 operands and 4 numbers in 'segments'; give at least one operand, and per operand five numbers}}
  %y = dist.rearrange %x dim = 0 segments = [0, 1, 0, 1] : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return %y : tensor<8x4xf32>
}

// -----

// R2
func.func @outside(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  // expected-error @+1 {{segment 0 moves 8 elements from 1 in steps of 1 to 0 in steps of 1; they must be within the 8 elements of the operand and the 8 of the result}}
  %y = dist.rearrange %x dim = 0 segments = [1, 1, 0, 1, 8] : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return %y : tensor<8x4xf32>
}

// -----

// R3
func.func @other_dimension(%x: tensor<8x5xf32>) -> tensor<8x4xf32> {
  // expected-error @+1 {{operand 0 is 'tensor<8x5xf32>', the result 'tensor<8x4xf32>'; they must be equal except in dimension 0}}
  %y = dist.rearrange %x dim = 0 segments = [0, 1, 0, 1, 8] : (tensor<8x5xf32>) -> tensor<8x4xf32>
  return %y : tensor<8x4xf32>
}

// -----

// R4
func.func @twice(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @+1 {{segments 0 and 1 write the same element; segments must be disjoint}}
  %y = dist.rearrange %x, %x dim = 0 segments = [0, 1, 0, 2, 4, 0, 1, 6, -1, 4] fill = 0.0 : f32 : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %y : tensor<8xf32>
}

// -----

// R4
func.func @unwritten(%x: tensor<8xf32>) -> tensor<9xf32> {
  // expected-error @+1 {{leaves 1 of 9 elements unwritten; give a 'fill' of type 'f32'}}
  %y = dist.rearrange %x dim = 0 segments = [0, 1, 0, 1, 8] : (tensor<8xf32>) -> tensor<9xf32>
  return %y : tensor<9xf32>
}
