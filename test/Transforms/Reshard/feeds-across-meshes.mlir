// RUN: tessera run %s --steps 3 --check=interpreter | FileCheck %s

// Each result feeds an argument on the other mesh: it is sent there within the step.
// CHECK: send
// CHECK: check result0 ok
// CHECK: check result1 ok
dist.process_mesh @p(shape = [2], dim_names = ["x"])
dist.process_mesh @q(shape = [2], dim_names = ["x"], process_ids = [2, 3])
func.func @main(%a: tensor<5xf32> {dist.sharding = #dist.sharding<@p, [shard(0)]>}, %b: tensor<5xf32> {dist.sharding = #dist.sharding<@q, [shard(0)]>}) -> (tensor<5xf32> {dist.feeds = 1}, tensor<5xf32> {dist.feeds = 0}) {
  %0 = math.tanh %a : tensor<5xf32>
  %1 = math.sin %b : tensor<5xf32>
  return %0, %1 : tensor<5xf32>, tensor<5xf32> }
