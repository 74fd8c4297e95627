// Sums of many 16-bit floats are computed in f32 and rounded once: rounded after every addition,
// bf16 would stop growing at 256, and the sum would depend on how it is cut.
// RUN: tessera-opt %s --tessera-compile-kernels=print-loops -o /dev/null | FileCheck %s --check-prefix=LOOPS
// RUN: tessera-opt %s --tessera-check-gpu-kernels -o /dev/null | FileCheck %s

// LOOPS-LABEL: columns: vectorised
// LOOPS: arith.extf {{.*}} to vector<{{.*}}xf32>
// LOOPS: arith.addf {{.*}} : vector<{{.*}}xf32>
// LOOPS: arith.truncf {{.*}} to vector<{{.*}}xbf16>

// CHECK: columns: plain plain equal
func.func private @columns(%x: tensor<4096x64xbf16>, %y: tensor<64xbf16>) -> tensor<64xbf16> attributes {kernel.reads = 1 : i64} {
  %zero = arith.constant 0.0 : bf16
  %begin = linalg.fill ins(%zero : bf16) outs(%y : tensor<64xbf16>) -> tensor<64xbf16>
  %sum = linalg.reduce { arith.addf } ins(%x : tensor<4096x64xbf16>) outs(%begin : tensor<64xbf16>) dimensions = [0]
  return %sum : tensor<64xbf16>
}

// An addend is the initial value, and products are not rounded before they are added.
// CHECK: products: {{.*}} equal
func.func private @products(%a: tensor<64x300xf16>, %b: tensor<64x300xf16>, %c: tensor<64xf16>, %y: tensor<64xf16>) -> tensor<64xf16> attributes {kernel.reads = 3 : i64} {
  %sum = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
      iterator_types = ["parallel", "reduction"]} ins(%a, %b : tensor<64x300xf16>, tensor<64x300xf16>) outs(%c : tensor<64xf16>) {
  ^bb0(%p: f16, %q: f16, %s: f16):
    %m = arith.mulf %p, %q : f16
    %t = arith.addf %s, %m : f16
    linalg.yield %t : f16
  } -> tensor<64xf16>
  return %sum : tensor<64xf16>
}

// A norm, with its sum of squares beside the written values.
// CHECK: norm: rows equal
func.func private @norm(%x: tensor<256x1024xbf16>, %y: tensor<256x1024xbf16>) -> tensor<256x1024xbf16> attributes {kernel.reads = 1 : i64} {
  %zero = arith.constant 0.0 : bf16
  %e = tensor.empty() : tensor<256xbf16>
  %begin = linalg.fill ins(%zero : bf16) outs(%e : tensor<256xbf16>) -> tensor<256xbf16>
  %sum = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
      iterator_types = ["parallel", "reduction"]} ins(%x : tensor<256x1024xbf16>) outs(%begin : tensor<256xbf16>) {
  ^bb0(%p: bf16, %s: bf16):
    %m = arith.mulf %p, %p : bf16
    %t = arith.addf %m, %s : bf16
    linalg.yield %t : bf16
  } -> tensor<256xbf16>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]} ins(%x, %sum : tensor<256x1024xbf16>, tensor<256xbf16>) outs(%y : tensor<256x1024xbf16>) {
  ^bb0(%p: bf16, %s: bf16, %o: bf16):
    %q = arith.divf %p, %s : bf16
    linalg.yield %q : bf16
  } -> tensor<256x1024xbf16>
  return %r : tensor<256x1024xbf16>
}
