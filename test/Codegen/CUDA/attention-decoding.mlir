// Few queries have few blocks, so parts of the keys go to blocks of their own, whose results a second launch combines.
// RUN: tessera-opt %s --tessera-compile-gpu-kernels="arch=compute_80" -o /dev/null | FileCheck %s
// RUN: tessera-opt %s --tessera-check-gpu-kernels -o /dev/null | FileCheck %s --check-prefix=EQUAL

#bmf = affine_map<(b, m, n, f, g) -> (b, m, f)>
#bnf = affine_map<(b, m, n, f, g) -> (b, n, f)>
#bng = affine_map<(b, m, n, f, g) -> (b, n, g)>
#bmg = affine_map<(b, m, n, f, g) -> (b, m, g)>
#bm = affine_map<(b, m, n, f, g) -> (b, m)>
#of_heads_bhmf = affine_map<(b, h, m, n, f, g) -> (b, h, m, f)>
#of_heads_bnf = affine_map<(b, h, m, n, f, g) -> (b, n, f)>
#of_heads_bng = affine_map<(b, h, m, n, f, g) -> (b, n, g)>
#of_heads_bhmg = affine_map<(b, h, m, n, f, g) -> (b, h, m, g)>
#of_heads_bhm = affine_map<(b, h, m, n, f, g) -> (b, h, m)>

