// A row that only one of three devices has is not a mean over them, though each has one row.
// RUN: tessera run %s --check | FileCheck %s
// CHECK: check y ok
dist.process_mesh @m(shape = [3], dim_names = ["a"])
func.func @main(%x: tensor<1x5xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>})
    -> (tensor<1x5xf32> {dist.name = "y", dist.sharding = #dist.sharding<@m, [partial(avg)]>}) {
  %e = tensor.empty() : tensor<1x5xf32>
  %y = linalg.exp ins(%x : tensor<1x5xf32>) outs(%e : tensor<1x5xf32>) -> tensor<1x5xf32>
  return %y : tensor<1x5xf32>
}
