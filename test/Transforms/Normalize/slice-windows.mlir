// RUN: tessera-opt %s --dist-normalize | FileCheck %s
// RUN: tessera run %s --function interior --check
// RUN: tessera run %s --function steps --check

// Of a convolution only what a slice takes is computed, from a smaller pad.

dist.process_mesh @line(shape = [4], dim_names = ["s"])

#x = affine_map<(d0, d1, d2) -> (d0 + d2, d1)>
#w = affine_map<(d0, d1, d2) -> (d2)>
#y = affine_map<(d0, d1, d2) -> (d0, d1)>

// CHECK: #[[STRIDE:.*]] = affine_map<(d0, d1, d2) -> (d0 * 2 + d2, d1)>
// CHECK-LABEL: func.func @interior(
// CHECK: tensor.pad %arg0 low[1, 0] high[1, 0]
// CHECK: tensor<8x3xf32> to tensor<10x3xf32>
// CHECK: linalg.generic {{.*}} ins(%{{.*}}, %arg1 : tensor<10x3xf32>, tensor<3xf32>) {{.*}}tensor<8x3xf32>
// CHECK-NOT: tensor.extract_slice
func.func @interior(%x: tensor<8x3xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>}, %w: tensor<3xf32>)
    -> (tensor<8x3xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>}) {
  %zero = arith.constant 0.0 : f32
  %p = tensor.pad %x low[2, 0] high[2, 0] {
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : f32
  } : tensor<8x3xf32> to tensor<12x3xf32>
  %init = arith.constant dense<0.5> : tensor<10x3xf32>
  %y = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%p, %w : tensor<12x3xf32>, tensor<3xf32>) outs(%init : tensor<10x3xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %0 = arith.mulf %a, %b : f32
    %1 = arith.addf %out, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<10x3xf32>
  %z = tensor.extract_slice %y[1, 0] [8, 3] [1, 1] : tensor<10x3xf32> to tensor<8x3xf32>
  return %z : tensor<8x3xf32>
}

// Every second element, spelled by reshapes, becomes a stride of the windows.
// CHECK-LABEL: func.func @steps(
// CHECK: linalg.generic {indexing_maps = [#[[STRIDE]], {{.*}} ins(%arg0, %arg1 : tensor<17x3xf32>, tensor<3xf32>)
// CHECK-NOT: tensor.extract_slice
// CHECK: return
func.func @steps(%x: tensor<17x3xf32>, %w: tensor<3xf32>) -> tensor<8x3xf32> {
  %init = arith.constant dense<0.0> : tensor<15x3xf32>
  %y = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<17x3xf32>, tensor<3xf32>) outs(%init : tensor<15x3xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %0 = arith.mulf %a, %b : f32
    %1 = arith.addf %out, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<15x3xf32>
  %zero = arith.constant 0.0 : f32
  %p = tensor.pad %y low[0, 0] high[1, 0] {
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : f32
  } : tensor<15x3xf32> to tensor<16x3xf32>
  %e = tensor.expand_shape %p [[0, 1], [2]] output_shape [8, 2, 3] : tensor<16x3xf32> into tensor<8x2x3xf32>
  %s = tensor.extract_slice %e[0, 0, 0] [8, 1, 3] [1, 1, 1] : tensor<8x2x3xf32> to tensor<8x1x3xf32>
  %z = tensor.collapse_shape %s [[0, 1], [2]] : tensor<8x1x3xf32> into tensor<8x3xf32>
  return %z : tensor<8x3xf32>
}
