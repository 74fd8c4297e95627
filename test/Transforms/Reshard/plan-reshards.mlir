// RUN: tessera-opt %s --tessera-pipeline="compile-to=resharded" | tessera-opt --dist-plan-reshards | FileCheck %s
// RUN: tessera-opt %s --tessera-pipeline="compile-to=resharded" \
// RUN:   | tessera-opt --dist-plan-reshards="objective=bytes remarks=true" 2>&1 >/dev/null | FileCheck %s --check-prefix=BYTES
// RUN: not tessera-opt %s --dist-plan-reshards="objective=fun" 2>&1 | FileCheck %s --check-prefix=OBJECTIVE
// RUN: not tessera-opt %s --dist-plan-reshards="topology=%t.none" 2>&1 | FileCheck %s --check-prefix=TOPOLOGY
// RUN: tessera-opt %s --tessera-pipeline="compile-to=planned" | tessera-opt --dist-partition | FileCheck %s --check-prefix=LOCAL

// OBJECTIVE: error: objective 'fun' is not a valid objective: expected time or bytes
// TOPOLOGY: error: topology '{{.*}}.none': cannot be read: No such file or directory; expected a file, 'hwloc', or one of share/topologies:
// TOPOLOGY-SAME: 8gpu.json

dist.process_mesh @m(shape = [2, 4], dim_names = ["x", "y"])

// One reshard, two moves: the gather of "y" via rows, then a slice.
// CHECK-LABEL: func.func @chain(
// CHECK: %[[SUM:.*]] = dist.reshard %{{.*}}dist.move = #dist.move<reduce_scatter over ["x"] dim = {{[01]}} reduction = sum>
// CHECK: dist.reshard %[[SUM]]{{.*}}dist.move = #dist.move<all_gather over ["y"] dim = 0>
// LOCAL-LABEL: func.func @chain(
// LOCAL: %[[SUM:.*]] = dist.reduce_scatter {{.*}} over @m ["x"]
// LOCAL: dist.all_gather %[[SUM]] over @m ["y"]
// BYTES: remark: partial sums reduced: required by result 'result0': reduce_scatter by ring, all_gather by doubling ({{.*}} bytes on the wire, 2 collectives, {{.*}}; runner-up: {{.*}}; no plan receives less than
func.func @chain(%a: tensor<64x64xf32> {dist.sharding = #dist.sharding<@m, [partial(sum), shard(0)]>})
    -> (tensor<64x64xf32> {dist.sharding = #dist.sharding<@m, [shard(1), replicate]>}) {
  return %a : tensor<64x64xf32>
}

// A chain without communication.
// CHECK-LABEL: func.func @local(
// CHECK: dist.reshard %{{.*}}dist.move = #dist.move<slice over ["x"] dim = 0>
// BYTES-NOT: remark
func.func @local(%a: tensor<8x8xf32> {dist.sharding = #dist.sharding<@m, [replicate, replicate]>})
    -> (tensor<8x8xf32> {dist.sharding = #dist.sharding<@m, [shard(0), replicate]>}) {
  return %a : tensor<8x8xf32>
}
