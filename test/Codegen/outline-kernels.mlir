// RUN: tessera-opt %s --codegen-prepare --codegen-fuse --codegen-outline-kernels | FileCheck %s

// Equal groups are one kernel; a group with other shapes is another.

// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[X:.*]]: tensor<4x8xf32>, %[[Y:.*]]: tensor<8xf32>
func.func @main(%x: tensor<4x8xf32>, %y: tensor<8xf32>) -> (tensor<4x8xf32>, tensor<8xf32>) attributes {dist.view = "local"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  // CHECK: %[[E:.*]] = tensor.empty() : tensor<4x8xf32>
  // CHECK: %[[A:.*]] = call @k0_exp(%[[X]], %[[E]]) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %a = math.exp %x : tensor<4x8xf32>
  // CHECK: scf.for
  // CHECK: call @k0_exp(
  %b = scf.for %i = %c0 to %c3 step %c1 iter_args(%v = %a) -> tensor<4x8xf32> {
    %n = math.exp %v : tensor<4x8xf32>
    scf.yield %n : tensor<4x8xf32>
  }
  // CHECK: call @k1_exp(%[[Y]], %{{.*}}) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %c = math.exp %y : tensor<8xf32>
  return %b, %c : tensor<4x8xf32>, tensor<8xf32>
}

// CHECK: func.func private @k0_exp(%[[IN:.*]]: tensor<4x8xf32>, %[[OUT:.*]]: tensor<4x8xf32>) -> tensor<4x8xf32> attributes {kernel.reads = 1 : i64}
// CHECK: linalg.generic {{.*}} ins(%[[IN]] : tensor<4x8xf32>) outs(%[[OUT]] : tensor<4x8xf32>)
// CHECK: func.func private @k1_exp(
// CHECK-NOT: func.func
