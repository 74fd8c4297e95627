// RUN: tessera-opt %s --tessera-pipeline="compile-to=propagated" | FileCheck %s --check-prefix=OPEN
// RUN: tessera-opt %s --tessera-pipeline="compile-to=partitioned" | FileCheck %s
// RUN: tessera run %s --function product --check | FileCheck %s --check-prefix=EXEC
// RUN: tessera run %s --function behind --check | FileCheck %s --check-prefix=EXEC
// RUN: tessera run %s --function accumulated --check | FileCheck %s --check-prefix=EXEC

// EXEC: {{^}}check  result0  ok

// Contributions to a result without a placement are scattered.
dist.process_mesh @m(shape = [4], dim_names = ["x"])

// OPEN-LABEL: func.func @product(
// OPEN-SAME: -> (tensor<8x16xf32> {dist.sharding = #dist.sharding<@m, [?]>})
// CHECK-LABEL: func.func @product(
// CHECK: dist.reduce_scatter {{.*}} dim = 0 {{.*}} : tensor<8x16xf32> -> tensor<2x16xf32>
// CHECK-NOT: dist.all
func.func @product(%a: tensor<8x32xf32> {dist.sharding = #dist.sharding<@m, [shard(1)]>}, %b: tensor<32x16xf32>) -> tensor<8x16xf32> {
  %zero = arith.constant dense<0.0> : tensor<8x16xf32>
  %p = linalg.matmul ins(%a, %b : tensor<8x32xf32>, tensor<32x16xf32>) outs(%zero : tensor<8x16xf32>) -> tensor<8x16xf32>
  return %p : tensor<8x16xf32>
}

// Ops in between are cut, linear or not; here the second dimension is the first one with equal parts.
// CHECK-LABEL: func.func @behind(
// CHECK: dist.reduce_scatter {{.*}} dim = 1 {{.*}} : tensor<6x16xf32> -> tensor<6x4xf32>
// CHECK: math.tanh
// CHECK-NOT: dist.all
func.func @behind(%a: tensor<6x32xf32> {dist.sharding = #dist.sharding<@m, [shard(1)]>}, %b: tensor<32x16xf32>) -> tensor<6x16xf32> {
  %zero = arith.constant dense<0.0> : tensor<6x16xf32>
  %p = linalg.matmul ins(%a, %b : tensor<6x32xf32>, tensor<32x16xf32>) outs(%zero : tensor<6x16xf32>) -> tensor<6x16xf32>
  %t = math.tanh %p : tensor<6x16xf32>
  return %t : tensor<6x16xf32>
}

// The sum that a loop accumulates is scattered after it.
// CHECK-LABEL: func.func @accumulated(
// CHECK: scf.for
// CHECK-NOT: dist.all
// CHECK: scf.yield
// CHECK: dist.reduce_scatter
// CHECK-NOT: dist.all
func.func @accumulated(%x: tensor<6x32x16xf32> {dist.sharding = #dist.sharding<@m, [shard(1)]>}) -> tensor<16x16xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c6 = arith.constant 6 : index
  %zero = arith.constant dense<0.0> : tensor<16x16xf32>
  %g = scf.for %i = %c0 to %c6 step %c1 iter_args(%acc = %zero) -> (tensor<16x16xf32>) {
    %xi = tensor.extract_slice %x[%i, 0, 0] [1, 32, 16] [1, 1, 1] : tensor<6x32x16xf32> to tensor<32x16xf32>
    %et = tensor.empty() : tensor<16x32xf32>
    %xt = linalg.transpose ins(%xi : tensor<32x16xf32>) outs(%et : tensor<16x32xf32>) permutation = [1, 0]
    %gi = linalg.matmul ins(%xt, %xi : tensor<16x32xf32>, tensor<32x16xf32>) outs(%zero : tensor<16x16xf32>) -> tensor<16x16xf32>
    %next = arith.addf %acc, %gi : tensor<16x16xf32>
    scf.yield %next : tensor<16x16xf32>
  }
  return %g : tensor<16x16xf32>
}

// If no dimension has equal parts, and for a scalar, the result is whole on every device.
// OPEN-LABEL: func.func @uneven(
// OPEN-SAME: -> (tensor<6x5xf32> {dist.sharding = #dist.sharding<@m, [replicate]>})
// CHECK-LABEL: func.func @uneven(
// CHECK: dist.all_reduce
func.func @uneven(%a: tensor<6x32xf32> {dist.sharding = #dist.sharding<@m, [shard(1)]>}, %b: tensor<32x5xf32>) -> tensor<6x5xf32> {
  %zero = arith.constant dense<0.0> : tensor<6x5xf32>
  %p = linalg.matmul ins(%a, %b : tensor<6x32xf32>, tensor<32x5xf32>) outs(%zero : tensor<6x5xf32>) -> tensor<6x5xf32>
  return %p : tensor<6x5xf32>
}
