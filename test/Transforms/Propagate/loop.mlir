// RUN: tessera-opt %s --tessera-pipeline="compile-to=propagated" | FileCheck %s

// A loop carry has one sharding: init, argument, yield and result.
dist.process_mesh @m(shape = [4], dim_names = ["x"])
// CHECK-LABEL: func.func @main(
// CHECK: scf.yield
// CHECK: } {dist.shardings = [#dist.sharding<@m, [shard(0)]>]}
func.func @main(%x: tensor<8x8xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>}) -> tensor<8x8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %r = scf.for %i = %c0 to %c3 step %c1 iter_args(%a = %x) -> tensor<8x8xf32> {
    %y = arith.addf %a, %a : tensor<8x8xf32>
    scf.yield %y : tensor<8x8xf32>
  }
  return %r : tensor<8x8xf32>
}
