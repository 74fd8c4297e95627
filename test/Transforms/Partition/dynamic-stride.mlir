// RUN: tessera-opt %s --tessera-pipeline="compile-to=partitioned" | FileCheck %s

// With a stride known only at run time the tensor stays whole.
// CHECK: dist.all_gather
// CHECK: tensor.extract_slice %{{.*}}[0] [4] [%{{.*}}] {{.*}}: tensor<8xf32> to tensor<4xf32>
dist.process_mesh @m(shape = [4], dim_names = ["x"])
func.func @main(%a: tensor<8xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>}, %s: index) -> tensor<4xf32> {
  %0 = tensor.extract_slice %a[0][4][%s] : tensor<8xf32> to tensor<4xf32>
  return %0 : tensor<4xf32> }
