// RUN: tessera-opt %s --dist-normalize | FileCheck %s
// RUN: tessera-opt %s --tessera-pipeline="compile-to=planned" | FileCheck %s --check-prefix=PLANNED
// RUN: tessera-opt %s --tessera-pipeline --interpret -o /dev/null

dist.process_mesh @m(shape = [4], dim_names = ["d"])

// Only what is divided otherwise is merged: the first dimension is not, so that the second one may stay cut.
// CHECK-LABEL: func.func @main(
// CHECK: tensor.collapse_shape %{{.*}} {{\[\[}}0], [1, 2]] : tensor<6x12x8xf32> into tensor<6x96xf32>
// CHECK: tensor.expand_shape %{{.*}} {{\[\[}}0], [1, 2]] output_shape [6, 8, 12] : tensor<6x96xf32> into tensor<6x8x12xf32>
// PLANNED-LABEL: func.func @main(
// PLANNED-NOT: dist.reshard
func.func @main(%x: tensor<6x12x8xf32> {dist.sharding = #dist.sharding<@m, [shard(1)]>})
    -> (tensor<6x8x12xf32> {dist.sharding = #dist.sharding<@m, [shard(1)]>}) {
  %0 = tensor.collapse_shape %x [[0, 1, 2]] : tensor<6x12x8xf32> into tensor<576xf32>
  %1 = tensor.expand_shape %0 [[0, 1, 2]] output_shape [6, 8, 12] : tensor<576xf32> into tensor<6x8x12xf32>
  return %1 : tensor<6x8x12xf32>
}

// What both only merge is divided first: nothing of the first dimension is merged with the others, which may be cut.
// CHECK-LABEL: func.func @groups(
// CHECK: tensor.expand_shape %{{.*}} {{\[\[}}0, 1], [2], [3]] output_shape [2, 4, 8, 3] : tensor<8x8x3xf32> into tensor<2x4x8x3xf32>
// CHECK: tensor.collapse_shape %{{.*}} {{\[\[}}0], [1, 2, 3]] : tensor<2x4x8x3xf32> into tensor<2x96xf32>
// CHECK-NEXT: return
func.func @groups(%x: tensor<8x8x3xf32>) -> tensor<2x96xf32> {
  %0 = tensor.collapse_shape %x [[0, 1, 2]] : tensor<8x8x3xf32> into tensor<192xf32>
  %1 = tensor.expand_shape %0 [[0, 1]] output_shape [2, 96] : tensor<192xf32> into tensor<2x96xf32>
  return %1 : tensor<2x96xf32>
}

// Dimensions of one element stay where they are.
// CHECK-LABEL: func.func @ones(
// CHECK: tensor.expand_shape %{{.*}} {{\[\[}}0], [1, 2, 3], [4]] output_shape [1, 2, 1, 2, 3] : tensor<1x4x3xf32> into tensor<1x2x1x2x3xf32>
// CHECK: tensor.collapse_shape %{{.*}} {{\[\[}}0, 1], [2], [3, 4]] : tensor<1x2x1x2x3xf32> into tensor<2x1x6xf32>
// CHECK-NEXT: return
func.func @ones(%x: tensor<1x4x3xf32>) -> tensor<2x1x6xf32> {
  %0 = tensor.collapse_shape %x [[0, 1, 2]] : tensor<1x4x3xf32> into tensor<12xf32>
  %1 = tensor.expand_shape %0 [[0, 1, 2]] output_shape [2, 1, 6] : tensor<12xf32> into tensor<2x1x6xf32>
  return %1 : tensor<2x1x6xf32>
}
