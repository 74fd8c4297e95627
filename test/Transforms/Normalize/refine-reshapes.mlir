// RUN: tessera-opt %s --dist-normalize | FileCheck %s
// RUN: tessera-opt %s --tessera-pipeline="compile-to=planned" | FileCheck %s --check-prefix=PLANNED
// RUN: tessera-opt %s --tessera-pipeline --interpret -o /dev/null

dist.process_mesh @m(shape = [4], dim_names = ["d"])

// Only what is divided otherwise is merged: the first dimension is not, so that the second one may stay cut.
// CHECK-LABEL: func.func @main(
// CHECK: tensor.collapse_shape %{{.*}} {{\[\[}}0], [1, 2]] : tensor<6x32x8xf32> into tensor<6x256xf32>
// CHECK: tensor.expand_shape %{{.*}} {{\[\[}}0], [1, 2]] output_shape [6, 8, 32] : tensor<6x256xf32> into tensor<6x8x32xf32>
// PLANNED-LABEL: func.func @main(
// PLANNED-NOT: dist.reshard
func.func @main(%x: tensor<6x32x8xf32> {dist.sharding = #dist.sharding<@m, [shard(1)]>})
    -> (tensor<6x8x32xf32> {dist.sharding = #dist.sharding<@m, [shard(1)]>}) {
  %0 = tensor.collapse_shape %x [[0, 1, 2]] : tensor<6x32x8xf32> into tensor<1536xf32>
  %1 = tensor.expand_shape %0 [[0, 1, 2]] output_shape [6, 8, 32] : tensor<1536xf32> into tensor<6x8x32xf32>
  return %1 : tensor<6x8x32xf32>
}
