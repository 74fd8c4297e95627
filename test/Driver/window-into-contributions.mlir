// A few rows are inserted into a cut tensor of contributions: a device selects between those rows and its own.
// RUN: tessera run %s --check | FileCheck %s
// CHECK: check y ok
dist.process_mesh @m(shape = [3, 4], dim_names = ["a", "b"])
func.func @main(%rows: tensor<11x2xf32>, %into: tensor<13x17xf32>, %w: tensor<13x3xf32>) -> (tensor<17x3xf32> {dist.name = "y"}) {
  %0 = dist.reshard %into to #dist.sharding<@m, dims = [["b"], []], partial = [sum("a")]> : tensor<13x17xf32>
  %1 = tensor.insert_slice %rows into %0[0, 0] [11, 2] [1, 1] : tensor<11x2xf32> into tensor<13x17xf32>
  %zero = arith.constant dense<0.0> : tensor<17x3xf32>
  %y = linalg.matmul indexing_maps = [affine_map<(i, j, k) -> (k, i)>, affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>]
       ins(%1, %w : tensor<13x17xf32>, tensor<13x3xf32>) outs(%zero : tensor<17x3xf32>) -> tensor<17x3xf32>
  return %y : tensor<17x3xf32>
}
