// RUN: tessera-opt %s --codegen-form-phases --cse --split-input-file | FileCheck %s
//
// A contraction of a padded kernel or a dilated tensor skips their zeros: one contraction per phase.

// The derivative with respect to the input of a convolution of 3 taps with stride 2, as --dist-autodiff
// emits it. Phase 0 has two taps, phase 1 has one; elements that are cut off are not computed.

// CHECK-LABEL: func.func @stride_two(
// CHECK-SAME: %[[W:.*]]: tensor<24x16x3xf32>, %[[G:.*]]: tensor<8x24x16xf32>
// CHECK: %[[EMPTY:.*]] = tensor.empty() : tensor<8x16x28xf32>
// CHECK: %[[ODD:.*]] = rt.contraction %[[W]], %[[G]] into %[[EMPTY]] starts [2, 1, 1] extents [8, 24, 14, 16, 2]
// CHECK-SAME: strides [0, 48, 0, 3, -2], [384, 16, 1, 0, 1], [448, 0, 2, 28, 0] overwrite
// CHECK: %[[ALL:.*]] = rt.contraction %[[W]], %[[G]] into %[[ODD]] starts [1, 1, 0] extents [8, 24, 14, 16]
// CHECK-SAME: strides [0, 48, 0, 3], [384, 16, 1, 0], [448, 0, 2, 28] overwrite
// CHECK: return %[[ALL]]
#flip = affine_map<(o, c, j, r) -> (o, c, -j + 1, r)>
#id = affine_map<(o, c, j, r) -> (o, c, j, r)>
#k = affine_map<(n, o, q, c, j, r) -> (o, c, j, r)>
#g = affine_map<(n, o, q, c, j, r) -> (n, o, q + j)>
#d = affine_map<(n, o, q, c, j, r) -> (n, c, q, r)>
func.func @stride_two(%w: tensor<24x16x3xf32>, %g: tensor<8x24x16xf32>) -> tensor<8x16x28xf32>
    attributes {dist.view = "local"} {
  %zero = arith.constant 0.0 : f32
  %room = tensor.empty() : tensor<24x16x4xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%room : tensor<24x16x4xf32>) -> tensor<24x16x4xf32>
  %padded = tensor.insert_slice %w into %zeros[0, 0, 0] [24, 16, 3] [1, 1, 1] : tensor<24x16x3xf32> into tensor<24x16x4xf32>
  %apart = tensor.expand_shape %padded [[0], [1], [2, 3]] output_shape [24, 16, 2, 2]
    : tensor<24x16x4xf32> into tensor<24x16x2x2xf32>
  %empty = tensor.empty() : tensor<24x16x2x2xf32>
  %flipped = linalg.generic {indexing_maps = [#flip, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%apart : tensor<24x16x2x2xf32>) outs(%empty : tensor<24x16x2x2xf32>) {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  } -> tensor<24x16x2x2xf32>
  %out = tensor.empty() : tensor<8x16x15x2xf32>
  %init = linalg.fill ins(%zero : f32) outs(%out : tensor<8x16x15x2xf32>) -> tensor<8x16x15x2xf32>
  %d = linalg.generic {indexing_maps = [#k, #g, #d],
      iterator_types = ["parallel", "reduction", "parallel", "parallel", "reduction", "parallel"]}
      ins(%flipped, %g : tensor<24x16x2x2xf32>, tensor<8x24x16xf32>) outs(%init : tensor<8x16x15x2xf32>) {
  ^bb0(%a: f32, %b: f32, %sum: f32):
    %0 = arith.mulf %a, %b : f32
    %1 = arith.addf %sum, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<8x16x15x2xf32>
  %joined = tensor.collapse_shape %d [[0], [1], [2, 3]] : tensor<8x16x15x2xf32> into tensor<8x16x30xf32>
  %cut = tensor.extract_slice %joined[0, 0, 1] [8, 16, 28] [1, 1, 1] : tensor<8x16x30xf32> to tensor<8x16x28xf32>
  return %cut : tensor<8x16x28xf32>
}

// -----

// The same of three channels: few rows, but many columns.

// CHECK-LABEL: func.func @three_channels(
// CHECK: rt.contraction %{{.*}}, %{{.*}} into %{{.*}} starts [2, 1, 1] extents [8, 24, 14, 3, 2]
// CHECK: rt.contraction %{{.*}}, %{{.*}} into %{{.*}} starts [1, 1, 0] extents [8, 24, 14, 3]
#flip = affine_map<(o, c, j, r) -> (o, c, -j + 1, r)>
#id = affine_map<(o, c, j, r) -> (o, c, j, r)>
#k = affine_map<(n, o, q, c, j, r) -> (o, c, j, r)>
#g = affine_map<(n, o, q, c, j, r) -> (n, o, q + j)>
#d = affine_map<(n, o, q, c, j, r) -> (n, c, q, r)>
func.func @three_channels(%w: tensor<24x3x3xf32>, %g: tensor<8x24x16xf32>) -> tensor<8x3x28xf32>
    attributes {dist.view = "local"} {
  %zero = arith.constant 0.0 : f32
  %room = tensor.empty() : tensor<24x3x4xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%room : tensor<24x3x4xf32>) -> tensor<24x3x4xf32>
  %padded = tensor.insert_slice %w into %zeros[0, 0, 0] [24, 3, 3] [1, 1, 1] : tensor<24x3x3xf32> into tensor<24x3x4xf32>
  %apart = tensor.expand_shape %padded [[0], [1], [2, 3]] output_shape [24, 3, 2, 2]
    : tensor<24x3x4xf32> into tensor<24x3x2x2xf32>
  %empty = tensor.empty() : tensor<24x3x2x2xf32>
  %flipped = linalg.generic {indexing_maps = [#flip, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%apart : tensor<24x3x2x2xf32>) outs(%empty : tensor<24x3x2x2xf32>) {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  } -> tensor<24x3x2x2xf32>
  %out = tensor.empty() : tensor<8x3x15x2xf32>
  %init = linalg.fill ins(%zero : f32) outs(%out : tensor<8x3x15x2xf32>) -> tensor<8x3x15x2xf32>
  %d = linalg.generic {indexing_maps = [#k, #g, #d],
      iterator_types = ["parallel", "reduction", "parallel", "parallel", "reduction", "parallel"]}
      ins(%flipped, %g : tensor<24x3x2x2xf32>, tensor<8x24x16xf32>) outs(%init : tensor<8x3x15x2xf32>) {
  ^bb0(%a: f32, %b: f32, %sum: f32):
    %0 = arith.mulf %a, %b : f32
    %1 = arith.addf %sum, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<8x3x15x2xf32>
  %joined = tensor.collapse_shape %d [[0], [1], [2, 3]] : tensor<8x3x15x2xf32> into tensor<8x3x30xf32>
  %cut = tensor.extract_slice %joined[0, 0, 1] [8, 3, 28] [1, 1, 1] : tensor<8x3x30xf32> to tensor<8x3x28xf32>
  return %cut : tensor<8x3x28xf32>
}

// -----

// A transposed convolution of stride 2: the input is dilated, then padded. It is read in place,
// with as many zeros around it as its windows reach.

// CHECK-LABEL: func.func @transposed(
// CHECK-SAME: %[[X:.*]]: tensor<8x16x7xf32>, %[[W:.*]]: tensor<24x16x4xf32>
// CHECK: %[[PADDED:.*]] = tensor.insert_slice %[[X]] into %{{.*}}[0, 0, 1] [8, 16, 7] [1, 1, 1] : tensor<8x16x7xf32> into tensor<8x16x9xf32>
// CHECK: rt.contraction %[[PADDED]], %[[W]] into %{{.*}} starts [0, 0, 0] extents [8, 24, 7, 16, 2]
// CHECK-SAME: strides [144, 0, 1, 9, 1], [0, 64, 0, 4, 2], [336, 14, 2, 0, 0] overwrite
// CHECK: rt.contraction %[[PADDED]], %[[W]] into %{{.*}} starts [1, 1, 1] extents [8, 24, 7, 16, 2]
#x = affine_map<(n, o, p, c, k) -> (n, c, p + k)>
#k = affine_map<(n, o, p, c, k) -> (o, c, k)>
#y = affine_map<(n, o, p, c, k) -> (n, o, p)>
func.func @transposed(%x: tensor<8x16x7xf32>, %w: tensor<24x16x4xf32>) -> tensor<8x24x14xf32>
    attributes {dist.view = "local"} {
  %zero = arith.constant 0.0 : f32
  %apart = tensor.expand_shape %x [[0], [1], [2, 3]] output_shape [8, 16, 7, 1] : tensor<8x16x7xf32> into tensor<8x16x7x1xf32>
  %room = tensor.empty() : tensor<8x16x7x2xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%room : tensor<8x16x7x2xf32>) -> tensor<8x16x7x2xf32>
  %spread = tensor.insert_slice %apart into %zeros[0, 0, 0, 0] [8, 16, 7, 1] [1, 1, 1, 1]
    : tensor<8x16x7x1xf32> into tensor<8x16x7x2xf32>
  %joined = tensor.collapse_shape %spread [[0], [1], [2, 3]] : tensor<8x16x7x2xf32> into tensor<8x16x14xf32>
  %dilated = tensor.extract_slice %joined[0, 0, 0] [8, 16, 13] [1, 1, 1] : tensor<8x16x14xf32> to tensor<8x16x13xf32>
  %wide = tensor.empty() : tensor<8x16x17xf32>
  %edges = linalg.fill ins(%zero : f32) outs(%wide : tensor<8x16x17xf32>) -> tensor<8x16x17xf32>
  %padded = tensor.insert_slice %dilated into %edges[0, 0, 2] [8, 16, 13] [1, 1, 1] : tensor<8x16x13xf32> into tensor<8x16x17xf32>
  %out = tensor.empty() : tensor<8x24x14xf32>
  %init = linalg.fill ins(%zero : f32) outs(%out : tensor<8x24x14xf32>) -> tensor<8x24x14xf32>
  %y = linalg.generic {indexing_maps = [#x, #k, #y], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%padded, %w : tensor<8x16x17xf32>, tensor<24x16x4xf32>) outs(%init : tensor<8x24x14xf32>) {
  ^bb0(%a: f32, %b: f32, %sum: f32):
    %0 = arith.mulf %a, %b : f32
    %1 = arith.addf %sum, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<8x24x14xf32>
  return %y : tensor<8x24x14xf32>
}

// -----

// One tap with stride 2: three of four results are zero, and need no multiplication.

// CHECK-LABEL: func.func @one_tap(
// CHECK-SAME: %[[W:.*]]: tensor<24x16x1xf32>, %[[G:.*]]: tensor<8x24x14xf32>
// CHECK: %[[ZEROS:.*]] = linalg.fill {{.*}}tensor<8x16x14x2xf32>)
// CHECK: rt.contraction %[[W]], %[[G]] into %[[ZEROS]] starts [0, 0, 0] extents [8, 24, 14, 16]
// CHECK-SAME: strides [0, 16, 0, 1], [336, 14, 1, 0], [448, 0, 2, 28] overwrite
// CHECK-NOT: rt.contraction
#kk = affine_map<(n, o, q, c, r) -> (o, c, r)>
#gg = affine_map<(n, o, q, c, r) -> (n, o, q)>
#dd = affine_map<(n, o, q, c, r) -> (n, c, q, r)>
func.func @one_tap(%w: tensor<24x16x1xf32>, %g: tensor<8x24x14xf32>) -> tensor<8x16x14x2xf32>
    attributes {dist.view = "local"} {
  %zero = arith.constant 0.0 : f32
  %room = tensor.empty() : tensor<24x16x2xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%room : tensor<24x16x2xf32>) -> tensor<24x16x2xf32>
  %padded = tensor.insert_slice %w into %zeros[0, 0, 0] [24, 16, 1] [1, 1, 1] : tensor<24x16x1xf32> into tensor<24x16x2xf32>
  %out = tensor.empty() : tensor<8x16x14x2xf32>
  %init = linalg.fill ins(%zero : f32) outs(%out : tensor<8x16x14x2xf32>) -> tensor<8x16x14x2xf32>
  %d = linalg.generic {indexing_maps = [#kk, #gg, #dd],
      iterator_types = ["parallel", "reduction", "parallel", "parallel", "parallel"]}
      ins(%padded, %g : tensor<24x16x2xf32>, tensor<8x24x14xf32>) outs(%init : tensor<8x16x14x2xf32>) {
  ^bb0(%a: f32, %b: f32, %sum: f32):
    %0 = arith.mulf %a, %b : f32
    %1 = arith.addf %sum, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<8x16x14x2xf32>
  return %d : tensor<8x16x14x2xf32>
}

// -----

// A transposed convolution whose windows do not overlap: all phases read the same elements, so the phase is a loop of the
// weights and of the result.

// CHECK-LABEL: func.func @disjoint_windows(
// CHECK-SAME: %[[X:.*]]: tensor<8x16x7xf32>, %[[W:.*]]: tensor<24x16x2xf32>
// CHECK: rt.contraction %[[X]], %[[W]] into %{{.*}} starts [0, 1, 0] extents [8, 24, 7, 16, 2]
// CHECK-SAME: strides [112, 0, 1, 7, 0], [0, 32, 0, 2, -1], [336, 14, 2, 0, 1] overwrite
// CHECK-NOT: rt.contraction
#x = affine_map<(n, o, p, c, k) -> (n, c, p + k)>
#k = affine_map<(n, o, p, c, k) -> (o, c, k)>
#y = affine_map<(n, o, p, c, k) -> (n, o, p)>
func.func @disjoint_windows(%x: tensor<8x16x7xf32>, %w: tensor<24x16x2xf32>) -> tensor<8x24x14xf32>
    attributes {dist.view = "local"} {
  %zero = arith.constant 0.0 : f32
  %apart = tensor.expand_shape %x [[0], [1], [2, 3]] output_shape [8, 16, 7, 1] : tensor<8x16x7xf32> into tensor<8x16x7x1xf32>
  %room = tensor.empty() : tensor<8x16x7x2xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%room : tensor<8x16x7x2xf32>) -> tensor<8x16x7x2xf32>
  %spread = tensor.insert_slice %apart into %zeros[0, 0, 0, 0] [8, 16, 7, 1] [1, 1, 1, 1]
    : tensor<8x16x7x1xf32> into tensor<8x16x7x2xf32>
  %joined = tensor.collapse_shape %spread [[0], [1], [2, 3]] : tensor<8x16x7x2xf32> into tensor<8x16x14xf32>
  %dilated = tensor.extract_slice %joined[0, 0, 0] [8, 16, 13] [1, 1, 1] : tensor<8x16x14xf32> to tensor<8x16x13xf32>
  %wide = tensor.empty() : tensor<8x16x15xf32>
  %edges = linalg.fill ins(%zero : f32) outs(%wide : tensor<8x16x15xf32>) -> tensor<8x16x15xf32>
  %padded = tensor.insert_slice %dilated into %edges[0, 0, 1] [8, 16, 13] [1, 1, 1] : tensor<8x16x13xf32> into tensor<8x16x15xf32>
  %out = tensor.empty() : tensor<8x24x14xf32>
  %init = linalg.fill ins(%zero : f32) outs(%out : tensor<8x24x14xf32>) -> tensor<8x24x14xf32>
  %y = linalg.generic {indexing_maps = [#x, #k, #y], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%padded, %w : tensor<8x16x15xf32>, tensor<24x16x2xf32>) outs(%init : tensor<8x24x14xf32>) {
  ^bb0(%a: f32, %b: f32, %sum: f32):
    %0 = arith.mulf %a, %b : f32
    %1 = arith.addf %sum, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<8x24x14xf32>
  return %y : tensor<8x24x14xf32>
}
