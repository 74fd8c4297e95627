// RUN: tessera-opt %s --tessera-pipeline="compile-to=normalized" | FileCheck %s
// RUN: tessera explain %s --function ring | FileCheck %s --check-prefix=SENT
// RUN: tessera run %s --function ring --check | FileCheck %s --check-prefix=VALUE
// RUN: tessera run %s --function returned --check | FileCheck %s --check-prefix=VALUE

// A ring of four devices in a loop: nobody reads the value after the last move, so that the last iteration is taken out of
// the loop, without it. What is returned is moved four times.
dist.process_mesh @line(shape = [4], dim_names = ["s"])

// VALUE: check {{.*}} ok
// SENT: 256 on the wire x 3 trips
// SENT: total: 3 collectives, 768 bytes on the wire

// CHECK-LABEL: func.func @ring(
// CHECK: %[[LAST:.*]] = arith.constant 3 : index
// CHECK: %[[R:.*]]:2 = scf.for %{{.*}} = %{{.*}} to %[[LAST]] step %{{.*}} iter_args(%[[K:.*]] = %arg0, %[[SUM:.*]] = %
// CHECK: linalg.generic {{.*}} ins(%[[SUM]], %[[K]]
// CHECK: dist.rearrange %[[K]], %[[K]] dim = 0
// CHECK: }
// CHECK: linalg.generic {{.*}} ins(%[[R]]#1, %[[R]]#0
// CHECK-NOT: dist.rearrange
// CHECK: return
func.func @ring(%x: tensor<32x8xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>})
    -> (tensor<32x8xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %none = arith.constant dense<0.0> : tensor<32x8xf32>
  %r:2 = scf.for %i = %c0 to %c4 step %c1 iter_args(%k = %x, %sum = %none) -> (tensor<32x8xf32>, tensor<32x8xf32>) {
    %t = math.tanh %k : tensor<32x8xf32>
    %s = arith.addf %sum, %k : tensor<32x8xf32>
    %u = arith.mulf %s, %t : tensor<32x8xf32>
    %a = tensor.extract_slice %k[8, 0] [24, 8] [1, 1] : tensor<32x8xf32> to tensor<24x8xf32>
    %b = tensor.extract_slice %k[0, 0] [8, 8] [1, 1] : tensor<32x8xf32> to tensor<8x8xf32>
    %next = tensor.concat dim(0) %a, %b : (tensor<24x8xf32>, tensor<8x8xf32>) -> tensor<32x8xf32>
    scf.yield %next, %u : tensor<32x8xf32>, tensor<32x8xf32>
  }
  return %r#1 : tensor<32x8xf32>
}

// CHECK-LABEL: func.func @returned(
// CHECK: %[[FOUR:.*]] = arith.constant 4 : index
// CHECK: scf.for %{{.*}} = %{{.*}} to %[[FOUR]] step
func.func @returned(%x: tensor<32x8xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>})
    -> (tensor<32x8xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>},
        tensor<32x8xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %none = arith.constant dense<0.0> : tensor<32x8xf32>
  %r:2 = scf.for %i = %c0 to %c4 step %c1 iter_args(%k = %x, %sum = %none) -> (tensor<32x8xf32>, tensor<32x8xf32>) {
    %s = arith.addf %sum, %k : tensor<32x8xf32>
    %a = tensor.extract_slice %k[8, 0] [24, 8] [1, 1] : tensor<32x8xf32> to tensor<24x8xf32>
    %b = tensor.extract_slice %k[0, 0] [8, 8] [1, 1] : tensor<32x8xf32> to tensor<8x8xf32>
    %next = tensor.concat dim(0) %a, %b : (tensor<24x8xf32>, tensor<8x8xf32>) -> tensor<32x8xf32>
    scf.yield %next, %s : tensor<32x8xf32>, tensor<32x8xf32>
  }
  return %r#0, %r#1 : tensor<32x8xf32>, tensor<32x8xf32>
}
