// RUN: tessera-opt %s --dist-normalize | FileCheck %s
// RUN: tessera run %s --steps 3 --check=interpreter | FileCheck %s --check-prefix=SAME

// Values computed only from unannotated arguments and constants are computed on every mesh that
// uses them; the fed argument is on one mesh.
// CHECK-LABEL: func.func @main
// CHECK: dist.reshard %arg2 to #dist.sharding<@n, [replicate]>
// CHECK-COUNT-2: math.tanh
// CHECK-NOT: math.tanh
// SAME: check new_a ok
// SAME: check new_b ok
// SAME: check new_count ok
dist.process_mesh @m(shape = [2], dim_names = ["x"])
dist.process_mesh @n(shape = [2], dim_names = ["x"], process_ids = [2, 3])
func.func @main(%a: tensor<6xf32> {dist.name = "a", dist.sharding = #dist.sharding<@m, [shard(0)]>},
                %b: tensor<5xf32> {dist.name = "b", dist.sharding = #dist.sharding<@n, [shard(0)]>},
                %count: tensor<f32> {dist.name = "count"})
    -> (tensor<6xf32> {dist.name = "new_a", dist.feeds = 0}, tensor<5xf32> {dist.name = "new_b", dist.feeds = 1},
        tensor<f32> {dist.name = "new_count", dist.feeds = 2}) {
  %one = arith.constant dense<1.0> : tensor<f32>
  %next = arith.addf %count, %one : tensor<f32>
  %scale = math.tanh %next : tensor<f32>
  %ea = tensor.empty() : tensor<6xf32>
  %sa = linalg.broadcast ins(%scale : tensor<f32>) outs(%ea : tensor<6xf32>) dimensions = [0]
  %na = arith.mulf %a, %sa : tensor<6xf32>
  %eb = tensor.empty() : tensor<5xf32>
  %sb = linalg.broadcast ins(%scale : tensor<f32>) outs(%eb : tensor<5xf32>) dimensions = [0]
  %nb = arith.mulf %b, %sb : tensor<5xf32>
  return %na, %nb, %next : tensor<6xf32>, tensor<5xf32>, tensor<f32>
}
