// RUN: tessera-opt %s --dist-autodiff="seed=argument" | FileCheck %s
// RUN: tessera-fuzz --gradients --check %s

// The cotangent of a reversed read is reversed, also the index in the body.
// CHECK-DAG: #[[TURNED:.*]] = affine_map<(d0, d1) -> (-d0 + 5, d1)>
// CHECK-LABEL: func.func @main_grad
// CHECK: linalg.generic {indexing_maps = [{{.*}}#[[TURNED]]
// CHECK: linalg.generic {indexing_maps = [{{.*}}#[[TURNED]]
func.func @main(%x: tensor<6x3xf64>) -> tensor<6x3xf64> {
  %e = tensor.empty() : tensor<6x3xf64>
  %0 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (-i + 5, j)>, affine_map<(i, j) -> (i, j)>],
                       iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<6x3xf64>) outs(%e : tensor<6x3xf64>) {
  ^bb0(%a: f64, %o: f64):
    %i = linalg.index 0 : index
    %k = arith.index_cast %i : index to i64
    %f = arith.sitofp %k : i64 to f64
    %s = math.sin %a : f64
    %p = arith.mulf %s, %f : f64
    linalg.yield %p : f64
  } -> tensor<6x3xf64>
  return %0 : tensor<6x3xf64>
}
