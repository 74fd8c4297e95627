// A sum of one term, such as the derivative of one look-up per row, is fused into its user: no tensor holds the terms.
// RUN: tessera-opt %s --tessera-compile-kernels -o /dev/null | FileCheck %s
// RUN: tessera-opt %s --tessera-check-gpu-kernels -o /dev/null | FileCheck %s --check-prefix=GPU

// CHECK: kernel: vectorised, tasks {{[0-9]+}}, stack 0, heap 0
// GPU: kernel: {{.*}} equal
func.func private @kernel(%x: tensor<512x1000xf32>, %labels: tensor<512x1xi32>, %y: tensor<512x1000xf32>) -> tensor<512x1000xf32> attributes {kernel.reads = 2 : i64} {
  %minus = arith.constant -1.0 : f32
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<512x1000xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<512x1000xf32>) -> tensor<512x1000xf32>
  %hot = linalg.generic {indexing_maps = [affine_map<(i, v, t) -> (i, t)>, affine_map<(i, v, t) -> (i, v)>],
      iterator_types = ["parallel", "parallel", "reduction"]} ins(%labels : tensor<512x1xi32>) outs(%zeros : tensor<512x1000xf32>) {
  ^bb0(%label: i32, %sum: f32):
    %v = linalg.index 1 : index
    %number = arith.index_cast %v : index to i32
    %here = arith.cmpi eq, %label, %number : i32
    %term = arith.select %here, %minus, %zero : f32
    %next = arith.addf %sum, %term : f32
    linalg.yield %next : f32
  } -> tensor<512x1000xf32>
  %all = linalg.generic {indexing_maps = [affine_map<(i, v) -> (i, v)>, affine_map<(i, v) -> (i, v)>, affine_map<(i, v) -> (i, v)>],
      iterator_types = ["parallel", "parallel"]} ins(%x, %hot : tensor<512x1000xf32>, tensor<512x1000xf32>) outs(%y : tensor<512x1000xf32>) {
  ^bb0(%a: f32, %b: f32, %_: f32):
    %c = arith.addf %a, %b : f32
    linalg.yield %c : f32
  } -> tensor<512x1000xf32>
  return %all : tensor<512x1000xf32>
}