// Four heads share 2,000 keys, which 13 blocks of a warp share.
// CHECK-LABEL: shared_keys: launches 2, workspace 27648
// CHECK-NEXT: attention: grid 26, block 32
// CHECK-NEXT: attention: grid 1, block 256
// EQUAL: shared_keys: attention attention equal
func.func private @shared_keys(%q: tensor<2x4x1x64xf32>, %k: tensor<2x2000x64xf32>, %v: tensor<2x2000x64xf32>,
    %out0: tensor<2x4x1x64xf32>, %out1: tensor<2x4x1xf32>)
    -> (tensor<2x4x1x64xf32>, tensor<2x4x1xf32>) attributes {kernel.reads = 3 : i64} {
  %r:2 = ext.attention indexing_maps = [#of_heads_bhmf, #of_heads_bnf, #of_heads_bng, #of_heads_bhmg, #of_heads_bhm]
      ins(%q, %k, %v :
          tensor<2x4x1x64xf32>, tensor<2x2000x64xf32>, tensor<2x2000x64xf32>) {
  ^bb0(%p: f32, %ib: index, %ih: index, %im: index, %in: index, %if: index, %ig: index):
    %scale = arith.constant 0.125 : f32
    %s = arith.mulf %p, %scale : f32
    ext.yield %s : f32
  } -> tensor<2x4x1x64xf32>, tensor<2x4x1xf32>
  %c0 = linalg.copy ins(%r#0 : tensor<2x4x1x64xf32>) outs(%out0 : tensor<2x4x1x64xf32>) -> tensor<2x4x1x64xf32>
  %c1 = linalg.copy ins(%r#1 : tensor<2x4x1xf32>) outs(%out1 : tensor<2x4x1xf32>) -> tensor<2x4x1xf32>
  return %c0, %c1 : tensor<2x4x1x64xf32>, tensor<2x4x1xf32>
}

// A length that is data: keys from there on are not seen, so that the last parts see none.
// CHECK-LABEL: length: launches 2
// EQUAL: length: attention attention equal
func.func private @length(%q: tensor<3x2x128xbf16>, %k: tensor<3x1100x128xbf16>, %v: tensor<3x1100x128xbf16>,
    %length: tensor<3xindex>, %out0: tensor<3x2x128xbf16>)
    -> tensor<3x2x128xbf16> attributes {kernel.reads = 4 : i64} {
  %r = ext.attention indexing_maps = [#bmf, #bnf, #bng, affine_map<(b, m, n, f, g) -> (b)>, #bmg]
      ins(%q, %k, %v, %length :
          tensor<3x2x128xbf16>, tensor<3x1100x128xbf16>, tensor<3x1100x128xbf16>, tensor<3xindex>) {
  ^bb0(%p: f32, %l: index, %ib: index, %im: index, %in: index, %if: index, %ig: index):
    %scale = arith.constant 0.125 : f32
    %s = arith.mulf %p, %scale : f32
    %most = arith.constant 700 : index
    %least = arith.constant 1 : index
    %low = arith.maxsi %l, %least : index
    %end = arith.minsi %low, %most : index
    %c = arith.cmpi slt, %in, %end : index
    %none = arith.constant 0xFF800000 : f32
    %u = arith.select %c, %s, %none : f32
    ext.yield %u : f32
  } -> tensor<3x2x128xbf16>
  %c0 = linalg.copy ins(%r : tensor<3x2x128xbf16>) outs(%out0 : tensor<3x2x128xbf16>) -> tensor<3x2x128xbf16>
  return %c0 : tensor<3x2x128xbf16>
}

// Of a window the parts are those of the keys that a block's queries see. Rows of 10 elements.
// CHECK-LABEL: window: launches 2
// CHECK-NEXT: attention: grid 12, block 128
// EQUAL: window: attention attention equal
func.func private @window(%q: tensor<1x100x20xf16>, %k: tensor<1x3000x20xf16>, %v: tensor<1x3000x10xf16>,
    %out0: tensor<1x100x10xf16>, %out1: tensor<1x100xf32>)
    -> (tensor<1x100x10xf16>, tensor<1x100xf32>) attributes {kernel.reads = 3 : i64} {
  %r:2 = ext.attention indexing_maps = [#bmf, #bnf, #bng, #bmg, #bm]
      ins(%q, %k, %v :
          tensor<1x100x20xf16>, tensor<1x3000x20xf16>, tensor<1x3000x10xf16>) {
  ^bb0(%p: f32, %ib: index, %im: index, %in: index, %if: index, %ig: index):
    %first = arith.constant 900 : index
    %last = arith.constant 2300 : index
    %from = arith.addi %im, %first : index
    %to = arith.addi %im, %last : index
    %above = arith.cmpi sge, %in, %from : index
    %below = arith.cmpi sle, %in, %to : index
    %c = arith.andi %above, %below : i1
    %none = arith.constant 0xFF800000 : f32
    %u = arith.select %c, %p, %none : f32
    ext.yield %u : f32
  } -> tensor<1x100x10xf16>, tensor<1x100xf32>
  %c0 = linalg.copy ins(%r#0 : tensor<1x100x10xf16>) outs(%out0 : tensor<1x100x10xf16>) -> tensor<1x100x10xf16>
  %c1 = linalg.copy ins(%r#1 : tensor<1x100xf32>) outs(%out1 : tensor<1x100xf32>) -> tensor<1x100xf32>
  return %c0, %c1 : tensor<1x100x10xf16>, tensor<1x100xf32>
}

// Odd rows are stored by elements.
// CHECK-LABEL: odd_rows: launches 2
// EQUAL: odd_rows: attention attention equal
func.func private @odd_rows(%q: tensor<1x1x8xf32>, %k: tensor<1x513x8xf32>, %v: tensor<1x513x7xf32>,
    %out0: tensor<1x1x7xf32>) -> tensor<1x1x7xf32> attributes {kernel.reads = 3 : i64} {
  %r = ext.attention indexing_maps = [#bmf, #bnf, #bng, #bmg]
      ins(%q, %k, %v : tensor<1x1x8xf32>, tensor<1x513x8xf32>, tensor<1x513x7xf32>) {
  ^bb0(%p: f32, %ib: index, %im: index, %in: index, %if: index, %ig: index):
    ext.yield %p : f32
  } -> tensor<1x1x7xf32>
  %c0 = linalg.copy ins(%r : tensor<1x1x7xf32>) outs(%out0 : tensor<1x1x7xf32>) -> tensor<1x1x7xf32>
  return %c0 : tensor<1x1x7xf32>
}
