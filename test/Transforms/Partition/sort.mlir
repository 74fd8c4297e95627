// RUN: tessera-opt %s --tessera-pipeline | FileCheck %s
// RUN: tessera run %s --check=interpreter | FileCheck %s --check-prefix=COMPARED
// RUN: tessera run %s --check=interpreter --backend stub | FileCheck %s --check-prefix=COMPARED
// RUN: tessera-opt %s --tessera-pipeline --interpret="poison=high" -o /dev/null

// A sort of a cut dimension gathers whole lines, each on one device if another dimension can be cut;
// the first k elements are among the first k of each part. 10 over 4 leaves parts of 3, 3, 3 and 1.

dist.process_mesh @m(shape = [4], dim_names = ["d"])

// CHECK-LABEL: func.func @main
// COMPARED-COUNT-4: check {{.*}} ok
func.func @main(%x: tensor<10x8xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>},
                %v: tensor<10xi32> {dist.sharding = #dist.sharding<@m, [shard(0)]>},
                %w: tensor<4096x8xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>})
    -> (tensor<10xi32>, tensor<2x8xf32>, tensor<4x8xf32>, tensor<4096x8xf32>) {
  // CHECK: dist.all_gather {{.*}}10xi32
  %0 = ext.sort dim = 0 keys = 1 ins(%v : tensor<10xi32>)
  %1 = ext.sort dim = 0 keys = 1 descending limit = 2 ins(%x : tensor<10x8xf32>)
  %2 = ext.sort dim = 0 keys = 1 limit = 4 ins(%x : tensor<10x8xf32>)
  // CHECK: dist.all_to_all {{.*}}4096x8xf32
  // CHECK: ext.sort dim = 0 keys = 1 ins(%{{.*}} : tensor<4096x2xf32>)
  // CHECK: dist.all_to_all {{.*}}4096x8xf32
  %3 = ext.sort dim = 0 keys = 1 ins(%w : tensor<4096x8xf32>)
  return %0, %1, %2, %3 : tensor<10xi32>, tensor<2x8xf32>, tensor<4x8xf32>, tensor<4096x8xf32>
}
