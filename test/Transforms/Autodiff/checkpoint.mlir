// RUN: tessera-opt %s --dist-autodiff=seed=argument | FileCheck %s
// RUN: tessera-fuzz --gradients --check %s

// The loop keeps the carry of each iteration, not the results of tanh and sine, which are rematerialized.
// CHECK-LABEL: func.func @main_grad(
// CHECK-NOT: dist.checkpoint
// CHECK: tensor.empty() : tensor<4x2x3xf64>
// CHECK: %{{.*}}:2 = scf.for
// CHECK: math.tanh
// CHECK: math.sin
// CHECK: tensor.insert_slice %{{.*}} into %{{.*}} : tensor<2x3xf64> into tensor<4x2x3xf64>
// CHECK-NEXT: scf.yield %{{.*}}, %{{.*}} : tensor<2x3xf64>, tensor<4x2x3xf64>
// CHECK: scf.for
// CHECK: tensor.extract_slice
// CHECK: math.tanh
// CHECK: math.cos
// CHECK: scf.yield
func.func @main(%x: tensor<2x3xf64>) -> tensor<2x3xf64> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %y = scf.for %i = %c0 to %c4 step %c1 iter_args(%h = %x) -> (tensor<2x3xf64>) {
    %z = dist.checkpoint {
      %t = math.tanh %h : tensor<2x3xf64>
      %s = math.sin %t : tensor<2x3xf64>
      dist.yield %s : tensor<2x3xf64>
    } : tensor<2x3xf64>
    scf.yield %z : tensor<2x3xf64>
  }
  return %y : tensor<2x3xf64>
}
