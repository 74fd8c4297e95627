// RUN: tessera-opt %s --split-input-file --verify-diagnostics

#a = affine_map<(i, j, k) -> (i, k)>
#b = affine_map<(i, j, k) -> (k, j)>
#c = affine_map<(i, j, k) -> (i, j)>

// R12: the epilogues are two.
func.func @name(%a: tensor<4x8xf32>, %b: tensor<8x6xf32>, %c: tensor<4x6xf32>) -> tensor<4x6xf32> {
  // expected-error @below {{'silu' is not a valid epilogue; expected relu or gelu}}
  %0 = rt.product %a, %b into %c epilogue "silu" maps [#a, #b, #c] : tensor<4x8xf32>, tensor<8x6xf32> into tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}

// -----

#a = affine_map<(i, j, k) -> (i, k)>
#b = affine_map<(i, j, k) -> (k, j)>
#c = affine_map<(i, j, k) -> (i, j)>

// R12: integers have none.
func.func @type(%a: tensor<4x8xi32>, %b: tensor<8x6xi32>, %c: tensor<4x6xi32>) -> tensor<4x6xi32> {
  // expected-error @below {{a product of 'i32' cannot have a bias or an epilogue; only f32, f16 and bf16 products can}}
  %0 = rt.product %a, %b into %c epilogue "relu" maps [#a, #b, #c] : tensor<4x8xi32>, tensor<8x6xi32> into tensor<4x6xi32>
  return %0 : tensor<4x6xi32>
}

// -----

#a = affine_map<(i, j, k) -> (i, k)>
#b = affine_map<(i, j, k) -> (k, j)>
#c = affine_map<(i, j, k) -> (i, j)>

// The extents of a loop must agree.
func.func @extents(%a: tensor<4x8xf32>, %b: tensor<9x6xf32>, %c: tensor<4x6xf32>) -> tensor<4x6xf32> {
  // expected-error @below {{loop 2 has the extents 8 and 9}}
  %0 = rt.product %a, %b into %c maps [#a, #b, #c] : tensor<4x8xf32>, tensor<9x6xf32> into tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}
