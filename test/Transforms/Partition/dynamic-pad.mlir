// RUN: tessera-opt %s --tessera-pipeline="compile-to=partitioned" | FileCheck %s

// With padding known only at run time the tensor stays whole.
// CHECK: dist.all_gather
// CHECK: tensor.pad %{{.*}} low[%{{.*}}] high[%{{.*}}]
// CHECK: tensor<8xf32> to tensor<12xf32>
dist.process_mesh @m(shape = [4], dim_names = ["x"])
func.func @main(%a: tensor<8xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>}, %t: tensor<1xi64>) -> tensor<12xf32> {
  %c0 = arith.constant 0 : index
  %z = arith.constant 0.0 : f32
  %e = tensor.extract %t[%c0] : tensor<1xi64>
  %n = arith.index_cast %e : i64 to index
  %c4 = arith.constant 4 : index
  %h = arith.subi %c4, %n : index
  %0 = tensor.pad %a low[%n] high[%h] { ^bb0(%i: index): tensor.yield %z : f32 } : tensor<8xf32> to tensor<12xf32>
  return %0 : tensor<12xf32> }
