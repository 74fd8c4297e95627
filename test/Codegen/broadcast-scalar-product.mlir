// A product with a broadcast scalar and a summed loop of one iteration: both operands keep that loop.
// RUN: tessera-opt %s --tessera-pipeline --codegen | FileCheck %s

// CHECK: rt.gemm
#a = affine_map<(d0, d1, d2) -> (d0, d2)>
#b = affine_map<(d0, d1, d2) -> (d1, d2)>
#c = affine_map<(d0, d1, d2) -> (d0, d1)>
func.func @main(%x: tensor<i32>, %w: tensor<22x1xi32>) -> tensor<1x22xi32> {
  %zero = arith.constant 0 : i32
  %e = tensor.empty() : tensor<1x1xi32>
  %all = linalg.broadcast ins(%x : tensor<i32>) outs(%e : tensor<1x1xi32>) dimensions = [0, 1]
  %f = tensor.empty() : tensor<1x22xi32>
  %g = linalg.fill ins(%zero : i32) outs(%f : tensor<1x22xi32>) -> tensor<1x22xi32>
  %y = linalg.matmul indexing_maps = [#a, #b, #c] ins(%all, %w : tensor<1x1xi32>, tensor<22x1xi32>)
                     outs(%g : tensor<1x22xi32>) -> tensor<1x22xi32>
  return %y : tensor<1x22xi32>
}
