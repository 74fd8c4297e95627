// RUN: tessera run %s --check=interpreter | FileCheck %s

// A pad whose values depend on their indices is computed whole.
// CHECK: all_gather
// CHECK: check result0 ok
dist.process_mesh @m(shape = [4], dim_names = ["x"])
func.func @main(%a: tensor<8xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>}) -> tensor<12xf32> {
  %0 = tensor.pad %a low[2] high[2] { ^bb0(%i: index): 
    %j = arith.index_cast %i : index to i32
    %f = arith.sitofp %j : i32 to f32
    tensor.yield %f : f32 } : tensor<8xf32> to tensor<12xf32>
  return %0 : tensor<12xf32> }
