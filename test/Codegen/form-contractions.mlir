// RUN: tessera-opt %s --codegen-form-contractions --split-input-file | FileCheck %s
//
// Convolutions and their derivatives are accessed with strides.

// CHECK-LABEL: func.func @forward(
// CHECK-SAME: %[[X:.*]]: tensor<2x16x11x9xf32>, %[[W:.*]]: tensor<24x16x3x3xf32>, %[[Z:.*]]: tensor<2x24x5x7xf32>
// CHECK: %[[Y:.*]] = rt.contraction %[[X]], %[[W]] into %[[Z]] starts [0, 0, 0] extents [2, 24, 5, 7, 16, 3, 3]
// CHECK-SAME: strides [1584, 0, 18, 1, 99, 9, 1], [0, 144, 0, 0, 9, 3, 1], [840, 35, 7, 1, 0, 0, 0]
// CHECK: return %[[Y]]
#x = affine_map<(n, o, h, w, c, i, j) -> (n, c, h * 2 + i, w + j)>
#k = affine_map<(n, o, h, w, c, i, j) -> (o, c, i, j)>
#y = affine_map<(n, o, h, w, c, i, j) -> (n, o, h, w)>
func.func @forward(%x: tensor<2x16x11x9xf32>, %w: tensor<24x16x3x3xf32>, %zero: tensor<2x24x5x7xf32>) -> tensor<2x24x5x7xf32>
    attributes {dist.view = "local"} {
  %y = linalg.generic {indexing_maps = [#x, #k, #y],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%x, %w : tensor<2x16x11x9xf32>, tensor<24x16x3x3xf32>) outs(%zero : tensor<2x24x5x7xf32>) {
  ^bb0(%a: f32, %b: f32, %sum: f32):
    %0 = arith.mulf %a, %b : f32
    %1 = arith.addf %sum, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<2x24x5x7xf32>
  return %y : tensor<2x24x5x7xf32>
}

// -----

// A kernel that is flipped and transposed first is accessed with negative strides; 16-bit floats are extended inside.

// CHECK-LABEL: func.func @flipped(
// CHECK-SAME: %[[G:.*]]: tensor<8x24x13xbf16>, %[[W:.*]]: tensor<24x16x3xbf16>, %[[Z:.*]]: tensor<8x16x11xf32>
// CHECK: rt.contraction %[[G]], %[[W]] into %[[Z]] starts [0, 2, 0] extents [8, 16, 11, 24, 3]
// CHECK-SAME: strides [312, 0, 1, 13, 1], [0, 3, 0, 48, -1], [176, 11, 1, 0, 0]
#flip = affine_map<(c, o, j) -> (o, c, -j + 2)>
#id = affine_map<(c, o, j) -> (c, o, j)>
#g = affine_map<(n, c, w, o, j) -> (n, o, w + j)>
#k = affine_map<(n, c, w, o, j) -> (c, o, j)>
#d = affine_map<(n, c, w, o, j) -> (n, c, w)>
func.func @flipped(%g: tensor<8x24x13xbf16>, %w: tensor<24x16x3xbf16>, %zero: tensor<8x16x11xf32>) -> tensor<8x16x11xf32>
    attributes {dist.view = "local"} {
  %empty = tensor.empty() : tensor<16x24x3xbf16>
  %f = linalg.generic {indexing_maps = [#flip, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%w : tensor<24x16x3xbf16>) outs(%empty : tensor<16x24x3xbf16>) {
  ^bb0(%a: bf16, %b: bf16):
    linalg.yield %a : bf16
  } -> tensor<16x24x3xbf16>
  %y = linalg.generic {indexing_maps = [#g, #k, #d],
      iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%g, %f : tensor<8x24x13xbf16>, tensor<16x24x3xbf16>) outs(%zero : tensor<8x16x11xf32>) {
  ^bb0(%a: bf16, %b: bf16, %sum: f32):
    %0 = arith.extf %a : bf16 to f32
    %1 = arith.extf %b : bf16 to f32
    %2 = arith.mulf %0, %1 : f32
    %3 = arith.addf %sum, %2 : f32
    linalg.yield %3 : f32
  } -> tensor<8x16x11xf32>
  return %y : tensor<8x16x11xf32>
}

// -----

// Depthwise: one row, for which a kernel is faster.

// CHECK-LABEL: func.func @depthwise(
// CHECK-NOT: rt.contraction
#x = affine_map<(n, c, w, j) -> (n, c, w + j)>
#k = affine_map<(n, c, w, j) -> (c, j)>
#y = affine_map<(n, c, w, j) -> (n, c, w)>
func.func @depthwise(%x: tensor<2x512x66xf32>, %w: tensor<512x3xf32>, %zero: tensor<2x512x64xf32>) -> tensor<2x512x64xf32>
    attributes {dist.view = "local"} {
  %y = linalg.generic {indexing_maps = [#x, #k, #y], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<2x512x66xf32>, tensor<512x3xf32>) outs(%zero : tensor<2x512x64xf32>) {
  ^bb0(%a: f32, %b: f32, %sum: f32):
    %0 = arith.mulf %a, %b : f32
    %1 = arith.addf %sum, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<2x512x64xf32>
  return %y : tensor<2x512x64xf32>
}

// -----

// A 1 x 1 convolution of small images is one product of all images, of larger ones one per image.

// CHECK-LABEL: func.func @small_images(
// CHECK: rt.contraction %{{.*}} extents [8, 96, 4, 64] strides [256, 0, 1, 4], [0, 64, 0, 1], [384, 4, 1, 0]
// CHECK-NOT: linalg.generic
// CHECK-LABEL: func.func @larger_images(
// CHECK-NOT: rt.contraction
// CHECK: linalg.generic
#x = affine_map<(n, o, p, c) -> (n, c, p)>
#k = affine_map<(n, o, p, c) -> (o, c)>
#y = affine_map<(n, o, p, c) -> (n, o, p)>
func.func @small_images(%x: tensor<8x64x4xf32>, %w: tensor<96x64xf32>, %zero: tensor<8x96x4xf32>) -> tensor<8x96x4xf32>
    attributes {dist.view = "local"} {
  %y = linalg.generic {indexing_maps = [#x, #k, #y], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<8x64x4xf32>, tensor<96x64xf32>) outs(%zero : tensor<8x96x4xf32>) {
  ^bb0(%a: f32, %b: f32, %sum: f32):
    %0 = arith.mulf %a, %b : f32
    %1 = arith.addf %sum, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<8x96x4xf32>
  return %y : tensor<8x96x4xf32>
}

func.func @larger_images(%x: tensor<8x64x100xf32>, %w: tensor<96x64xf32>, %zero: tensor<8x96x100xf32>) -> tensor<8x96x100xf32>
    attributes {dist.view = "local"} {
  %y = linalg.generic {indexing_maps = [#x, #k, #y], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<8x64x100xf32>, tensor<96x64xf32>) outs(%zero : tensor<8x96x100xf32>) {
  ^bb0(%a: f32, %b: f32, %sum: f32):
    %0 = arith.mulf %a, %b : f32
    %1 = arith.addf %sum, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<8x96x100xf32>
  return %y : tensor<8x96x100xf32>
}

// -----

// A convolution of few pixels or summands is a product where it has many terms, and a kernel where it has few.

// CHECK-LABEL: func.func @few_pixels(
// CHECK: rt.contraction %{{.*}} extents [2, 128, 2, 2, 256, 3, 3]
// CHECK-LABEL: func.func @few_terms(
// CHECK-NOT: rt.contraction
// CHECK: linalg.generic
// CHECK-LABEL: func.func @few_summands(
// CHECK: rt.contraction %{{.*}} extents [64, 256, 3, 3, 2, 2, 2]
#x = affine_map<(n, o, y, x, c, i, j) -> (n, c, y + i, x + j)>
#w = affine_map<(n, o, y, x, c, i, j) -> (o, c, i, j)>
#y = affine_map<(n, o, y, x, c, i, j) -> (n, o, y, x)>
func.func @few_pixels(%x: tensor<2x256x4x4xf32>, %w: tensor<128x256x3x3xf32>, %zero: tensor<2x128x2x2xf32>) -> tensor<2x128x2x2xf32>
    attributes {dist.view = "local"} {
  %y = linalg.generic {indexing_maps = [#x, #w, #y],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%x, %w : tensor<2x256x4x4xf32>, tensor<128x256x3x3xf32>) outs(%zero : tensor<2x128x2x2xf32>) {
  ^bb0(%a: f32, %b: f32, %sum: f32):
    %0 = arith.mulf %a, %b : f32
    %1 = arith.addf %sum, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<2x128x2x2xf32>
  return %y : tensor<2x128x2x2xf32>
}

func.func @few_terms(%x: tensor<2x16x4x4xf32>, %w: tensor<16x16x3x3xf32>, %zero: tensor<2x16x2x2xf32>) -> tensor<2x16x2x2xf32>
    attributes {dist.view = "local"} {
  %y = linalg.generic {indexing_maps = [#x, #w, #y],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%x, %w : tensor<2x16x4x4xf32>, tensor<16x16x3x3xf32>) outs(%zero : tensor<2x16x2x2xf32>) {
  ^bb0(%a: f32, %b: f32, %sum: f32):
    %0 = arith.mulf %a, %b : f32
    %1 = arith.addf %sum, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<2x16x2x2xf32>
  return %y : tensor<2x16x2x2xf32>
}

#in = affine_map<(c, o, i, j, n, y, x) -> (n, c, y + i, x + j)>
#out = affine_map<(c, o, i, j, n, y, x) -> (n, o, y, x)>
#weight = affine_map<(c, o, i, j, n, y, x) -> (o, c, i, j)>
func.func @few_summands(%x: tensor<2x64x4x4xf32>, %g: tensor<2x256x2x2xf32>, %zero: tensor<256x64x3x3xf32>) -> tensor<256x64x3x3xf32>
    attributes {dist.view = "local"} {
  %y = linalg.generic {indexing_maps = [#in, #out, #weight],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%x, %g : tensor<2x64x4x4xf32>, tensor<2x256x2x2xf32>) outs(%zero : tensor<256x64x3x3xf32>) {
  ^bb0(%a: f32, %b: f32, %sum: f32):
    %0 = arith.mulf %a, %b : f32
    %1 = arith.addf %sum, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<256x64x3x3xf32>
  return %y : tensor<256x64x3x3xf32>
}

// -----

// Where an operand reads its padding a product may be left out: the image begins at 1 and has 4 rows and 5 columns. Of a
// slice of the result only its own rows count.

// CHECK-LABEL: func.func @padded(
// CHECK: rt.contraction {{.*}} extents [8, 32, 4, 5, 16, 3, 3]
// CHECK-SAME: rt.within = array<i64: 1, 5, 0, 0, 1, 0, 0, 1, 0, 1, 6, 0, 0, 0, 1, 0, 0, 1>
// CHECK-LABEL: func.func @sliced(
// CHECK: rt.contraction {{.*}} extents [8, 32, 2, 5, 16, 3, 3]
// CHECK-SAME: rt.within = array<i64: -1, 3, 0, 0, 1, 0, 0, 1, 0, 1, 6, 0, 0, 0, 1, 0, 0, 1>
// CHECK-LABEL: func.func @ones(
// CHECK: rt.contraction
// CHECK-NOT: within
#x = affine_map<(n, o, h, w, c, i, j) -> (n, c, h + i, w + j)>
#k = affine_map<(n, o, h, w, c, i, j) -> (o, c, i, j)>
#y = affine_map<(n, o, h, w, c, i, j) -> (n, o, h, w)>
func.func @padded(%x: tensor<8x16x4x5xf32>, %w: tensor<32x16x3x3xf32>, %init: tensor<8x32x4x5xf32>) -> tensor<8x32x4x5xf32>
    attributes {dist.view = "local"} {
  %0 = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<8x16x6x7xf32>
  %frame = linalg.fill ins(%0 : f32) outs(%empty : tensor<8x16x6x7xf32>) -> tensor<8x16x6x7xf32>
  %p = tensor.insert_slice %x into %frame[0, 0, 1, 1] [8, 16, 4, 5] [1, 1, 1, 1] : tensor<8x16x4x5xf32> into tensor<8x16x6x7xf32>
  %y = linalg.generic {indexing_maps = [#x, #k, #y],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%p, %w : tensor<8x16x6x7xf32>, tensor<32x16x3x3xf32>) outs(%init : tensor<8x32x4x5xf32>) {
  ^bb0(%a: f32, %b: f32, %sum: f32):
    %1 = arith.mulf %a, %b : f32
    %2 = arith.addf %sum, %1 : f32
    linalg.yield %2 : f32
  } -> tensor<8x32x4x5xf32>
  return %y : tensor<8x32x4x5xf32>
}

func.func @sliced(%x: tensor<8x16x4x5xf32>, %w: tensor<32x16x3x3xf32>, %init: tensor<8x32x4x5xf32>) -> tensor<8x32x2x5xf32>
    attributes {dist.view = "local"} {
  %0 = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<8x16x6x7xf32>
  %frame = linalg.fill ins(%0 : f32) outs(%empty : tensor<8x16x6x7xf32>) -> tensor<8x16x6x7xf32>
  %p = tensor.insert_slice %x into %frame[0, 0, 1, 1] [8, 16, 4, 5] [1, 1, 1, 1] : tensor<8x16x4x5xf32> into tensor<8x16x6x7xf32>
  %y = linalg.generic {indexing_maps = [#x, #k, #y],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%p, %w : tensor<8x16x6x7xf32>, tensor<32x16x3x3xf32>) outs(%init : tensor<8x32x4x5xf32>) {
  ^bb0(%a: f32, %b: f32, %sum: f32):
    %1 = arith.mulf %a, %b : f32
    %2 = arith.addf %sum, %1 : f32
    linalg.yield %2 : f32
  } -> tensor<8x32x4x5xf32>
  %s = tensor.extract_slice %y[0, 0, 2, 0] [8, 32, 2, 5] [1, 1, 1, 1] : tensor<8x32x4x5xf32> to tensor<8x32x2x5xf32>
  return %s : tensor<8x32x2x5xf32>
}

func.func @ones(%x: tensor<8x16x4x5xf32>, %w: tensor<32x16x3x3xf32>, %init: tensor<8x32x4x5xf32>) -> tensor<8x32x4x5xf32>
    attributes {dist.view = "local"} {
  %0 = arith.constant 1.0 : f32
  %empty = tensor.empty() : tensor<8x16x6x7xf32>
  %frame = linalg.fill ins(%0 : f32) outs(%empty : tensor<8x16x6x7xf32>) -> tensor<8x16x6x7xf32>
  %p = tensor.insert_slice %x into %frame[0, 0, 1, 1] [8, 16, 4, 5] [1, 1, 1, 1] : tensor<8x16x4x5xf32> into tensor<8x16x6x7xf32>
  %y = linalg.generic {indexing_maps = [#x, #k, #y],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%p, %w : tensor<8x16x6x7xf32>, tensor<32x16x3x3xf32>) outs(%init : tensor<8x32x4x5xf32>) {
  ^bb0(%a: f32, %b: f32, %sum: f32):
    %1 = arith.mulf %a, %b : f32
    %2 = arith.addf %sum, %1 : f32
    linalg.yield %2 : f32
  } -> tensor<8x32x4x5xf32>
  return %y : tensor<8x32x4x5xf32>
}
