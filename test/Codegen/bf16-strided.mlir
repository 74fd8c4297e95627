// RUN: tessera run %s --check=interpreter --no-cache | FileCheck %s

// Every fourth element of bf16: LLVM cannot lower shuffles of this vector type on CPUs without bf16.
// CHECK: check  result0  ok
#map = affine_map<(i, j, k) -> (i, j, k)>
#row = affine_map<(i, j, k) -> (i, j)>
func.func @main(%x: tensor<3x5x4xbf16>, %y: tensor<3x5xbf16>) -> tensor<3x5xbf16> {
  %c2 = arith.constant 2 : index
  %0 = linalg.generic {indexing_maps = [#map, #row], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x : tensor<3x5x4xbf16>) outs(%y : tensor<3x5xbf16>) {
  ^bb0(%in: bf16, %out: bf16):
    %k = linalg.index 2 : index
    %s = arith.addf %in, %out : bf16
    %valid = arith.cmpi slt, %k, %c2 : index
    %r = arith.select %valid, %s, %out : bf16
    linalg.yield %r : bf16
  } -> tensor<3x5xbf16>
  return %0 : tensor<3x5xbf16>
}
