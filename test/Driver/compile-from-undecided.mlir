// RUN: not tessera explain %s --compile-from resharded 2>&1 | FileCheck %s --check-prefix=DECIDED
// RUN: not tessera explain %s --compile-from partitioned 2>&1 | FileCheck %s --check-prefix=LOCAL

// DECIDED: error: argument 'b' has no sharding; run dist-propagate
// LOCAL: error: 'main' is in the global view; after phase 'partitioned' functions must have dist.view = "local"
dist.process_mesh @m(shape = [4], dim_names = ["x"])
func.func @main(%a: tensor<8xf32> {dist.name = "a", dist.sharding = #dist.sharding<@m, [shard(0)]>}, %b: tensor<3xi32> {dist.name="b", dist.range=[0,5]}) -> (tensor<8xf32> {dist.name = "r"}, tensor<f32> {dist.name="s"}) {
  %0 = math.exp %a : tensor<8xf32>
  %z = arith.constant dense<0.0> : tensor<f32>
  %1 = linalg.reduce { arith.addf } ins(%0 : tensor<8xf32>) outs(%z : tensor<f32>) dimensions = [0]
  return %0, %1 : tensor<8xf32>, tensor<f32> }
