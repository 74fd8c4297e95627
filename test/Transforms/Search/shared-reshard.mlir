// A value that two ops need in two shardings is sent once if both can slice it from the whole.
// RUN: tessera-opt %s --dist-normalize --dist-search=topology=%source/share/topologies/8gpu.json --dist-insert-reshards | FileCheck %s
// RUN: tessera explain %s --mode dynamic_programming --topology %source/share/topologies/8gpu.json | FileCheck %s --check-prefix=REPORT

dist.process_mesh @m(shape = [2, 4], dim_names = ["a", "b"])

// CHECK-LABEL: func.func @main
// CHECK: %[[WHOLE:.*]] = dist.reshard %arg0 to #dist.sharding<@m, [replicate, replicate]>
// CHECK-SAME: required by several uses
// CHECK-DAG: dist.reshard %[[WHOLE]] to #dist.sharding<@m, [replicate, shard(1)]>
// CHECK-DAG: dist.reshard %[[WHOLE]] to #dist.sharding<@m, [replicate, shard(0)]>
// REPORT: collectives
// REPORT-NEXT: all_gather @m [a]
// REPORT-NEXT: total: 1 collective
func.func @main(%x: tensor<64x64xf32> {dist.sharding = #dist.sharding<@m, [shard(1), replicate]>})
    -> (tensor<64x64xf32> {dist.sharding = #dist.sharding<@m, [replicate, shard(1)]>},
        tensor<64x64xf32> {dist.sharding = #dist.sharding<@m, [replicate, shard(0)]>}) {
  %y = math.exp %x : tensor<64x64xf32>
  %z = math.tanh %x : tensor<64x64xf32>
  return %y, %z : tensor<64x64xf32>, tensor<64x64xf32>
}
