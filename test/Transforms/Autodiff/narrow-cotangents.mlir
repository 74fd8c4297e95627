// RUN: tessera-opt %s --dist-autodiff=seed=argument | FileCheck %s

// Sums of 16-bit cotangents are computed in f32 and rounded once.
// CHECK-LABEL: func.func @main_grad(
// CHECK-SAME: %[[X:.*]]: tensor<8x4xbf16>, %[[W:.*]]: tensor<4x6xbf16>, %[[B:.*]]: tensor<6xbf16>, %[[G:[^:]*]]: tensor<8x6xbf16>
// CHECK: %[[WIDE:.*]] = linalg.generic {{.*}}iterator_types = ["reduction", "parallel"]} ins(%[[G]] : tensor<8x6xbf16>) outs(%{{.*}} : tensor<6xf32>)
// CHECK: arith.extf
// CHECK: arith.truncf %[[WIDE]] : tensor<6xf32> to tensor<6xbf16>
// CHECK: linalg.contract {{.*}} -> tensor<8x4xf32>
// CHECK: arith.truncf
// CHECK: linalg.contract {{.*}} -> tensor<4x6xf32>
// CHECK: arith.truncf
func.func @main(%x: tensor<8x4xbf16>, %w: tensor<4x6xbf16>, %b: tensor<6xbf16>) -> tensor<8x6xbf16> {
  %zero = arith.constant dense<0.0> : tensor<8x6xbf16>
  %y = linalg.matmul ins(%x, %w : tensor<8x4xbf16>, tensor<4x6xbf16>) outs(%zero : tensor<8x6xbf16>) -> tensor<8x6xbf16>
  %empty = tensor.empty() : tensor<8x6xbf16>
  %z = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>],
                       iterator_types = ["parallel", "parallel"]}
      ins(%y, %b : tensor<8x6xbf16>, tensor<6xbf16>) outs(%empty : tensor<8x6xbf16>) {
  ^bb0(%yi: bf16, %bi: bf16, %out: bf16):
    %s = arith.addf %yi, %bi : bf16
    linalg.yield %s : bf16
  } -> tensor<8x6xbf16>
  return %z : tensor<8x6xbf16>
}
