// RUN: tessera-opt %s --dist-normalize | FileCheck %s

// Consecutive moves along one dimension become one op, with segments of their operands.

dist.process_mesh @line(shape = [4], dim_names = ["s"])

// CHECK-LABEL: func.func @roll(
// CHECK: dist.rearrange %arg0, %arg0 dim = 0 segments = [6, 1, 0, 1, 2, 0, 1, 2, 1, 6] : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
// CHECK-NEXT: return
func.func @roll(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %a = tensor.extract_slice %x[6, 0] [2, 4] [1, 1] : tensor<8x4xf32> to tensor<2x4xf32>
  %b = tensor.extract_slice %x[0, 0] [6, 4] [1, 1] : tensor<8x4xf32> to tensor<6x4xf32>
  %y = tensor.concat dim(0) %a, %b : (tensor<2x4xf32>, tensor<6x4xf32>) -> tensor<8x4xf32>
  return %y : tensor<8x4xf32>
}

// Elements outside of all segments are constants.
// CHECK-LABEL: func.func @shift(
// CHECK: dist.rearrange %arg0 dim = 0 segments = [0, 1, 1, 1, 7] fill = 0.000000e+00 : f32 : (tensor<8x4xf32>) -> tensor<8x4xf32>
func.func @shift(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %zero = arith.constant dense<0.0> : tensor<1x4xf32>
  %b = tensor.extract_slice %x[0, 0] [7, 4] [1, 1] : tensor<8x4xf32> to tensor<7x4xf32>
  %y = tensor.concat dim(0) %zero, %b : (tensor<1x4xf32>, tensor<7x4xf32>) -> tensor<8x4xf32>
  return %y : tensor<8x4xf32>
}

// CHECK-LABEL: func.func @slice_of_pad(
// CHECK: dist.rearrange %arg0 dim = 0 segments = [0, 1, 3, 1, 5] fill = 2.000000e+00 : f32 : (tensor<8x4xf32>) -> tensor<8x4xf32>
func.func @slice_of_pad(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %two = arith.constant 2.0 : f32
  %p = tensor.pad %x low[3, 0] high[1, 0] {
  ^bb0(%i: index, %j: index):
    tensor.yield %two : f32
  } : tensor<8x4xf32> to tensor<12x4xf32>
  %y = tensor.extract_slice %p[0, 0] [8, 4] [1, 1] : tensor<12x4xf32> to tensor<8x4xf32>
  return %y : tensor<8x4xf32>
}

// CHECK-LABEL: func.func @every_third_reversed(
// CHECK: dist.rearrange %arg0 dim = 0 segments = [1, 3, 2, -1, 3] : (tensor<8x4xf32>) -> tensor<3x4xf32>
func.func @every_third_reversed(%x: tensor<8x4xf32>) -> tensor<3x4xf32> {
  %init = tensor.empty() : tensor<8x4xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (-d0 + 7, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<8x4xf32>) outs(%init : tensor<8x4xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<8x4xf32>
  %y = tensor.extract_slice %r[0, 0] [3, 4] [3, 1] : tensor<8x4xf32> to tensor<3x4xf32>
  return %y : tensor<3x4xf32>
}

// Two reversals cancel.
// CHECK-LABEL: func.func @twice(
// CHECK: return %arg0
func.func @twice(%x: tensor<8xf32>) -> tensor<8xf32> {
  %init = tensor.empty() : tensor<8xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(d0) -> (-d0 + 7)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
      ins(%x : tensor<8xf32>) outs(%init : tensor<8xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<8xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(d0) -> (-d0 + 7)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
      ins(%r : tensor<8xf32>) outs(%init : tensor<8xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<8xf32>
  return %y : tensor<8xf32>
}

// Moves along two dimensions, and single moves, stay.
// CHECK-LABEL: func.func @alone(
// CHECK-NOT: dist.rearrange
func.func @alone(%x: tensor<8x4xf32>) -> tensor<3x8xf32> {
  %a = tensor.extract_slice %x[1, 0] [3, 4] [1, 1] : tensor<8x4xf32> to tensor<3x4xf32>
  %y = tensor.concat dim(1) %a, %a : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x8xf32>
  return %y : tensor<3x8xf32>
}

// The derivative of a roll: each part returns to its position.
// CHECK-LABEL: func.func @unroll(
// CHECK: dist.rearrange %arg0, %arg0 dim = 0 segments = [1, 1, 0, 1, 7, 0, 1, 7, 1, 1] : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
func.func @unroll(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %zero = arith.constant 0.0 : f32
  %a = tensor.extract_slice %x[1, 0] [7, 4] [1, 1] : tensor<8x4xf32> to tensor<7x4xf32>
  %b = tensor.extract_slice %x[0, 0] [1, 4] [1, 1] : tensor<8x4xf32> to tensor<1x4xf32>
  %p = tensor.pad %a low[0, 0] high[1, 0] {
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : f32
  } : tensor<7x4xf32> to tensor<8x4xf32>
  %q = tensor.pad %b low[7, 0] high[0, 0] {
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : f32
  } : tensor<1x4xf32> to tensor<8x4xf32>
  %y = arith.addf %p, %q : tensor<8x4xf32>
  return %y : tensor<8x4xf32>
}

// Adjacent parts, and parts beside ones, are added.
// CHECK-LABEL: func.func @overlapping_sums(
// CHECK: linalg.generic
// CHECK: arith.addf
// CHECK: linalg.generic
// CHECK: arith.addf
func.func @overlapping_sums(%x: tensor<4xf32>, %z: tensor<4xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %p = tensor.pad %x low[0] high[4] {
  ^bb0(%i: index):
    tensor.yield %zero : f32
  } : tensor<4xf32> to tensor<8xf32>
  %q = tensor.pad %z low[3] high[1] {
  ^bb0(%i: index):
    tensor.yield %zero : f32
  } : tensor<4xf32> to tensor<8xf32>
  %r = tensor.pad %x low[0] high[4] {
  ^bb0(%i: index):
    tensor.yield %one : f32
  } : tensor<4xf32> to tensor<8xf32>
  %s = tensor.pad %z low[4] high[0] {
  ^bb0(%i: index):
    tensor.yield %zero : f32
  } : tensor<4xf32> to tensor<8xf32>
  %y = arith.addf %p, %q : tensor<8xf32>
  %t = arith.addf %r, %s : tensor<8xf32>
  return %y, %t : tensor<8xf32>, tensor<8xf32>
}
