// A value that is whole over an axis is a contribution to a mean over it, also if it is already one over another axis.
// RUN: tessera run %s --check | FileCheck %s
// CHECK: check y ok
dist.process_mesh @m(shape = [6, 2], dim_names = ["a", "b"])
func.func @main(%x: tensor<9xf32> {dist.sharding = #dist.sharding<@m, [shard(0, order = 1), shard(0, order = 0)]>})
    -> (tensor<9xf32> {dist.name = "y",
                       dist.sharding = #dist.sharding<@m, dims = [[]], partial = [avg("a":(2)3), avg("b")]>}) {
  %e = tensor.empty() : tensor<9xf32>
  %y = linalg.exp ins(%x : tensor<9xf32>) outs(%e : tensor<9xf32>) -> tensor<9xf32>
  return %y : tensor<9xf32>
}
