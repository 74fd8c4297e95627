// RUN: tessera-opt %s --dist-mark-fused-attention | FileCheck %s
// RUN: tessera-opt %s --tessera-pipeline="compile-to=normalized gpu=1" | FileCheck %s --check-prefix=GPU
// RUN: tessera-opt %s --tessera-pipeline="compile-to=normalized" | FileCheck %s --check-prefix=CPU
// CPU-NOT: ext.fused

#bmf = affine_map<(b, m, n, f, g) -> (b, m, f)>
#bnf = affine_map<(b, m, n, f, g) -> (b, n, f)>
#bng = affine_map<(b, m, n, f, g) -> (b, n, g)>
#bmg = affine_map<(b, m, n, f, g) -> (b, m, g)>

// CHECK-LABEL: @of_f32
// CHECK: ext.fused
// GPU: ext.fused
func.func @of_f32(%q: tensor<2x8x16xf32>, %k: tensor<2x8x16xf32>, %v: tensor<2x8x16xf32>) -> tensor<2x8x16xf32> {
  %0 = ext.attention indexing_maps = [#bmf, #bnf, #bng, #bmg] ins(%q, %k, %v : tensor<2x8x16xf32>, tensor<2x8x16xf32>, tensor<2x8x16xf32>) {
  ^bb0(%p: f32, %ib: index, %im: index, %in: index, %if: index, %ig: index):
    ext.yield %p : f32
  } -> tensor<2x8x16xf32>
  return %0 : tensor<2x8x16xf32>
}

// GPU kernels have no f64.
// CHECK-LABEL: @of_f64
// CHECK-NOT: ext.fused
func.func @of_f64(%q: tensor<2x8x16xf64>, %k: tensor<2x8x16xf64>, %v: tensor<2x8x16xf64>) -> tensor<2x8x16xf64> {
  %0 = ext.attention indexing_maps = [#bmf, #bnf, #bng, #bmg] ins(%q, %k, %v : tensor<2x8x16xf64>, tensor<2x8x16xf64>, tensor<2x8x16xf64>) {
  ^bb0(%p: f64, %ib: index, %im: index, %in: index, %if: index, %ig: index):
    ext.yield %p : f64
  } -> tensor<2x8x16xf64>
  return %0 : tensor<2x8x16xf64>
}
