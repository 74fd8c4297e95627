// RUN: tessera-opt %s --dist-autodiff="seed=argument" | FileCheck %s
// RUN: tessera-fuzz --gradients --check %s --seed 0
// RUN: tessera-fuzz --gradients --check %s --seed 1
// RUN: tessera-fuzz --gradients --check %s --seed 2

// The reverse is a branch on the same condition; the forward branch returns the values that it reads.
// CHECK-LABEL: func.func @main_grad(
// CHECK: %[[F:.*]]:2 = scf.if %[[C:.*]] -> (tensor<3xf64>, tensor<3xf64>)
// CHECK: math.exp
// CHECK: %{{.*}} = scf.if %[[C]] -> (tensor<3xf64>)
// CHECK-NOT: math.exp
// CHECK: ins({{.*}}%[[F]]#1
// CHECK: scf.yield
// CHECK: } else {
func.func @main(%x: tensor<3xf64>, %which: tensor<i32> {dist.range = [0, 2]}) -> tensor<3xf64> {
  %one = arith.constant 1 : i32
  %i = tensor.extract %which[] : tensor<i32>
  %c = arith.cmpi eq, %i, %one : i32
  %y = scf.if %c -> (tensor<3xf64>) {
    %e = math.exp %x : tensor<3xf64>
    %s = math.sin %e : tensor<3xf64>
    scf.yield %s : tensor<3xf64>
  } else {
    %p = arith.mulf %x, %x : tensor<3xf64>
    scf.yield %p : tensor<3xf64>
  }
  return %y : tensor<3xf64>
}
