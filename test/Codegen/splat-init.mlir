// RUN: tessera-opt %s --tessera-pipeline --codegen | FileCheck %s
// RUN: tessera run %s --check=interpreter --no-cache | FileCheck %s --check-prefix=EXEC

// A splat as the init of an accumulator is a fill; a zero needs none.
// EXEC: check  result0  ok
// EXEC: check  result1  ok
// CHECK: rt.part
// CHECK-NOT: rt.constant
// CHECK: rt.gemm %{{.*}} batch 1 m 4 n 2 k 8 ld [8, 2, 2] stride [0, 0, 0] :
// CHECK: rt.launch @{{.*}}fill
// CHECK: rt.gemm %{{.*}} accumulate
func.func @main(%a: tensor<4x8xf32>, %b: tensor<8x2xf32>) -> (tensor<4x2xf32>, tensor<4x2xf32>) {
  %zero = arith.constant dense<0.0> : tensor<4x2xf32>
  %two = arith.constant dense<2.0> : tensor<4x2xf32>
  %0 = linalg.matmul ins(%a, %b : tensor<4x8xf32>, tensor<8x2xf32>) outs(%zero : tensor<4x2xf32>) -> tensor<4x2xf32>
  %1 = linalg.matmul ins(%a, %b : tensor<4x8xf32>, tensor<8x2xf32>) outs(%two : tensor<4x2xf32>) -> tensor<4x2xf32>
  return %0, %1 : tensor<4x2xf32>, tensor<4x2xf32>
}
