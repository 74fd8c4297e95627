// RUN: tessera run %s --check=interpreter | FileCheck %s

// A sharding on an elementwise op applies to its result.
// CHECK: all_gather
// CHECK: check result0 ok
dist.process_mesh @m(shape = [4], dim_names = ["x"])
func.func @main(%a: tensor<8xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>}) -> tensor<8xf32> {
  %0 = math.exp %a {dist.shardings = [#dist.sharding<@m, [replicate]>]} : tensor<8xf32>
  return %0 : tensor<8xf32> }
