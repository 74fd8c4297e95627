// RUN: tessera explain %s --function folded --objective bytes | FileCheck %s --check-prefix=FOLDED
// RUN: tessera run %s --function folded --check
// RUN: tessera explain %s --function widened --objective bytes | FileCheck %s --check-prefix=WIDENED
// RUN: tessera run %s --function widened --check
// RUN: tessera explain %s --function costly --objective bytes | FileCheck %s --check-prefix=COSTLY
// RUN: tessera run %s --function costly --check
// RUN: tessera-opt %s --tessera-pipeline="compile-to=planned" | FileCheck %s

// Windows of computed values are computed where that sends less than moving them.
dist.process_mesh @line(shape = [4], dim_names = ["s"])

#rows = affine_map<(i, j) -> (i, j)>
#window = affine_map<(i, j, k) -> (i + k, j)>
#taps = affine_map<(i, j, k) -> (k)>
#result = affine_map<(i, j, k) -> (i, j)>
#left = affine_map<(i, j, k) -> (i, k)>
#right = affine_map<(i, j, k) -> (k, j)>

// The derivative of a border that is reflected: 34 rows, of which the outer two are added to others.
// Two rows are sent, as for the 32 rows inside. The outer ones are computed where they are added.
// FOLDED: total: 1 collective, 32 bytes on the wire
// CHECK-LABEL: func.func @folded(
// CHECK: linalg.generic {{.*}}windows = [(0, 8, 0, 8, 1, 1, 1, 32)]
func.func @folded(%t: tensor<32x4xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>}, %w: tensor<3xf32>)
    -> (tensor<32x4xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>}) {
  %zero = arith.constant 0.0 : f32
  %p = tensor.pad %t low[2, 0] high[2, 0] {
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : f32
  } : tensor<32x4xf32> to tensor<36x4xf32>
  %init = arith.constant dense<0.0> : tensor<34x4xf32>
  %c = linalg.generic {indexing_maps = [#window, #taps, #result], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%p, %w : tensor<36x4xf32>, tensor<3xf32>) outs(%init : tensor<34x4xf32>) {
  ^bb0(%a: f32, %b: f32, %sum: f32):
    %product = arith.mulf %a, %b : f32
    %next = arith.addf %sum, %product : f32
    linalg.yield %next : f32
  } -> tensor<34x4xf32>
  %inner = tensor.extract_slice %c[1, 0] [32, 4] [1, 1] : tensor<34x4xf32> to tensor<32x4xf32>
  %first = tensor.extract_slice %c[0, 0] [1, 4] [1, 1] : tensor<34x4xf32> to tensor<1x4xf32>
  %last = tensor.extract_slice %c[33, 0] [1, 4] [1, 1] : tensor<34x4xf32> to tensor<1x4xf32>
  %low = tensor.pad %first low[1, 0] high[30, 0] {
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : f32
  } : tensor<1x4xf32> to tensor<32x4xf32>
  %high = tensor.pad %last low[30, 0] high[1, 0] {
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : f32
  } : tensor<1x4xf32> to tensor<32x4xf32>
  %some = arith.addf %inner, %low : tensor<32x4xf32>
  %all = arith.addf %some, %high : tensor<32x4xf32>
  return %all : tensor<32x4xf32>
}

// Rows become wider before their neighbors are read: the narrow ones are sent. What is beyond the
// ends is zero, not what is computed there.
// WIDENED: total: {{.*}}, 32 bytes on the wire
// CHECK-LABEL: func.func @widened(
// CHECK: linalg.generic {{.*}}windows = [(0, 8, -1, 10)]
func.func @widened(%x: tensor<32x4xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>},
                   %v: tensor<4x8xf32>, %w: tensor<3xf32>)
    -> (tensor<32x8xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>}) {
  %zero = arith.constant 0.0 : f32
  %init = arith.constant dense<0.0> : tensor<32x8xf32>
  %wide = linalg.generic {indexing_maps = [#left, #right, #result], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %v : tensor<32x4xf32>, tensor<4x8xf32>) outs(%init : tensor<32x8xf32>) {
  ^bb0(%a: f32, %b: f32, %sum: f32):
    %product = arith.mulf %a, %b : f32
    %next = arith.addf %sum, %product : f32
    linalg.yield %next : f32
  } -> tensor<32x8xf32>
  %exp = math.exp %wide : tensor<32x8xf32>
  %p = tensor.pad %exp low[1, 0] high[1, 0] {
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : f32
  } : tensor<32x8xf32> to tensor<34x8xf32>
  %c = linalg.generic {indexing_maps = [#window, #taps, #result], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%p, %w : tensor<34x8xf32>, tensor<3xf32>) outs(%init : tensor<32x8xf32>) {
  ^bb0(%a: f32, %b: f32, %sum: f32):
    %product = arith.mulf %a, %b : f32
    %next = arith.addf %sum, %product : f32
    linalg.yield %next : f32
  } -> tensor<32x8xf32>
  return %c : tensor<32x8xf32>
}

// A product takes longer than sending its rows.
// COSTLY: total: {{.*}}, 1032 bytes on the wire
func.func @costly(%x: tensor<32x128xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>},
                  %v: tensor<128x129xf32>, %w: tensor<3xf32>)
    -> (tensor<30x129xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>}) {
  %wide0 = arith.constant dense<0.0> : tensor<32x129xf32>
  %wide = linalg.matmul ins(%x, %v : tensor<32x128xf32>, tensor<128x129xf32>) outs(%wide0 : tensor<32x129xf32>) -> tensor<32x129xf32>
  %init = arith.constant dense<0.0> : tensor<30x129xf32>
  %c = linalg.generic {indexing_maps = [#window, #taps, #result], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%wide, %w : tensor<32x129xf32>, tensor<3xf32>) outs(%init : tensor<30x129xf32>) {
  ^bb0(%a: f32, %b: f32, %sum: f32):
    %product = arith.mulf %a, %b : f32
    %next = arith.addf %sum, %product : f32
    linalg.yield %next : f32
  } -> tensor<30x129xf32>
  return %c : tensor<30x129xf32>
}
