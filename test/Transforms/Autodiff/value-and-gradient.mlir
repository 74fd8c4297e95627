// RUN: tessera-opt %s --dist-autodiff="function=loss wrt=w,x" | FileCheck %s
// RUN: tessera-opt %s --dist-autodiff="function=loss wrt=1 value=false name=slope" | FileCheck %s --check-prefix=ALONE
// RUN: tessera-opt %s --dist-autodiff="function=loss seed=argument wrt=x" | FileCheck %s --check-prefix=SEED
// RUN: tessera-opt %s --dist-autodiff="function=loss of=product seed=argument wrt=x" | FileCheck %s --check-prefix=OF
// RUN: tessera-fuzz --gradients --check %s

dist.process_mesh @m(shape = [2], dim_names = ["d"])

// The function stays, its derivative follows: the same arguments, results and then gradients in the requested order.
// CHECK-LABEL: func.func @loss(
// CHECK-LABEL: func.func @loss_grad(
// CHECK-SAME: %[[X:.*]]: tensor<4xf64> {dist.name = "x", dist.sharding = #dist.sharding<@m, [shard(0)]>}
// CHECK-SAME: %[[W:.*]]: tensor<4xf64> {dist.name = "w"}
// CHECK-SAME: -> (tensor<f64> {dist.name = "loss"}, tensor<4xf64> {dist.name = "product"}, tensor<4xf64> {dist.name = "d_w"}, tensor<4xf64> {dist.name = "d_x"})
// ALONE-LABEL: func.func @slope(
// ALONE-SAME: -> (tensor<4xf64> {dist.name = "d_w"})
// SEED-LABEL: func.func @loss_grad(
// SEED-SAME: %{{.*}}: tensor<f64> {dist.name = "d_loss"}, %{{.*}}: tensor<4xf64> {dist.name = "d_product"}) ->
// SEED-SAME: (tensor<f64> {dist.name = "loss"}, tensor<4xf64> {dist.name = "product"}, tensor<4xf64> {dist.name = "d_x"})
// OF-LABEL: func.func @loss_grad(
// OF-SAME: %[[X:.*]]: tensor<4xf64> {dist.name = "x",{{.*}}}, %[[W:.*]]: tensor<4xf64> {dist.name = "w"}, %[[G:.*]]: tensor<4xf64> {dist.name = "d_product"}) ->
// OF: linalg.generic {{.*}} ins(%[[W]], %[[G]] : tensor<4xf64>, tensor<4xf64>)
func.func @loss(%x: tensor<4xf64> {dist.name = "x", dist.sharding = #dist.sharding<@m, [shard(0)]>},
                %w: tensor<4xf64> {dist.name = "w"}) -> (tensor<f64> {dist.name = "loss"}, tensor<4xf64> {dist.name = "product", dist.feeds = 0 : i64}) {
  %zero = arith.constant dense<0.0> : tensor<f64>
  %product = arith.mulf %x, %w : tensor<4xf64>
  %loss = linalg.dot ins(%product, %product : tensor<4xf64>, tensor<4xf64>) outs(%zero : tensor<f64>) -> tensor<f64>
  return %loss, %product : tensor<f64>, tensor<4xf64>
}

// The function for the differences.
func.func @main(%x: tensor<4xf64>, %w: tensor<4xf64>) -> (tensor<f64>, tensor<4xf64>) {
  %0:2 = func.call @loss(%x, %w) : (tensor<4xf64>, tensor<4xf64>) -> (tensor<f64>, tensor<4xf64>)
  return %0#0, %0#1 : tensor<f64>, tensor<4xf64>
}
