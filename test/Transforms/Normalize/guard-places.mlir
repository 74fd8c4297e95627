// Indices may be known when the program runs; that there is something to read, when it is compiled.
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
