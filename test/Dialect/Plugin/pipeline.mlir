// RUN: tessera-opt %s --load-dialect-plugin=%demo_dialect --tessera-pipeline="compile-to=propagated" | FileCheck %s --check-prefix=CUT
// RUN: tessera-opt %s --load-dialect-plugin=%demo_dialect --tessera-pipeline="compile-to=partitioned" | FileCheck %s --check-prefix=LOCAL
// RUN: tessera-opt %s --load-dialect-plugin=%demo_dialect --tessera-pipeline --codegen-prepare | FileCheck %s --check-prefix=PREPARED

// Ops of another dialect pass through all phases: propagation, a sum of contributions delayed past a
// linear op, an uneven reduction without its padding, and finally the decomposition to linalg ops.
dist.process_mesh @m(shape = [2, 4], dim_names = ["a", "b"])

// CUT-LABEL: func.func @main
// CUT: demo.sum_squares {{.*}}factors = {{\[}}["a"], ["b"]]>{{.*}}[shard(0), partial(sum)]
// CUT: demo.sum_squares {{.*}}factors = {{\[}}["a"], ["b"]]>

// LOCAL-LABEL: func.func @main
// LOCAL: %[[MASKED:.*]] = linalg.generic
// LOCAL: arith.select
// LOCAL: demo.sum_squares %[[MASKED]] {{.*}}: tensor<4x2xf32> -> tensor<4xf32>
// LOCAL: demo.sum_squares {{.*}}: tensor<4x2xf32> -> tensor<4xf32>
// LOCAL: demo.scaled_add {{.*}}: tensor<4xf32>
// LOCAL-COUNT-1: dist.all_reduce
// LOCAL-NOT: dist.all_reduce
// LOCAL: demo.rms_norm {{.*}}: tensor<1x6xf32>

// PREPARED-NOT: demo.
func.func @main(%x: tensor<8x6xf32> {dist.sharding = #dist.sharding<@m, [shard(0), shard(1)]>},
                %y: tensor<8x6xf32> {dist.sharding = #dist.sharding<@m, [shard(0), shard(1)]>},
                %z: tensor<8x6xf32> {dist.sharding = #dist.sharding<@m, [shard(0), shard(0)]>})
    -> (tensor<8xf32> {dist.sharding = #dist.sharding<@m, [shard(0), replicate]>}, tensor<8x6xf32>) {
  %0 = demo.sum_squares %x : tensor<8x6xf32> -> tensor<8xf32>
  %1 = demo.sum_squares %y : tensor<8x6xf32> -> tensor<8xf32>
  %2 = demo.scaled_add %0, %1 {scale = 0.5} : tensor<8xf32>
  %3 = demo.rms_norm %z {epsilon = 1.0e-5} : tensor<8x6xf32>
  return %2, %3 : tensor<8xf32>, tensor<8x6xf32>
}
