// A result may overwrite an input of its type if element i is computed of element i. The check runs such kernels in place,
// too; with overwrite (a planted fault) even kernels that do not permit it.
// RUN: tessera-opt %s --tessera-check-gpu-kernels -o /dev/null | FileCheck %s --check-prefix=EQUAL
// RUN: not tessera-opt %s --tessera-check-gpu-kernels=overwrite -o /dev/null 2>&1 | FileCheck %s --check-prefix=FAULT

// The sum of another operand's row is needed by all of the row.
// EQUAL: shifted: rows equal
func.func private @shifted(%x: tensor<33x77xf32>, %y: tensor<33x77xf32>, %o: tensor<33x77xf32>) -> tensor<33x77xf32>
    attributes {kernel.reads = 2 : i64} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<33xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<33xf32>) -> tensor<33xf32>
  %s = linalg.reduce ins(%y : tensor<33x77xf32>) outs(%f : tensor<33xf32>) dimensions = [1]
    (%a: f32, %b: f32) { %t = arith.addf %a, %b : f32
      linalg.yield %t : f32 }
  %0 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>],
                       iterator_types = ["parallel", "parallel"]}
      ins(%x, %s : tensor<33x77xf32>, tensor<33xf32>) outs(%o : tensor<33x77xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %t = arith.subf %a, %b : f32
    linalg.yield %t : f32
  } -> tensor<33x77xf32>
  return %0 : tensor<33x77xf32>
}

// EQUAL: transpose: permute equal
// FAULT: error: on the emulated GPU argument 1 differs if it overwrites argument 0, ascending
// FAULT-NEXT: @transpose
func.func private @transpose(%x: tensor<96x96xf32>, %o: tensor<96x96xf32>) -> tensor<96x96xf32> attributes {kernel.reads = 1 : i64} {
  %0 = linalg.transpose ins(%x : tensor<96x96xf32>) outs(%o : tensor<96x96xf32>) permutation = [1, 0]
  return %0 : tensor<96x96xf32>
}
