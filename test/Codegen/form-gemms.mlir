// RUN: tessera-opt %s --codegen-prepare --codegen-form-gemms --split-input-file | FileCheck %s

// A transposed operand is a map, not a copy.

// CHECK-LABEL: func.func @transposed(
// CHECK-SAME: %[[A:.*]]: tensor<8x4xf32>, %[[B:.*]]: tensor<8x5xf32>
func.func @transposed(%a: tensor<8x4xf32>, %b: tensor<8x5xf32>) -> tensor<4x5xf32> attributes {dist.view = "local"} {
  %zero = arith.constant 0.0 : f32
  %et = tensor.empty() : tensor<4x8xf32>
  // CHECK-NOT: linalg.generic
  %t = linalg.transpose ins(%a : tensor<8x4xf32>) outs(%et : tensor<4x8xf32>) permutation = [1, 0]
  %e = tensor.empty() : tensor<4x5xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<4x5xf32>) -> tensor<4x5xf32>
  // CHECK: linalg.contract {{.*}} ins(%[[A]], %[[B]] : tensor<8x4xf32>, tensor<8x5xf32>)
  %m = linalg.matmul ins(%t, %b : tensor<4x8xf32>, tensor<8x5xf32>) outs(%z : tensor<4x5xf32>) -> tensor<4x5xf32>
  return %m : tensor<4x5xf32>
}

// -----

// Attention: heads brought to the front, collapsed with the batch, and back. Nothing is copied.

// CHECK-LABEL: func.func @attention(
func.func @attention(%q: tensor<2x16x32xf32>, %k: tensor<2x16x32xf32>, %v: tensor<2x16x32xf32>) -> tensor<2x16x32xf32> attributes {dist.view = "local"} {
  %zero = arith.constant 0.0 : f32
  %qe = tensor.expand_shape %q [[0], [1], [2, 3]] output_shape [2, 16, 4, 8] : tensor<2x16x32xf32> into tensor<2x16x4x8xf32>
  %ke = tensor.expand_shape %k [[0], [1], [2, 3]] output_shape [2, 16, 4, 8] : tensor<2x16x32xf32> into tensor<2x16x4x8xf32>
  %ve = tensor.expand_shape %v [[0], [1], [2, 3]] output_shape [2, 16, 4, 8] : tensor<2x16x32xf32> into tensor<2x16x4x8xf32>
  %eh = tensor.empty() : tensor<2x4x16x8xf32>
  // CHECK-NOT: linalg.generic
  %qt = linalg.transpose ins(%qe : tensor<2x16x4x8xf32>) outs(%eh : tensor<2x4x16x8xf32>) permutation = [0, 2, 1, 3]
  %kt = linalg.transpose ins(%ke : tensor<2x16x4x8xf32>) outs(%eh : tensor<2x4x16x8xf32>) permutation = [0, 2, 1, 3]
  %vt = linalg.transpose ins(%ve : tensor<2x16x4x8xf32>) outs(%eh : tensor<2x4x16x8xf32>) permutation = [0, 2, 1, 3]
  %qc = tensor.collapse_shape %qt [[0, 1], [2], [3]] : tensor<2x4x16x8xf32> into tensor<8x16x8xf32>
  %kc = tensor.collapse_shape %kt [[0, 1], [2], [3]] : tensor<2x4x16x8xf32> into tensor<8x16x8xf32>
  %vc = tensor.collapse_shape %vt [[0, 1], [2], [3]] : tensor<2x4x16x8xf32> into tensor<8x16x8xf32>
  %ekk = tensor.empty() : tensor<8x8x16xf32>
  %kct = linalg.transpose ins(%kc : tensor<8x16x8xf32>) outs(%ekk : tensor<8x8x16xf32>) permutation = [0, 2, 1]
  %es = tensor.empty() : tensor<8x16x16xf32>
  %zs = linalg.fill ins(%zero : f32) outs(%es : tensor<8x16x16xf32>) -> tensor<8x16x16xf32>
  // CHECK: linalg.contract {{.*}} -> tensor<2x4x16x16xf32>
  %s = linalg.batch_matmul ins(%qc, %kct : tensor<8x16x8xf32>, tensor<8x8x16xf32>) outs(%zs : tensor<8x16x16xf32>) -> tensor<8x16x16xf32>
  %eo = tensor.empty() : tensor<8x16x8xf32>
  %zo = linalg.fill ins(%zero : f32) outs(%eo : tensor<8x16x8xf32>) -> tensor<8x16x8xf32>
  // CHECK: linalg.contract {{.*}} -> tensor<2x16x4x8xf32>
  %o = linalg.batch_matmul ins(%s, %vc : tensor<8x16x16xf32>, tensor<8x16x8xf32>) outs(%zo : tensor<8x16x8xf32>) -> tensor<8x16x8xf32>
  %oe = tensor.expand_shape %o [[0, 1], [2], [3]] output_shape [2, 4, 16, 8] : tensor<8x16x8xf32> into tensor<2x4x16x8xf32>
  %et = tensor.empty() : tensor<2x16x4x8xf32>
  // CHECK-NOT: linalg.generic
  %ot = linalg.transpose ins(%oe : tensor<2x4x16x8xf32>) outs(%et : tensor<2x16x4x8xf32>) permutation = [0, 2, 1, 3]
  %oc = tensor.collapse_shape %ot [[0], [1], [2, 3]] : tensor<2x16x4x8xf32> into tensor<2x16x32xf32>
  return %oc : tensor<2x16x32xf32>
}

