// RUN: tessera run %s --check=interpreter | FileCheck %s

// A contraction over nothing is its init; a tensor without elements needs no kernel.
// CHECK: check result0 ok
// CHECK: check result1 ok
dist.process_mesh @m(shape = [4], dim_names = ["x"])
func.func @main(%a: tensor<0x5xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>}, %b: tensor<5x0xf32> {dist.sharding = #dist.sharding<@m, [shard(1)]>}) -> (tensor<5x5xf32>, tensor<0x0xf32>) {
  %z = arith.constant dense<3.0> : tensor<5x5xf32>
  %z0 = arith.constant dense<0.0> : tensor<0x0xf32>
  %0 = linalg.matmul ins(%b, %a : tensor<5x0xf32>, tensor<0x5xf32>) outs(%z : tensor<5x5xf32>) -> tensor<5x5xf32>
  %1 = linalg.matmul ins(%a, %b : tensor<0x5xf32>, tensor<5x0xf32>) outs(%z0 : tensor<0x0xf32>) -> tensor<0x0xf32>
  return %0, %1 : tensor<5x5xf32>, tensor<0x0xf32> }
