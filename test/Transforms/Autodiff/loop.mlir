// RUN: tessera-opt %s --dist-autodiff=seed=argument | FileCheck %s
// RUN: tessera-fuzz --gradients --check %s

// The forward loop stacks the values that the reverse loop reads: here only the results of tanh. The
// weights' cotangents are written slice by slice, each once, and the weights are read in place, not stacked.
// CHECK-LABEL: func.func @main_grad(
// CHECK-SAME: %[[X:.*]]: tensor<2x3xf64>, %[[W:.*]]: tensor<4x3x3xf64>, %[[G:[^:]*]]: tensor<2x3xf64>
// CHECK: %[[STACK:.*]] = tensor.empty() : tensor<4x2x3xf64>
// CHECK: %[[FORWARD:.*]]:{{[23]}} = scf.for %[[I:.*]] = {{.*}} iter_args(
// CHECK: tensor.insert_slice
// CHECK: %[[BACK:.*]]:2 = scf.for %[[J:.*]] = {{.*}} iter_args(%[[GX:.*]] = %[[G]], %[[GW:.*]] = %{{.*}}) -> (tensor<2x3xf64>, tensor<4x3x3xf64>)
// CHECK: %[[LAST:.*]] = arith.subi %{{.*}}, %[[J]]
// CHECK: tensor.extract_slice %[[W]][%[[LAST]], 0, 0]
// CHECK: %[[NEW:.*]] = tensor.insert_slice %{{.*}} into %[[GW]][%[[LAST]], 0, 0]
// CHECK-NOT: math.tanh
// CHECK: scf.yield %{{.*}}, %[[NEW]]
func.func @main(%x: tensor<2x3xf64>, %w: tensor<4x3x3xf64>) -> tensor<2x3xf64> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %zero = arith.constant dense<0.0> : tensor<2x3xf64>
  %y = scf.for %i = %c0 to %c4 step %c1 iter_args(%h = %x) -> (tensor<2x3xf64>) {
    %wi = tensor.extract_slice %w[%i, 0, 0] [1, 3, 3] [1, 1, 1] : tensor<4x3x3xf64> to tensor<3x3xf64>
    %p = linalg.matmul ins(%h, %wi : tensor<2x3xf64>, tensor<3x3xf64>) outs(%zero : tensor<2x3xf64>) -> tensor<2x3xf64>
    %t = math.tanh %p : tensor<2x3xf64>
    scf.yield %t : tensor<2x3xf64>
  }
  return %y : tensor<2x3xf64>
}
