// RUN: tessera-opt %s --tessera-pipeline="compile-to=partitioned" -o %t
// RUN: tessera-opt %t --dist-fuse-collectives | FileCheck %s --check-prefix=AUTO
// RUN: tessera-opt %t --dist-fuse-collectives="all-reduce=off" | FileCheck %s --check-prefix=OFF
// RUN: tessera-opt %t --dist-fuse-collectives="all-reduce=size config=2" | FileCheck %s --check-prefix=SIZE
// RUN: tessera-opt %t --dist-fuse-collectives="all-reduce=index config=1,3" | FileCheck %s --check-prefix=INDEX

// Five gradients of 1 MiB (D3-6, D3-8).
// AUTO-COUNT-1: dist.all_reduce %arg0, %arg1, %arg2, %arg3, %arg4
// AUTO-NOT: dist.all_reduce
// OFF-COUNT-5: dist.all_reduce
// SIZE: dist.all_reduce %arg0, %arg1 over
// SIZE: dist.all_reduce %arg2, %arg3 over
// SIZE: dist.all_reduce %arg4 over
// INDEX: dist.all_reduce %arg0 over
// INDEX: dist.all_reduce %arg1, %arg2 over
// INDEX: dist.all_reduce %arg3, %arg4 over
dist.process_mesh @m(shape = [2], dim_names = ["x"])
func.func @main(%a0: tensor<262144xf32> {dist.sharding = #dist.sharding<@m, [partial(sum)]>}, %a1: tensor<262144xf32> {dist.sharding = #dist.sharding<@m, [partial(sum)]>}, %a2: tensor<262144xf32> {dist.sharding = #dist.sharding<@m, [partial(sum)]>}, %a3: tensor<262144xf32> {dist.sharding = #dist.sharding<@m, [partial(sum)]>}, %a4: tensor<262144xf32> {dist.sharding = #dist.sharding<@m, [partial(sum)]>}) -> (tensor<262144xf32> {dist.sharding = #dist.sharding<@m, [replicate]>}, tensor<262144xf32> {dist.sharding = #dist.sharding<@m, [replicate]>}, tensor<262144xf32> {dist.sharding = #dist.sharding<@m, [replicate]>}, tensor<262144xf32> {dist.sharding = #dist.sharding<@m, [replicate]>}, tensor<262144xf32> {dist.sharding = #dist.sharding<@m, [replicate]>}) {
  return %a0, %a1, %a2, %a3, %a4 : tensor<262144xf32>, tensor<262144xf32>, tensor<262144xf32>, tensor<262144xf32>, tensor<262144xf32>
}
