// Values of f32 that are extended to f64 are compared with the tolerance of f32: the exponential of a GPU is another one.
// RUN: tessera-opt %s --tessera-check-gpu-kernels -o /dev/null | FileCheck %s
// CHECK: extended: rows equal
func.func private @extended(%a0: tensor<10xf32>, %o0: tensor<10xf64>) -> tensor<10xf64> attributes {kernel.reads = 1 : i64} {
  %e = tensor.empty() : tensor<10xf32>
  %s = linalg.softmax dimension(0) ins(%a0 : tensor<10xf32>) outs(%e : tensor<10xf32>) -> tensor<10xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
      ins(%s : tensor<10xf32>) outs(%o0 : tensor<10xf64>) {
  ^bb0(%in: f32, %out: f64):
    %wide = arith.extf %in : f32 to f64
    linalg.yield %wide : f64
  } -> tensor<10xf64>
  return %r : tensor<10xf64>
}
