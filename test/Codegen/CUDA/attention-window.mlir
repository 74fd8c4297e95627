// Tiles of keys that no query of a block sees are skipped: the bounds of the loop are computed.
// RUN: tessera-opt %s --tessera-check-gpu-kernels -o /dev/null | FileCheck %s --check-prefix=EQUAL

#bmf = affine_map<(b, m, n, f, g) -> (b, m, f)>
#bnf = affine_map<(b, m, n, f, g) -> (b, n, f)>
#bng = affine_map<(b, m, n, f, g) -> (b, n, g)>
#bmg = affine_map<(b, m, n, f, g) -> (b, m, g)>
#bm = affine_map<(b, m, n, f, g) -> (b, m)>

// EQUAL: window: attention equal
func.func private @window(%q: tensor<1x100x32xf32>, %k: tensor<1x100x32xf32>, %v: tensor<1x100x32xf32>,
    %out0: tensor<1x100x32xf32>, %out1: tensor<1x100xf32>)
    -> (tensor<1x100x32xf32>, tensor<1x100xf32>) attributes {kernel.reads = 3 : i64} {
  %r:2 = ext.attention indexing_maps = [#bmf, #bnf, #bng, #bmg, #bm]
      ins(%q, %k, %v :
          tensor<1x100x32xf32>, tensor<1x100x32xf32>, tensor<1x100x32xf32>) {
  ^bb0(%p: f32, %ib: index, %im: index, %in: index, %if: index, %ig: index):
    %scale = arith.constant 0.125 : f32
    %s = arith.mulf %p, %scale : f32
    %d = arith.subi %im, %in : index
    %w = arith.constant 20 : index
    %near = arith.cmpi slt, %d, %w : index
    %past = arith.cmpi sge, %im, %in : index
    %c = arith.andi %near, %past : i1
    %least = arith.constant 0xFF800000 : f32
    %u = arith.select %c, %s, %least : f32
    ext.yield %u : f32
  } -> tensor<1x100x32xf32>, tensor<1x100xf32>
  %c0 = linalg.copy ins(%r#0 : tensor<1x100x32xf32>) outs(%out0 : tensor<1x100x32xf32>) -> tensor<1x100x32xf32>
  %c1 = linalg.copy ins(%r#1 : tensor<1x100xf32>) outs(%out1 : tensor<1x100xf32>) -> tensor<1x100xf32>
  return %c0, %c1 : tensor<1x100x32xf32>, tensor<1x100xf32>
}

// EQUAL: both_sides: attention equal
func.func private @both_sides(%q: tensor<1x100x16xbf16>, %k: tensor<1x100x16xbf16>, %v: tensor<1x100x48xbf16>,
    %out0: tensor<1x100x48xbf16>, %out1: tensor<1x100xf32>)
    -> (tensor<1x100x48xbf16>, tensor<1x100xf32>) attributes {kernel.reads = 3 : i64} {
  %r:2 = ext.attention indexing_maps = [#bmf, #bnf, #bng, #bmg, #bm]
      ins(%q, %k, %v :
          tensor<1x100x16xbf16>, tensor<1x100x16xbf16>, tensor<1x100x48xbf16>) {
  ^bb0(%p: f32, %ib: index, %im: index, %in: index, %if: index, %ig: index):
    %scale = arith.constant 0.125 : f32
    %s = arith.mulf %p, %scale : f32
    %d = arith.subi %im, %in : index
    %a = math.absi %d : index
    %w = arith.constant 9 : index
    %c = arith.cmpi sle, %a, %w : index
    %least = arith.constant 0xFF800000 : f32
    %u = arith.select %c, %s, %least : f32
    ext.yield %u : f32
  } -> tensor<1x100x48xbf16>, tensor<1x100xf32>
  %c0 = linalg.copy ins(%r#0 : tensor<1x100x48xbf16>) outs(%out0 : tensor<1x100x48xbf16>) -> tensor<1x100x48xbf16>
  %c1 = linalg.copy ins(%r#1 : tensor<1x100xf32>) outs(%out1 : tensor<1x100xf32>) -> tensor<1x100xf32>
  return %c0, %c1 : tensor<1x100x48xbf16>, tensor<1x100xf32>
}

// EQUAL: window_back: attention attention equal
func.func private @window_back(%q: tensor<1x100x32xf32>, %k: tensor<1x100x32xf32>, %v: tensor<1x100x32xf32>,
    %do: tensor<1x100x32xf32>, %l: tensor<1x100xf32>, %delta: tensor<1x100xf32>, %out0: tensor<1x100x32xf32>,
    %out1: tensor<1x100x32xf32>, %out2: tensor<1x100x32xf32>)
    -> (tensor<1x100x32xf32>, tensor<1x100x32xf32>, tensor<1x100x32xf32>) attributes {kernel.reads = 6 : i64} {
  %r:3 = ext.attention_backward indexing_maps = [#bmf, #bnf, #bng, #bmg, #bm, #bm, #bmf, #bnf, #bng]
      ins(%q, %k, %v, %do, %l, %delta :
          tensor<1x100x32xf32>, tensor<1x100x32xf32>, tensor<1x100x32xf32>, tensor<1x100x32xf32>, tensor<1x100xf32>,
          tensor<1x100xf32>) {
  ^bb0(%p: f32, %ib: index, %im: index, %in: index, %if: index, %ig: index):
    %scale = arith.constant 0.125 : f32
    %s = arith.mulf %p, %scale : f32
    %d = arith.subi %im, %in : index
    %w = arith.constant 20 : index
    %near = arith.cmpi slt, %d, %w : index
    %past = arith.cmpi sge, %im, %in : index
    %c = arith.andi %near, %past : i1
    %least = arith.constant 0xFF800000 : f32
    %u = arith.select %c, %s, %least : f32
    ext.yield %u : f32
  } derivative {
  ^bb0(%p: f32, %ib: index, %im: index, %in: index, %if: index, %ig: index, %dy: f32):
    %d = arith.subi %im, %in : index
    %w = arith.constant 20 : index
    %near = arith.cmpi slt, %d, %w : index
    %past = arith.cmpi sge, %im, %in : index
    %c = arith.andi %near, %past : i1
    %zero = arith.constant 0.0 : f32
    %s = arith.select %c, %dy, %zero : f32
    %scale = arith.constant 0.125 : f32
    %t = arith.mulf %s, %scale : f32
    ext.yield %t : f32
  } -> tensor<1x100x32xf32>, tensor<1x100x32xf32>, tensor<1x100x32xf32>
  %c0 = linalg.copy ins(%r#0 : tensor<1x100x32xf32>) outs(%out0 : tensor<1x100x32xf32>) -> tensor<1x100x32xf32>
  %c1 = linalg.copy ins(%r#1 : tensor<1x100x32xf32>) outs(%out1 : tensor<1x100x32xf32>) -> tensor<1x100x32xf32>
  %c2 = linalg.copy ins(%r#2 : tensor<1x100x32xf32>) outs(%out2 : tensor<1x100x32xf32>) -> tensor<1x100x32xf32>
  return %c0, %c1, %c2 : tensor<1x100x32xf32>, tensor<1x100x32xf32>, tensor<1x100x32xf32>
}

// EQUAL: both_sides_back: attention attention equal
func.func private @both_sides_back(%q: tensor<1x100x16xbf16>, %k: tensor<1x100x16xbf16>, %v: tensor<1x100x48xbf16>,
    %do: tensor<1x100x48xbf16>, %l: tensor<1x100xf32>, %delta: tensor<1x100xf32>, %out0: tensor<1x100x16xbf16>,
    %out1: tensor<1x100x16xbf16>, %out2: tensor<1x100x48xbf16>)
    -> (tensor<1x100x16xbf16>, tensor<1x100x16xbf16>, tensor<1x100x48xbf16>) attributes {kernel.reads = 6 : i64} {
  %r:3 = ext.attention_backward indexing_maps = [#bmf, #bnf, #bng, #bmg, #bm, #bm, #bmf, #bnf, #bng]
      ins(%q, %k, %v, %do, %l, %delta :
          tensor<1x100x16xbf16>, tensor<1x100x16xbf16>, tensor<1x100x48xbf16>, tensor<1x100x48xbf16>,
          tensor<1x100xf32>, tensor<1x100xf32>) {
  ^bb0(%p: f32, %ib: index, %im: index, %in: index, %if: index, %ig: index):
    %scale = arith.constant 0.125 : f32
    %s = arith.mulf %p, %scale : f32
    %d = arith.subi %im, %in : index
    %a = math.absi %d : index
    %w = arith.constant 9 : index
    %c = arith.cmpi sle, %a, %w : index
    %least = arith.constant 0xFF800000 : f32
    %u = arith.select %c, %s, %least : f32
    ext.yield %u : f32
  } derivative {
  ^bb0(%p: f32, %ib: index, %im: index, %in: index, %if: index, %ig: index, %dy: f32):
    %d = arith.subi %im, %in : index
    %a = math.absi %d : index
    %w = arith.constant 9 : index
    %c = arith.cmpi sle, %a, %w : index
    %zero = arith.constant 0.0 : f32
    %s = arith.select %c, %dy, %zero : f32
    %scale = arith.constant 0.125 : f32
    %t = arith.mulf %s, %scale : f32
    ext.yield %t : f32
  } -> tensor<1x100x16xbf16>, tensor<1x100x16xbf16>, tensor<1x100x48xbf16>
  %c0 = linalg.copy ins(%r#0 : tensor<1x100x16xbf16>) outs(%out0 : tensor<1x100x16xbf16>) -> tensor<1x100x16xbf16>
  %c1 = linalg.copy ins(%r#1 : tensor<1x100x16xbf16>) outs(%out1 : tensor<1x100x16xbf16>) -> tensor<1x100x16xbf16>
  %c2 = linalg.copy ins(%r#2 : tensor<1x100x48xbf16>) outs(%out2 : tensor<1x100x48xbf16>) -> tensor<1x100x48xbf16>
  return %c0, %c1, %c2 : tensor<1x100x16xbf16>, tensor<1x100x16xbf16>, tensor<1x100x48xbf16>
}
