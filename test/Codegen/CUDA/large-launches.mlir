// Launches of 2^31 iterations and more have the schemes of smaller ones, with indices of 64 bits.
// RUN: tessera-opt %s --tessera-compile-gpu-kernels="arch=compute_80 print-loops" -o /dev/null | FileCheck %s

// CHECK-LABEL: tanh: launches 1,
// CHECK-NEXT: pointwise: grid
func.func private @tanh(%x: tensor<65536x50257xbf16>, %o: tensor<65536x50257xbf16>) -> tensor<65536x50257xbf16>
    attributes {kernel.reads = 1 : i64} {
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
                       iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<65536x50257xbf16>) outs(%o : tensor<65536x50257xbf16>) {
  ^bb0(%a: bf16, %old: bf16):
    %t = math.tanh %a : bf16
    linalg.yield %t : bf16
  } -> tensor<65536x50257xbf16>
  return %r : tensor<65536x50257xbf16>
}

// The number of rows fits into 32 bits.
// CHECK-LABEL: softmax: launches 1,
// CHECK-NEXT: rows: grid
// CHECK: arith.remui {{.*}} : i32
func.func private @softmax(%x: tensor<16x32x2048x2048xbf16>, %o: tensor<16x32x2048x2048xbf16>)
    -> tensor<16x32x2048x2048xbf16> attributes {kernel.reads = 1 : i64} {
  %r = linalg.softmax dimension(3) ins(%x : tensor<16x32x2048x2048xbf16>) outs(%o : tensor<16x32x2048x2048xbf16>)
      -> tensor<16x32x2048x2048xbf16>
  return %r : tensor<16x32x2048x2048xbf16>
}

// CHECK-LABEL: bias: launches 1,
// CHECK-NEXT: pointwise: grid
// CHECK-NOT: : i32
// CHECK: arith.remui {{.*}} : index
func.func private @bias(%x: tensor<65536x50257xbf16>, %c: tensor<50257xbf16>, %o: tensor<65536x50257xbf16>)
    -> tensor<65536x50257xbf16> attributes {kernel.reads = 2 : i64} {
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>,
                                        affine_map<(i, j) -> (i, j)>],
                       iterator_types = ["parallel", "parallel"]}
      ins(%x, %c : tensor<65536x50257xbf16>, tensor<50257xbf16>) outs(%o : tensor<65536x50257xbf16>) {
  ^bb0(%a: bf16, %b: bf16, %old: bf16):
    %s = arith.addf %a, %b : bf16
    linalg.yield %s : bf16
  } -> tensor<65536x50257xbf16>
  return %r : tensor<65536x50257xbf16>
}
