// RUN: tessera-opt %s --dist-print-rules --verify-diagnostics -o /dev/null

// Rules of the tensor dialect are written by hand (TensorRules.cpp).

func.func @expand(%a: tensor<24x5xf32>) -> tensor<4x6x5xf32> {
  // expected-remark @+1 {{([ij, k]) -> ([i, j, k]) {i = 4, j = 6, k = 5}; forwards sums from {0}}}
  %0 = tensor.expand_shape %a [[0, 1], [2]] output_shape [4, 6, 5] : tensor<24x5xf32> into tensor<4x6x5xf32>
  return %0 : tensor<4x6x5xf32>
}

// A dimension of extent 1 is not a factor of a merged dimension.
func.func @collapse(%a: tensor<4x1x6x5xf32>) -> tensor<24x5xf32> {
  // expected-remark @+1 {{([i, j, k, l]) -> ([ik, l]) {i = 4, j = 1, k = 6, l = 5} whole j; forwards sums from {0}}}
  %0 = tensor.collapse_shape %a [[0, 1, 2], [3]] : tensor<4x1x6x5xf32> into tensor<24x5xf32>
  return %0 : tensor<24x5xf32>
}

func.func @concat(%a: tensor<4x5xf32>, %b: tensor<3x5xf32>) -> tensor<7x5xf32> {
  // expected-remark @+1 {{([i(t at t, t < 4), j], [i(t at 4 + t, t < 3), j]) -> ([i, j]) {i = 7, j = 5}; forwards sums from {0, 1}}}
  %0 = tensor.concat dim(0) %a, %b : (tensor<4x5xf32>, tensor<3x5xf32>) -> tensor<7x5xf32>
  return %0 : tensor<7x5xf32>
}

func.func @pad(%a: tensor<4x5xf32>) -> tensor<7x5xf32> {
  %zero = arith.constant 0.0 : f32
  // expected-remark @+1 {{([i - 1 .. + 1, j]) -> ([i, j]) {i = 7, j = 5}; forwards sums from {0}}}
  %0 = tensor.pad %a low[1, 0] high[2, 0] {
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : f32
  } : tensor<4x5xf32> to tensor<7x5xf32>
  return %0 : tensor<7x5xf32>
}

func.func @extract_slice(%a: tensor<8x5x3xf32>, %at: index) -> tensor<3x5xf32> {
  // expected-remark @+1 {{([i(1 + 2t at t, t < 3), j, k], []) -> ([i, j]) {i = 3, j = 5, k = 3} sum over k; forwards sums from {0}}}
  %0 = tensor.extract_slice %a[1, 0, %at] [3, 5, 1] [2, 1, 1] : tensor<8x5x3xf32> to tensor<3x5xf32>
  return %0 : tensor<3x5xf32>
}

func.func @insert_slice(%a: tensor<3x5xf32>, %b: tensor<8x5xf32>) -> tensor<8x5xf32> {
  // expected-remark @+1 {{([i(t at 2 + t, t < 3), j], [i, j]) -> ([i, j]) {i = 8, j = 5}; forwards sums from {0, 1}}}
  %0 = tensor.insert_slice %a into %b[2, 0] [3, 5] [1, 1] : tensor<3x5xf32> into tensor<8x5xf32>
  return %0 : tensor<8x5xf32>
}

func.func @gather(%a: tensor<100x16xf32>, %i: tensor<4x7x1xi64>) -> tensor<4x7x16xf32> {
  // expected-remark @+1 {{([l, m], [i, j, k]) -> ([i, j, m]) {i = 4, j = 7, k = 1, l = 100, m = 16} whole k l}}
  %0 = tensor.gather %a[%i] gather_dims([0]) : (tensor<100x16xf32>, tensor<4x7x1xi64>) -> tensor<4x7x16xf32>
  return %0 : tensor<4x7x16xf32>
}

func.func @sources(%v: f32) -> (tensor<4x5xf32>, tensor<4x5xf32>, tensor<4xf32>, tensor<2xf32>) {
  // expected-remark @+1 {{() -> ([i, j]) {i = 4, j = 5}}}
  %0 = tensor.empty() : tensor<4x5xf32>
  // expected-remark @+1 {{([]) -> ([i, j]) {i = 4, j = 5}}}
  %1 = tensor.splat %v : tensor<4x5xf32>
  // expected-remark @+1 {{() -> ([i]) {i = 4}}}
  %2 = arith.constant dense<1.0> : tensor<4xf32>
  // Each device holds all elements of a constant that is not a splat.
  // expected-remark @+1 {{() -> ([i]) {i = 2} whole i}}
  %3 = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>
  return %0, %1, %2, %3 : tensor<4x5xf32>, tensor<4x5xf32>, tensor<4xf32>, tensor<2xf32>
}

func.func @elements(%a: tensor<4xf32>, %i: index) -> (tensor<4xf32>, tensor<2xf32>) {
  // expected-remark @+1 {{([i], []) -> ([]) {i = 4} whole i}}
  %0 = tensor.extract %a[%i] : tensor<4xf32>
  // expected-remark @+1 {{([], [i], []) -> ([j]) {i = 4, j = 4} whole i j}}
  %1 = tensor.insert %0 into %a[%i] : tensor<4xf32>
  // expected-remark @+1 {{([], []) -> ([i]) {i = 2} whole i}}
  %2 = tensor.from_elements %0, %0 : tensor<2xf32>
  return %1, %2 : tensor<4xf32>, tensor<2xf32>
}

func.func @scatter(%into: tensor<4x6xf32>, %rows: tensor<3x1x6xf32>, %places: tensor<3x1xindex>) -> tensor<4x6xf32> {
  // expected-remark @+1 {{([i, j, k], [l, m], [n, o]) -> ([p, q]) {i = 3, j = 1, k = 6, l = 4, m = 6, n = 3, o = 1, p = 4, q = 6} whole i j k l m n o p q}}
  %0 = tensor.scatter %rows into %into[%places] scatter_dims([0]) unique
      : (tensor<3x1x6xf32>, tensor<4x6xf32>, tensor<3x1xindex>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}

func.func @generate() -> tensor<4xindex> {
  // expected-remark @+1 {{() -> ([i]) {i = 4} whole i}}
  %0 = tensor.generate {
  ^bb0(%i: index):
    tensor.yield %i : index
  } : tensor<4xindex>
  return %0 : tensor<4xindex>
}

dist.process_mesh @m(shape = [2], dim_names = ["x"])
func.func @constraint(%a: tensor<4x5xf32>) -> tensor<4x5xf32> {
  // expected-remark @+1 {{([i, j]) -> ([i, j]) {i = 4, j = 5}}}
  %0 = dist.shard_tensor %a, #dist.sharding<@m, [shard(0)]> : tensor<4x5xf32>
  return %0 : tensor<4x5xf32>
}