// -----

// Two summed dimensions that cannot be merged: the smaller operand is copied into rows.

// CHECK-LABEL: func.func @packed(
// CHECK-SAME: %[[A:.*]]: tensor<16x8x8xf32>, %[[B:.*]]: tensor<8x8x4xf32>
func.func @packed(%a: tensor<16x8x8xf32>, %b: tensor<8x8x4xf32>) -> tensor<16x4xf32> attributes {dist.view = "local"} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<16x4xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<16x4xf32>) -> tensor<16x4xf32>
  // CHECK: %[[P:.*]] = linalg.generic {{.*}} ins(%[[B]] :
  // CHECK: linalg.contract {{.*}} ins(%[[A]], %[[P]] :
  %m = linalg.contract indexing_maps = [affine_map<(i, j, k, l) -> (i, k, l)>, affine_map<(i, j, k, l) -> (l, k, j)>, affine_map<(i, j, k, l) -> (i, j)>]
    ins(%a, %b : tensor<16x8x8xf32>, tensor<8x8x4xf32>) outs(%z : tensor<16x4xf32>) -> tensor<16x4xf32>
  return %m : tensor<16x4xf32>
}

// -----

// A product of different float types: libraries support one type, so the narrow operand is extended. A small one is a kernel.

#tn_a = affine_map<(k, m, n) -> (k, m)>
#tn_b = affine_map<(k, m, n) -> (k, n)>
#tn_c = affine_map<(k, m, n) -> (m, n)>
// CHECK-LABEL: func.func @mixed(
// CHECK-SAME: %[[X:.*]]: tensor<64x16xbf16>, %[[G:.*]]: tensor<64x32xf32>
func.func @mixed(%x: tensor<64x16xbf16>, %g: tensor<64x32xf32>) -> tensor<16x32xf32> attributes {dist.view = "local"} {
  %z = arith.constant dense<0.0> : tensor<16x32xf32>
  // CHECK: %[[WIDE:.*]] = linalg.generic {{.*}} ins(%[[X]] : tensor<64x16xbf16>)
  // CHECK: arith.extf
  // CHECK: linalg.contract {{.*}} ins(%[[WIDE]], %[[G]] : tensor<64x16xf32>, tensor<64x32xf32>)
  %r = linalg.generic {indexing_maps = [#tn_a, #tn_b, #tn_c], iterator_types = ["reduction", "parallel", "parallel"]}
      ins(%x, %g : tensor<64x16xbf16>, tensor<64x32xf32>) outs(%z : tensor<16x32xf32>) {
  ^bb0(%p: bf16, %q: f32, %o: f32):
    %w = arith.extf %p : bf16 to f32
    %m = arith.mulf %w, %q : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<16x32xf32>
  return %r : tensor<16x32xf32>
}

// CHECK-LABEL: func.func @mixed_small(
// CHECK-NOT: linalg.contract
// CHECK: return
func.func @mixed_small(%x: tensor<4x3xbf16>, %g: tensor<4x2xf32>) -> tensor<3x2xf32> attributes {dist.view = "local"} {
  %z = arith.constant dense<0.0> : tensor<3x2xf32>
  %r = linalg.generic {indexing_maps = [#tn_a, #tn_b, #tn_c], iterator_types = ["reduction", "parallel", "parallel"]}
      ins(%x, %g : tensor<4x3xbf16>, tensor<4x2xf32>) outs(%z : tensor<3x2xf32>) {
  ^bb0(%p: bf16, %q: f32, %o: f32):
    %w = arith.extf %p : bf16 to f32
    %m = arith.mulf %w, %q : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<3x2xf32>
  return %r : tensor<3x2xf32>
}

// -----

// A loop of extent 1 that one operand lacks is no loop of a contraction: the generic remains.

// CHECK-LABEL: func.func @missing_unit_loop(
func.func @missing_unit_loop(%a: tensor<2x1x64xf32>, %b: tensor<2x64xf32>, %c: tensor<64xf32>) -> tensor<64xf32> attributes {dist.view = "local"} {
  // CHECK: linalg.generic
  // CHECK-SAME: ["reduction", "reduction", "parallel"]
  // CHECK-NOT: linalg.contract
  %r = linalg.generic {
    indexing_maps = [affine_map<(n, h, c) -> (n, h, c)>, affine_map<(n, h, c) -> (n, c)>, affine_map<(n, h, c) -> (c)>],
    iterator_types = ["reduction", "reduction", "parallel"]
  } ins(%a, %b : tensor<2x1x64xf32>, tensor<2x64xf32>) outs(%c : tensor<64xf32>) {
  ^bb0(%x: f32, %y: f32, %s: f32):
    %p = arith.mulf %x, %y : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<64xf32>
  return %r : tensor<64xf32>
}
