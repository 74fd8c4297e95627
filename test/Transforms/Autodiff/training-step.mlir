// RUN: tessera-opt %s --dist-autodiff="function=loss wrt=w" --tessera-pipeline -o /dev/null
// RUN: tessera-opt %s --dist-autodiff="function=loss wrt=w" --tessera-pipeline="compile-to=normalized" | FileCheck %s --check-prefix=ONE
// RUN: tessera-opt %s --dist-autodiff="function=loss wrt=w" | FileCheck %s

// A declaration is defined, so that a step of the same file can call it; the result is one function.
// CHECK-NOT: func.func private @loss(
// CHECK: func.func private @loss_grad(%{{.*}}: tensor<3xf32>{{.*}}) -> (tensor<f32>{{.*}}, tensor<3xf32> {dist.name = "d_w"}) {
// ONE: func.func @step(
// ONE-NOT: func.func
dist.process_mesh @m(shape = [2], dim_names = ["d"])
func.func private @loss(%w: tensor<3xf32> {dist.name = "w"}, %x: tensor<8x3xf32>) -> tensor<f32> {
  %zero = arith.constant dense<0.0> : tensor<8xf32>
  %y = linalg.matvec ins(%x, %w : tensor<8x3xf32>, tensor<3xf32>) outs(%zero : tensor<8xf32>) -> tensor<8xf32>
  %z = arith.constant dense<0.0> : tensor<f32>
  %d = linalg.dot ins(%y, %y : tensor<8xf32>, tensor<8xf32>) outs(%z : tensor<f32>) -> tensor<f32>
  return %d : tensor<f32>
}
func.func private @loss_grad(tensor<3xf32>, tensor<8x3xf32>) -> (tensor<f32>, tensor<3xf32>)

func.func @step(%w: tensor<3xf32> {dist.name = "w"}, %x: tensor<8x3xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>})
    -> (tensor<f32> {dist.name = "loss"}, tensor<3xf32> {dist.name = "new_w", dist.feeds = 0 : i64}) {
  %rate = arith.constant dense<0.1> : tensor<3xf32>
  %l, %g = func.call @loss_grad(%w, %x) : (tensor<3xf32>, tensor<8x3xf32>) -> (tensor<f32>, tensor<3xf32>)
  %s = arith.mulf %rate, %g : tensor<3xf32>
  %n = arith.subf %w, %s : tensor<3xf32>
  return %l, %n : tensor<f32>, tensor<3xf32>
}
