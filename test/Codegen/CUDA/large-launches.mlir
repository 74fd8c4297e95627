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

// The sum of all elements sums each row first. Its second step has one element per row, which no team shares: it is a launch of
// its own.
// CHECK-LABEL: sum_and_rows: launches 3,
func.func private @sum_and_rows(%x: tensor<64x256x56x56xf32>, %s: tensor<f32>, %y: tensor<64x256x56x56xf32>)
    -> (tensor<f32>, tensor<64x256x56x56xf32>) attributes {kernel.reads = 1 : i64} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x256x56x56xf32>
  %none = tensor.empty() : tensor<f32>
  %fill = linalg.fill ins(%zero : f32) outs(%none : tensor<f32>) -> tensor<f32>
  %positive = linalg.generic {indexing_maps = [affine_map<(a, b, c, d) -> (a, b, c, d)>, affine_map<(a, b, c, d) -> (a, b, c, d)>],
                              iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%x : tensor<64x256x56x56xf32>) outs(%y : tensor<64x256x56x56xf32>) {
  ^bb0(%a: f32, %old: f32):
    %m = arith.maximumf %a, %zero : f32
    linalg.yield %m : f32
  } -> tensor<64x256x56x56xf32>
  %square = linalg.generic {indexing_maps = [affine_map<(a, b, c, d) -> (a, b, c, d)>, affine_map<(a, b, c, d) -> (a, b, c, d)>],
                            iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%positive : tensor<64x256x56x56xf32>) outs(%e : tensor<64x256x56x56xf32>) {
  ^bb0(%a: f32, %old: f32):
    %m = arith.mulf %a, %a : f32
    linalg.yield %m : f32
  } -> tensor<64x256x56x56xf32>
  %sum = linalg.generic {indexing_maps = [affine_map<(a, b, c, d) -> (a, b, c, d)>, affine_map<(a, b, c, d) -> ()>],
                         iterator_types = ["reduction", "reduction", "reduction", "reduction"]}
      ins(%square : tensor<64x256x56x56xf32>) outs(%fill : tensor<f32>) {
  ^bb0(%a: f32, %old: f32):
    %m = arith.addf %old, %a : f32
    linalg.yield %m : f32
  } -> tensor<f32>
  %half = linalg.generic {indexing_maps = [affine_map<() -> ()>, affine_map<() -> ()>], iterator_types = []}
      ins(%sum : tensor<f32>) outs(%s : tensor<f32>) {
  ^bb0(%a: f32, %old: f32):
    %m = arith.addf %a, %a : f32
    linalg.yield %m : f32
  } -> tensor<f32>
  return %half, %positive : tensor<f32>, tensor<64x256x56x56xf32>
}
