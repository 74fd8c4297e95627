// RUN: tessera-opt %s --dist-normalize --dist-recognize-attention | FileCheck %s

#lhs = affine_map<(b, m, n, f) -> (b, m, f)>
#rhs = affine_map<(b, m, n, f) -> (b, n, f)>
#scores = affine_map<(b, m, n, f) -> (b, m, n)>
#weights = affine_map<(b, m, n, g) -> (b, m, n)>
#values = affine_map<(b, m, n, g) -> (b, n, g)>
#output = affine_map<(b, m, n, g) -> (b, m, g)>
#id = affine_map<(b, m, n) -> (b, m, n)>

// A causal mask becomes code; the ops that computed the scores are erased.
// CHECK-LABEL: func.func @causal(
// CHECK-SAME: %[[Q:[^:]*]]: tensor<2x5x3xf32>, %[[K:[^:]*]]: tensor<2x5x3xf32>, %[[V:[^:]*]]: tensor<2x5x4xf32>
// CHECK-NOT: linalg
// CHECK: %[[O:.*]] = ext.attention indexing_maps = {{.*}} ins(%[[Q]], %[[K]], %[[V]] :
// CHECK-NEXT: ^bb0(%[[PRODUCT:.*]]: f32, %{{.*}}: index, %[[M:.*]]: index, %[[G:.*]]: index, %[[N:.*]]: index, %{{.*}}: index):
// CHECK: arith.cmpi sge
// CHECK: %[[SCORE:.*]] = arith.select
// CHECK: ext.yield %[[SCORE]] : f32
// CHECK: return %[[O]]
func.func @causal(%q: tensor<2x5x3xf32>, %k: tensor<2x5x3xf32>, %v: tensor<2x5x4xf32>) -> tensor<2x5x4xf32> {
  %zero = arith.constant 0.0 : f32
  %least = arith.constant 0xFF800000 : f32
  %scores_init = tensor.empty() : tensor<2x5x5xf32>
  %scores_zero = linalg.fill ins(%zero : f32) outs(%scores_init : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  %products = linalg.contract indexing_maps = [#lhs, #rhs, #scores]
      ins(%q, %k : tensor<2x5x3xf32>, tensor<2x5x3xf32>) outs(%scores_zero : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  %scores = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%products : tensor<2x5x5xf32>) outs(%scores_init : tensor<2x5x5xf32>) {
  ^bb0(%product: f32, %out: f32):
    %m = linalg.index 1 : index
    %n = linalg.index 2 : index
    %visible = arith.cmpi sge, %m, %n : index
    %score = arith.select %visible, %product, %least : f32
    linalg.yield %score : f32
  } -> tensor<2x5x5xf32>
  %shares = linalg.softmax dimension(2) ins(%scores : tensor<2x5x5xf32>) outs(%scores_init : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  %init = tensor.empty() : tensor<2x5x4xf32>
  %none = linalg.fill ins(%zero : f32) outs(%init : tensor<2x5x4xf32>) -> tensor<2x5x4xf32>
  %o = linalg.contract indexing_maps = [#weights, #values, #output]
      ins(%shares, %v : tensor<2x5x5xf32>, tensor<2x5x4xf32>) outs(%none : tensor<2x5x4xf32>) -> tensor<2x5x4xf32>
  return %o : tensor<2x5x4xf32>
}

// The softmax is also a result: nothing changes.
// CHECK-LABEL: func.func @read_by_others(
// CHECK-NOT: ext.attention
// CHECK: return
func.func @read_by_others(%q: tensor<2x5x3xf32>, %k: tensor<2x5x3xf32>, %v: tensor<2x5x4xf32>)
    -> (tensor<2x5x4xf32>, tensor<2x5x5xf32>) {
  %zero = arith.constant 0.0 : f32
  %scores_init = tensor.empty() : tensor<2x5x5xf32>
  %scores_zero = linalg.fill ins(%zero : f32) outs(%scores_init : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  %scores = linalg.contract indexing_maps = [#lhs, #rhs, #scores]
      ins(%q, %k : tensor<2x5x3xf32>, tensor<2x5x3xf32>) outs(%scores_zero : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  %shares = linalg.softmax dimension(2) ins(%scores : tensor<2x5x5xf32>) outs(%scores_init : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  %init = tensor.empty() : tensor<2x5x4xf32>
  %none = linalg.fill ins(%zero : f32) outs(%init : tensor<2x5x4xf32>) -> tensor<2x5x4xf32>
  %o = linalg.contract indexing_maps = [#weights, #values, #output]
      ins(%shares, %v : tensor<2x5x5xf32>, tensor<2x5x4xf32>) outs(%none : tensor<2x5x4xf32>) -> tensor<2x5x4xf32>
  return %o, %shares : tensor<2x5x4xf32>, tensor<2x5x5xf32>
}
