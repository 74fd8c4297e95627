// RUN: tessera run %s --steps 3 --check=interpreter | FileCheck %s

// Results have the shardings of the arguments that they feed: the reshard is part of the step.
// CHECK: result0 {{.*}}[partial(sum), replicate]
// CHECK: result1 {{.*}}[shard(0), shard(1)]
// CHECK: check result0 ok
// CHECK: check result1 ok
// CHECK: check result2 ok
dist.process_mesh @p(shape = [2, 2], dim_names = ["x", "y"])
func.func @main(%a: tensor<5x3xf32> {dist.sharding = #dist.sharding<@p, [shard(0), shard(1)]>}, %b: tensor<5x3xf32> {dist.sharding = #dist.sharding<@p, [partial(sum), replicate]>}) -> (tensor<5x3xf32> {dist.feeds = 1, dist.sharding = #dist.sharding<@p, [shard(1), shard(0)]>}, tensor<5x3xf32> {dist.feeds = 0, dist.sharding = #dist.sharding<@p, [partial(max), partial(max)]>}, tensor<5x3xf32>) {
  %0 = math.tanh %a : tensor<5x3xf32>
  %1 = math.sin %b : tensor<5x3xf32>
  return %0, %1, %b : tensor<5x3xf32>, tensor<5x3xf32>, tensor<5x3xf32> }
