// RUN: tessera-opt %s --tessera-pipeline="compile-to=propagated" | FileCheck %s

dist.process_mesh @m(shape = [4], dim_names = ["x"])

// An axis of 4 on a dimension of 2 x 8 splits: half of it cuts the 2, half the 8.
// CHECK-LABEL: func.func @split_axis(
// CHECK: tensor.expand_shape {{.*}} dims = {{\[}}["x":(1)2], ["x":(2)2]]
func.func @split_axis(%a: tensor<16xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>}) -> tensor<2x8xf32> {
  %0 = tensor.expand_shape %a [[0, 1]] output_shape [2, 8] : tensor<16xf32> into tensor<2x8xf32>
  return %0 : tensor<2x8xf32>
}

// Parts of 3 x 5 that straddle rows are not boxes: no axis passes.
// CHECK-LABEL: func.func @straddles(
// CHECK: tensor.expand_shape {{.*}} [replicate]
func.func @straddles(%a: tensor<15xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>}) -> tensor<3x5xf32> {
  %0 = tensor.expand_shape %a [[0, 1]] output_shape [3, 5] : tensor<15xf32> into tensor<3x5xf32>
  return %0 : tensor<3x5xf32>
}

// A dimension of extent 1 beside it does not prevent an uneven cut from passing, in either direction.
// CHECK-LABEL: func.func @units(
// CHECK: tensor.collapse_shape {{.*}} [shard(0)]{{.*}} : tensor<1x7x3xf32> into tensor<7x3xf32>
// CHECK: tensor.expand_shape {{.*}} [shard(0)]{{.*}} : tensor<7x3xf32> into tensor<7x1x3xf32>
func.func @units(%a: tensor<1x7x3xf32> {dist.sharding = #dist.sharding<@m, [shard(1)]>}) -> tensor<7x1x3xf32> {
  %0 = tensor.collapse_shape %a [[0, 1], [2]] : tensor<1x7x3xf32> into tensor<7x3xf32>
  %1 = tensor.expand_shape %0 [[0, 1], [2]] output_shape [7, 1, 3] : tensor<7x3xf32> into tensor<7x1x3xf32>
  return %1 : tensor<7x1x3xf32>
}
