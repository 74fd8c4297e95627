// RUN: tessera explain %s --function even | FileCheck %s --check-prefix=EVEN
// RUN: tessera explain %s --function uneven | FileCheck %s --check-prefix=UNEVEN
// RUN: tessera run %s --function even --check
// RUN: tessera run %s --function uneven --check
// RUN: tessera run %s --function reversed --check

// A transposed convolution is a convolution of elements with zeros between them. A device needs a
// row of each neighbor, 4 x 2 elements of 4 bytes; zeros are not sent.

dist.process_mesh @line(shape = [4], dim_names = ["s"])

// EVEN: exchange {{.*}} 64 on the wire
// EVEN: total: 1 collective, 64 bytes on the wire
func.func @even(%x: tensor<16x4x2xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>}, %w: tensor<4x4x2x3xf32>)
    -> (tensor<32x8x3xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>}) {
  %zero = arith.constant 0.0 : f32
  %none = arith.constant dense<0.0> : tensor<31x4x2xf32>
  %rows = tensor.insert_slice %x into %none[0, 0, 0] [16, 4, 2] [2, 1, 1] : tensor<16x4x2xf32> into tensor<31x4x2xf32>
  %gaps = arith.constant dense<0.0> : tensor<31x7x2xf32>
  %both = tensor.insert_slice %rows into %gaps[0, 0, 0] [31, 4, 2] [1, 2, 1] : tensor<31x4x2xf32> into tensor<31x7x2xf32>
  %p = tensor.pad %both low[2, 2, 0] high[2, 2, 0] {
  ^bb0(%i: index, %j: index, %k: index):
    tensor.yield %zero : f32
  } : tensor<31x7x2xf32> to tensor<35x11x2xf32>
  %init = arith.constant dense<0.0> : tensor<32x8x3xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(h, w, o, a, b, c) -> (h + a, w + b, c)>,
                                        affine_map<(h, w, o, a, b, c) -> (a, b, c, o)>,
                                        affine_map<(h, w, o, a, b, c) -> (h, w, o)>],
                       iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%p, %w : tensor<35x11x2xf32>, tensor<4x4x2x3xf32>) outs(%init : tensor<32x8x3xf32>) {
  ^bb0(%a: f32, %b: f32, %acc: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %acc, %m : f32
    linalg.yield %s : f32
  } -> tensor<32x8x3xf32>
  return %y : tensor<32x8x3xf32>
}

// 13 rows are 4, 4, 4 and 1, and 26 are 7, 7, 7 and 5: the last device needs rows 10 to 12 and has
// row 12; 8 elements of 4 bytes each.
// UNEVEN: total: 1 collective, 64 bytes on the wire
func.func @uneven(%x: tensor<13x8xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>}, %w: tensor<4xf32>)
    -> (tensor<26x8xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>}) {
  %none = arith.constant dense<0.0> : tensor<27x8xf32>
  %gaps = tensor.insert_slice %x into %none[1, 0] [13, 8] [2, 1] : tensor<13x8xf32> into tensor<27x8xf32>
  %zero = arith.constant 0.0 : f32
  %p = tensor.pad %gaps low[1, 0] high[1, 0] {
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : f32
  } : tensor<27x8xf32> to tensor<29x8xf32>
  %init = arith.constant dense<0.0> : tensor<26x8xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(h, w, a) -> (h + a, w)>, affine_map<(h, w, a) -> (a)>,
                                        affine_map<(h, w, a) -> (h, w)>],
                       iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%p, %w : tensor<29x8xf32>, tensor<4xf32>) outs(%init : tensor<26x8xf32>) {
  ^bb0(%a: f32, %b: f32, %acc: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %acc, %m : f32
    linalg.yield %s : f32
  } -> tensor<26x8xf32>
  return %y : tensor<26x8xf32>
}

// Rows in reverse order, with a border.
func.func @reversed(%x: tensor<14x3xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>}, %w: tensor<3xf32>)
    -> (tensor<27x3xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>}) {
  %e = tensor.empty() : tensor<14x3xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(h, w) -> (13 - h, w)>, affine_map<(h, w) -> (h, w)>],
                       iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<14x3xf32>) outs(%e : tensor<14x3xf32>) {
  ^bb0(%a: f32, %out: f32):
    linalg.yield %a : f32
  } -> tensor<14x3xf32>
  %none = arith.constant dense<0.0> : tensor<29x3xf32>
  %p = tensor.insert_slice %r into %none[1, 0] [14, 3] [2, 1] : tensor<14x3xf32> into tensor<29x3xf32>
  %init = arith.constant dense<0.0> : tensor<27x3xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(h, w, a) -> (h + a, w)>, affine_map<(h, w, a) -> (a)>,
                                        affine_map<(h, w, a) -> (h, w)>],
                       iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%p, %w : tensor<29x3xf32>, tensor<3xf32>) outs(%init : tensor<27x3xf32>) {
  ^bb0(%a: f32, %b: f32, %acc: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %acc, %m : f32
    linalg.yield %s : f32
  } -> tensor<27x3xf32>
  return %y : tensor<27x3xf32>
}
