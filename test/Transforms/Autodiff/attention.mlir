// The derivative of attention rematerializes the scores, and equals differences, cut or not.
// RUN: tessera-opt %s --dist-autodiff=seed=argument | FileCheck %s
// RUN: tessera-fuzz --gradients --check %s

#q = affine_map<(b, h, m, n, f, g) -> (b, m, h, f)>
#k = affine_map<(b, h, m, n, f, g) -> (b, n, f)>
#v = affine_map<(b, h, m, n, f, g) -> (b, n, g)>
#o = affine_map<(b, h, m, n, f, g) -> (b, h, m, g)>
#bias = affine_map<(b, h, m, n, f, g) -> (h, n)>

// CHECK-LABEL: func.func @main_grad(
// CHECK-SAME: %[[G:[^ ]*]]: tensor<2x2x4x3xf64> {dist.name = "d_result0"}
// CHECK: %[[O:.*]], %[[SUM:.*]] = ext.attention
// CHECK: } -> tensor<2x2x4x3xf64>, tensor<2x2x4xf64>
// CHECK: %[[DELTA:.*]] = linalg.generic {{.*}} ins(%[[O]], %[[G]] :
// CHECK: %[[DQ:.*]], %[[DK:.*]], %[[DV:.*]] = ext.attention_backward {{.*}} %[[G]], %[[SUM]], %[[DELTA]],
// CHECK: derivative {
// CHECK: return %[[O]], %[[DQ]], %[[DK]], %[[DV]]
func.func @main(%q: tensor<2x4x2x3xf64>, %k: tensor<2x4x3xf64>, %v: tensor<2x4x3xf64>) -> tensor<2x2x4x3xf64> {
  %bias = arith.constant dense<[[0.1, 0.2, -0.3, 0.4], [-0.5, 0.6, 0.7, -0.8]]> : tensor<2x4xf64>
  %o = ext.attention indexing_maps = [#q, #k, #v, #bias, #o]
      ins(%q, %k, %v, %bias : tensor<2x4x2x3xf64>, tensor<2x4x3xf64>, tensor<2x4x3xf64>, tensor<2x4xf64>) {
  ^bb0(%product: f64, %b: f64, %i0: index, %i1: index, %m: index, %n: index, %i4: index, %i5: index):
    %least = arith.constant 0xFFF0000000000000 : f64
    %scale = arith.constant 1.5 : f64
    %scaled = arith.mulf %product, %scale : f64
    %capped = math.tanh %scaled : f64
    %biased = arith.addf %capped, %b : f64
    %visible = arith.cmpi sge, %m, %n : index
    %score = arith.select %visible, %biased, %least : f64
    ext.yield %score : f64
  } -> tensor<2x2x4x3xf64>
  return %o : tensor<2x2x4x3xf64>
}
