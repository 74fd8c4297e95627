// Indices may be known only at run time; that the tensor is not empty is checked at compile time.
// RUN: tessera-opt %s --dist-guard --split-input-file --verify-diagnostics

func.func @nothing(%a: tensor<4x0xf32>, %i: index) -> f32 {
  // expected-error @+1 {{'tensor.extract' names an element of 'tensor<4x0xf32>', which has none; give dimension 1 an extent}}
  %0 = tensor.extract %a[%i, %i] : tensor<4x0xf32>
  return %0 : f32
}

// -----

func.func @rows(%a: tensor<0x3xf32>, %i: tensor<2x1xi32>) -> tensor<2x3xf32> {
  // expected-error @+1 {{'tensor.gather' names an element of 'tensor<0x3xf32>', which has none; give dimension 0 an extent}}
  %0 = tensor.gather %a[%i] gather_dims([0]) : (tensor<0x3xf32>, tensor<2x1xi32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

// -----

func.func @backwards(%a: tensor<3x4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{'tensor.extract_slice' takes offset 0, size 4, stride -3 of dimension 1 of 'tensor<3x4xf32>'; its first and last element must be inside}}
  %0 = tensor.extract_slice %a[0, 0] [1, 4] [1, -3] : tensor<3x4xf32> to tensor<4xf32>
  return %0 : tensor<4xf32>
}
