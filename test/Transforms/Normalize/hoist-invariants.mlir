// RUN: tessera-opt %s --dist-normalize | FileCheck %s
// RUN: tessera-opt %s --tessera-pipeline="compile-to=partitioned" | FileCheck %s --check-prefix=SENT

// Loop invariants are computed, and sent, before the loop. Fills stay with their users: hoisted,
// they would only take memory.
dist.process_mesh @m(shape = [4], dim_names = ["x"])

// CHECK-LABEL: func.func @weights(
// CHECK: math.exp
// CHECK: scf.for
// CHECK-NOT: math.exp
// CHECK: linalg.fill
// CHECK: linalg.matmul
// SENT-LABEL: func.func @weights(
// SENT: dist.all_gather
// SENT: scf.for
// SENT-NOT: dist.all_gather
func.func @weights(%w: tensor<8x8xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>},
                   %x: tensor<16x8xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>}) -> tensor<16x8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %zero = arith.constant 0.0 : f32
  %r = scf.for %i = %c0 to %c5 step %c1 iter_args(%h = %x) -> (tensor<16x8xf32>) {
    %s = math.exp %w : tensor<8x8xf32>
    %e = tensor.empty() : tensor<16x8xf32>
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<16x8xf32>) -> tensor<16x8xf32>
    %n = linalg.matmul ins(%h, %s : tensor<16x8xf32>, tensor<8x8xf32>) outs(%f : tensor<16x8xf32>) -> tensor<16x8xf32>
    scf.yield %n : tensor<16x8xf32>
  }
  return %r : tensor<16x8xf32>
}

// A division by a value that may be zero stays: the loop may have zero trips.
// CHECK-LABEL: func.func @division(
// CHECK: scf.for
// CHECK: arith.divsi
func.func @division(%a: tensor<8xi32>, %b: tensor<8xi32>, %n: index) -> tensor<8xi32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%h = %a) -> (tensor<8xi32>) {
    %q = arith.divsi %a, %b : tensor<8xi32>
    %s = arith.addi %h, %q : tensor<8xi32>
    scf.yield %s : tensor<8xi32>
  }
  return %r : tensor<8xi32>
}
