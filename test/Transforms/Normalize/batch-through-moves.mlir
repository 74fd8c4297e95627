// RUN: tessera-opt %s --dist-normalize | FileCheck %s --check-prefix=FORM
// RUN: tessera explain %s | FileCheck %s
// RUN: tessera run %s --check

// A batch that 4 devices do not divide is merged with windows. All ops have the merged dimension as a batch, also the
// slice and the pad: they have the two dimensions instead, and nothing is sent.

dist.process_mesh @line(shape = [4], dim_names = ["s"])

#a = affine_map<(b, i, j, k) -> (b, i, k)>
#b = affine_map<(b, i, j, k) -> (b, j, k)>
#c = affine_map<(b, i, j, k) -> (b, i, j)>
#id = affine_map<(b, i, j) -> (b, i, j)>

// FORM: tensor.extract_slice {{.*}} : tensor<5x2x4x6xf32> to tensor<5x2x4x3xf32>
// FORM: tensor.extract_slice {{.*}} : tensor<5x2x4x6xf32> to tensor<5x2x4x3xf32>
// FORM: linalg.contract {{.*}} -> tensor<5x2x4x4xf32>
// FORM: tensor.pad
// FORM: tensor<5x2x4x4xf32> to tensor<5x2x4x5xf32>
// FORM-NOT: tensor.expand_shape
// CHECK: 0 bytes on the wire
func.func @main(%x: tensor<5x2x4x6xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>})
    -> (tensor<5x2x4x5xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>}) {
  %y = tensor.collapse_shape %x [[0, 1], [2], [3]] : tensor<5x2x4x6xf32> into tensor<10x4x6xf32>
  %q = tensor.extract_slice %y[0, 0, 0] [10, 4, 3] [1, 1, 1] : tensor<10x4x6xf32> to tensor<10x4x3xf32>
  %k = tensor.extract_slice %y[0, 0, 3] [10, 4, 3] [1, 1, 1] : tensor<10x4x6xf32> to tensor<10x4x3xf32>
  %zero = arith.constant dense<0.0> : tensor<10x4x4xf32>
  %s = linalg.contract indexing_maps = [#a, #b, #c] ins(%q, %k : tensor<10x4x3xf32>, tensor<10x4x3xf32>)
      outs(%zero : tensor<10x4x4xf32>) -> tensor<10x4x4xf32>
  %fill = arith.constant 2.0 : f32
  %p = tensor.pad %s low[0, 0, 1] high[0, 0, 0] {
  ^bb0(%i: index, %j: index, %l: index):
    tensor.yield %fill : f32
  } : tensor<10x4x4xf32> to tensor<10x4x5xf32>
  %r = tensor.expand_shape %p [[0, 1], [2], [3]] output_shape [5, 2, 4, 5] : tensor<10x4x5xf32> into tensor<5x2x4x5xf32>
  return %r : tensor<5x2x4x5xf32>
}
