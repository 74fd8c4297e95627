// RUN: tessera-opt %s --dist-normalize | FileCheck %s
// RUN: tessera-opt %s --tessera-pipeline | FileCheck %s --check-prefix=SENT
// RUN: tessera run %s --function scores --check
// RUN: tessera run %s --function grouped --check
// RUN: tessera run %s --function twice --check
// RUN: tessera run %s --function shared_init --check
// RUN: tessera run %s --function weights --check

dist.process_mesh @m(shape = [2, 2], dim_names = ["dp", "tp"])

// A batched product, as PyTorch exports it: batch and heads, both cut, are merged only for the
// product. The product iterates over both, and nothing is sent.
// CHECK-LABEL: func.func @scores(
// CHECK-NOT: tensor.collapse_shape
// CHECK: linalg.contract {{.*}} -> tensor<2x4x3x3xf32>
// CHECK-NOT: tensor.expand_shape
// SENT-LABEL: func.func @scores(
// SENT-NOT: dist.all_
// SENT: return
func.func @scores(%q: tensor<2x4x3x5xf32> {dist.sharding = #dist.sharding<@m, [shard(0), shard(1)]>},
                  %k: tensor<2x4x5x3xf32> {dist.sharding = #dist.sharding<@m, [shard(0), shard(1)]>})
    -> tensor<2x4x3x3xf32> {
  %a = tensor.collapse_shape %q [[0, 1], [2], [3]] : tensor<2x4x3x5xf32> into tensor<8x3x5xf32>
  %b = tensor.collapse_shape %k [[0, 1], [2], [3]] : tensor<2x4x5x3xf32> into tensor<8x5x3xf32>
  %zero = arith.constant dense<0.0> : tensor<8x3x3xf32>
  %p = linalg.batch_matmul ins(%a, %b : tensor<8x3x5xf32>, tensor<8x5x3xf32>) outs(%zero : tensor<8x3x3xf32>) -> tensor<8x3x3xf32>
  %y = tensor.expand_shape %p [[0, 1], [2], [3]] output_shape [2, 4, 3, 3] : tensor<8x3x3xf32> into tensor<2x4x3x3xf32>
  return %y : tensor<2x4x3x3xf32>
}

// Grouped queries: keys are merged from batch, group and repetition, queries from batch and head.
// The head is made of group and repetition, of which a cut takes the group.
// CHECK-LABEL: func.func @grouped(
// CHECK: tensor.expand_shape {{.*}} : tensor<2x4x3x8xf32> into tensor<2x2x2x3x8xf32>
// CHECK: linalg.contract {{.*}} -> tensor<2x2x2x3x3xf32>
// CHECK: tensor.collapse_shape {{.*}} : tensor<2x2x2x3x3xf32> into tensor<2x4x3x3xf32>
// SENT-LABEL: func.func @grouped(
// SENT-NOT: dist.all_
// SENT: return
func.func @grouped(%q: tensor<2x3x32xf32> {dist.sharding = #dist.sharding<@m, [shard(0), shard(2)]>},
                   %k: tensor<2x2x2x8x3xf32> {dist.sharding = #dist.sharding<@m, [shard(0), shard(1)]>})
    -> tensor<2x4x3x3xf32> {
  %heads = tensor.expand_shape %q [[0], [1], [2, 3]] output_shape [2, 3, 4, 8] : tensor<2x3x32xf32> into tensor<2x3x4x8xf32>
  %e = tensor.empty() : tensor<2x4x3x8xf32>
  %t = linalg.transpose ins(%heads : tensor<2x3x4x8xf32>) outs(%e : tensor<2x4x3x8xf32>) permutation = [0, 2, 1, 3]
  %a = tensor.collapse_shape %t [[0, 1], [2], [3]] : tensor<2x4x3x8xf32> into tensor<8x3x8xf32>
  %b = tensor.collapse_shape %k [[0, 1, 2], [3], [4]] : tensor<2x2x2x8x3xf32> into tensor<8x8x3xf32>
  %zero = arith.constant dense<0.0> : tensor<8x3x3xf32>
  %p = linalg.batch_matmul ins(%a, %b : tensor<8x3x8xf32>, tensor<8x8x3xf32>) outs(%zero : tensor<8x3x3xf32>) -> tensor<8x3x3xf32>
  %y = tensor.expand_shape %p [[0, 1], [2], [3]] output_shape [2, 4, 3, 3] : tensor<8x3x3xf32> into tensor<2x4x3x3xf32>
  return %y : tensor<2x4x3x3xf32>
}

// Two merges of one tensor, one with a dimension of extent 1, with ops of other forms in between.
// CHECK-LABEL: func.func @twice(
// CHECK-NOT: tensor.expand_shape
// CHECK: tensor.collapse_shape {{.*}} : tensor<2x1x4x3x5xf32> into tensor<2x4x3x5xf32>
// CHECK-NOT: tensor.collapse_shape
// CHECK: linalg.transpose {{.*}} permutation = [2, 3, 0, 1]
// CHECK-NOT: tensor.{{collapse|expand}}_shape
// CHECK: return
func.func @twice(%x: tensor<2x1x4x3x5xf32> {dist.sharding = #dist.sharding<@m, [shard(0), shard(2)]>}) -> tensor<3x5xf32> {
  %m = tensor.collapse_shape %x [[0, 1, 2], [3, 4]] : tensor<2x1x4x3x5xf32> into tensor<8x15xf32>
  %e = tensor.empty() : tensor<15x8xf32>
  %t = linalg.transpose ins(%m : tensor<8x15xf32>) outs(%e : tensor<15x8xf32>) permutation = [1, 0]
  %r = math.exp %t : tensor<15x8xf32>
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<15xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<15xf32>) -> tensor<15xf32>
  %s = linalg.reduce ins(%r : tensor<15x8xf32>) outs(%init : tensor<15xf32>) dimensions = [1]
    (%in: f32, %acc: f32) {
      %sum = arith.addf %in, %acc : f32
      linalg.yield %sum : f32
    }
  %y = tensor.expand_shape %s [[0, 1]] output_shape [3, 5] : tensor<15xf32> into tensor<3x5xf32>
  return %y : tensor<3x5xf32>
}

// The weights also have the merged dimension: splitting it would add as many reshapes as it
// removes, so nothing changes. Nor does it if the merged index itself is read.
// CHECK-LABEL: func.func @weights(
// CHECK: tensor.collapse_shape {{.*}} : tensor<3x2x4xf32> into tensor<3x8xf32>
// CHECK: linalg.matmul
// CHECK-LABEL: func.func @places(
// CHECK: tensor.collapse_shape
// CHECK: tensor.expand_shape
func.func @weights(%x: tensor<3x2x4xf32>, %w: tensor<8x5xf32> {dist.sharding = #dist.sharding<@m, [shard(0), replicate]>}) -> tensor<3x5xf32> {
  %m = tensor.collapse_shape %x [[0], [1, 2]] : tensor<3x2x4xf32> into tensor<3x8xf32>
  %zero = arith.constant dense<0.0> : tensor<3x5xf32>
  %y = linalg.matmul ins(%m, %w : tensor<3x8xf32>, tensor<8x5xf32>) outs(%zero : tensor<3x5xf32>) -> tensor<3x5xf32>
  return %y : tensor<3x5xf32>
}

func.func @places(%x: tensor<2x4xf32> {dist.sharding = #dist.sharding<@m, [shard(0), shard(1)]>}) -> tensor<2x4xf32> {
  %m = tensor.collapse_shape %x [[0, 1]] : tensor<2x4xf32> into tensor<8xf32>
  %e = tensor.empty() : tensor<8xf32>
  %p = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%m : tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%in: f32, %out: f32):
    %i = linalg.index 0 : index
    %int = arith.index_cast %i : index to i32
    %f = arith.sitofp %int : i32 to f32
    %s = arith.addf %in, %f : f32
    linalg.yield %s : f32
  } -> tensor<8xf32>
  %y = tensor.expand_shape %p [[0, 1]] output_shape [2, 4] : tensor<8xf32> into tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}

// Rows are a batch and a position, 2 x 12 = 24, and there are as many features: the transposed weight has the init of the
// sum, whose other dimension is not merged.
// CHECK-LABEL: func.func @shared_init(
// CHECK-NOT: tensor<24x2x12
// CHECK: linalg.transpose ins({{.*}} : tensor<24x24xf32>) outs({{.*}} : tensor<24x24xf32>)
// CHECK: linalg.contract {{.*}} -> tensor<2x12x24xf32>
// CHECK: arith.addf
// CHECK: return {{.*}} : tensor<2x12x24xf32>
func.func @shared_init(%x: tensor<2x12x4x6xf32>, %w: tensor<24x24xf32>, %bias: tensor<24xf32>) -> tensor<2x12x24xf32> {
  %rows = tensor.collapse_shape %x [[0, 1], [2, 3]] : tensor<2x12x4x6xf32> into tensor<24x24xf32>
  %empty = tensor.empty() : tensor<24x24xf32>
  %transposed = linalg.transpose ins(%w : tensor<24x24xf32>) outs(%empty : tensor<24x24xf32>) permutation = [1, 0]
  %zero = arith.constant dense<0.0> : tensor<24x24xf32>
  %product = linalg.matmul ins(%rows, %transposed : tensor<24x24xf32>, tensor<24x24xf32>) outs(%zero : tensor<24x24xf32>) -> tensor<24x24xf32>
  %sum = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>],
                         iterator_types = ["parallel", "parallel"]}
      ins(%product, %bias : tensor<24x24xf32>, tensor<24xf32>) outs(%empty : tensor<24x24xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %s = arith.addf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<24x24xf32>
  %result = tensor.expand_shape %sum [[0, 1], [2]] output_shape [2, 12, 24] : tensor<24x24xf32> into tensor<2x12x24xf32>
  return %result : tensor<2x12x24xf32>
}
