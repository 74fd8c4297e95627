// RUN: tessera-opt %s --tessera-pipeline --codegen | FileCheck %s
// RUN: tessera run %s --check=interpreter --no-cache | FileCheck %s --check-prefix=EXEC

// The batches of this product have no common stride in the constant: a part of it per outer batch is read.
// EXEC: check  result0  ok
// CHECK: rt.part
// CHECK: %[[WHOLE:.*]] = rt.constant "c0"
// CHECK: %[[PART:.*]] = rt.constant "c1" dense<[3.0{{.*}} 1.600000e+01]> : tensor<14xf32>
// CHECK: rt.gemm %{{.*}}, %[[WHOLE]] to
// CHECK: rt.gemm %{{.*}}, %[[PART]] to
func.func @main(%p: tensor<2x2x2x2xf32>) -> tensor<2x2x2x2xf32> {
  %w = arith.constant dense<[[[[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0], [7.0, 8.0]]],
                             [[[9.0, 10.0], [11.0, 12.0]], [[13.0, 14.0], [15.0, 16.0]]]]> : tensor<2x2x2x2xf32>
  %zero = arith.constant dense<0.0> : tensor<2x2x2x2xf32>
  %c = linalg.contract indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d4, d1, d2)>,
                                        affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d4, d3)>,
                                        affine_map<(d0, d1, d2, d3, d4) -> (d0, d3, d1, d2)>]
      ins(%w, %p : tensor<2x2x2x2xf32>, tensor<2x2x2x2xf32>) outs(%zero : tensor<2x2x2x2xf32>) -> tensor<2x2x2x2xf32>
  return %c : tensor<2x2x2x2xf32>
}
