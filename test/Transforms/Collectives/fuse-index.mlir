// RUN: tessera-opt %s --tessera-pipeline="compile-to=partitioned" -o %t
// RUN: tessera-opt %t --dist-fuse-collectives="all-reduce=index config=1" | FileCheck %s --check-prefix=ONE
// RUN: tessera-opt %t --dist-fuse-collectives="all-reduce=index config=2" | FileCheck %s --check-prefix=TWO
// RUN: tessera-opt %t --dist-fuse-collectives="all-reduce=index config=2,70" 2>&1 | FileCheck %s --check-prefix=BEYOND

// An index splits all groups at that position of the program, not only the group of its op (D3-6):
// 0 and 2 are f32, 1 and 3 f64.
// ONE-NOT: dist.all_reduce %{{[0-9]+}}, {{.*}}xf32
// ONE: dist.all_reduce %arg1, %arg3 {{.*}}tensor<8xf64>, tensor<8xf64>
// TWO-COUNT-4: dist.all_reduce %arg{{[0-3]}} over
// BEYOND: remark: comm_fusion 'allreduce': index 70 is beyond the 4 collectives; it has no effect
dist.process_mesh @m(shape = [4], dim_names = ["x"])
func.func @main(%a: tensor<8xf32> {dist.sharding = #dist.sharding<@m, [partial(sum)]>},%b: tensor<8xf64> {dist.sharding = #dist.sharding<@m, [partial(sum)]>},%c: tensor<8xf32> {dist.sharding = #dist.sharding<@m, [partial(sum)]>},%d: tensor<8xf64> {dist.sharding = #dist.sharding<@m, [partial(sum)]>}) -> (tensor<8xf32>, tensor<8xf64>, tensor<8xf32>, tensor<8xf64>) {
  %0 = math.exp %a : tensor<8xf32>
  %1 = math.exp %b : tensor<8xf64>
  %2 = math.exp %c : tensor<8xf32>
  %3 = math.exp %d : tensor<8xf64>
  return %0, %1, %2, %3 : tensor<8xf32>, tensor<8xf64>, tensor<8xf32>, tensor<8xf64>
}
