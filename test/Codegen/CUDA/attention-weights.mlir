// Dropped weights of an attention are drawn in its launches, forward and backward, with the draws of the CPU.
// RUN: tessera-opt %s --tessera-check-gpu-kernels -o /dev/null | FileCheck %s --check-prefix=EQUAL

#bmf = affine_map<(b, m, n, f, g) -> (b, m, f)>
#bnf = affine_map<(b, m, n, f, g) -> (b, n, f)>
#bng = affine_map<(b, m, n, f, g) -> (b, n, g)>
#bmg = affine_map<(b, m, n, f, g) -> (b, m, g)>
#bm = affine_map<(b, m, n, f, g) -> (b, m)>
#word = affine_map<(b, m, n, f, g) -> ()>

// EQUAL: wide: attention equal
func.func private @wide(%q: tensor<2x50x64xf32>, %k: tensor<2x70x64xf32>, %v: tensor<2x70x64xf32>, %word: tensor<i32>, %out0: tensor<2x50x64xf32>, %out1: tensor<2x50xf32>)
    -> (tensor<2x50x64xf32>, tensor<2x50xf32>) attributes {kernel.reads = 4 : i64} {
  %r:2 = ext.attention indexing_maps = [#bmf, #bnf, #bng, #word, #bmg, #bm]
      ins(%q, %k, %v, %word : tensor<2x50x64xf32>, tensor<2x70x64xf32>, tensor<2x70x64xf32>, tensor<i32>) {
  ^bb0(%p: f32, %w: i32, %ib: index, %im: index, %in: index, %if: index, %ig: index):
    %scale = arith.constant 0.125 : f32
    %s = arith.mulf %p, %scale : f32
    ext.yield %s : f32
  } weights {
  ^bb0(%x: f32, %w: i32, %ib: index, %im: index, %in: index, %if: index, %ig: index):
    %none = arith.constant 0.0 : f32
    %rate = arith.constant 0.75 : f32
    %no_bits = arith.constant 0 : i32
    %c15 = arith.constant 15 : i32
    %c30 = arith.constant 30 : i32
    %many = arith.constant -1640531535 : i32
    %more = arith.constant -2048144777 : i32
    %c97 = arith.constant 97 : index
    %bm = arith.muli %ib, %c97 : index
    %row = arith.addi %bm, %im : index
    %rows = arith.muli %row, %c97 : index
    %place = arith.addi %rows, %in : index
    %i = arith.index_cast %place : index to i32
    %sum = arith.addi %i, %w : i32
    %h0 = arith.muli %sum, %many : i32
    %h1 = arith.shrui %h0, %c15 : i32
    %h2 = arith.xori %h0, %h1 : i32
    %h3 = arith.muli %h2, %more : i32
    %bits = arith.shrui %h3, %c30 : i32
    %keep = arith.cmpi ne, %bits, %no_bits : i32
    %scaled = arith.divf %x, %rate : f32
    %weight = arith.select %keep, %scaled, %none : f32
    ext.yield %weight : f32
  } -> tensor<2x50x64xf32>, tensor<2x50xf32>
  %c0 = linalg.copy ins(%r#0 : tensor<2x50x64xf32>) outs(%out0 : tensor<2x50x64xf32>) -> tensor<2x50x64xf32>
  %c1 = linalg.copy ins(%r#1 : tensor<2x50xf32>) outs(%out1 : tensor<2x50xf32>) -> tensor<2x50xf32>
  return %c0, %c1 : tensor<2x50x64xf32>, tensor<2x50xf32>
}

// EQUAL: wide_backward: attention{{.*}} equal
func.func private @wide_backward(%q: tensor<2x50x64xf32>, %k: tensor<2x70x64xf32>, %v: tensor<2x70x64xf32>, %do: tensor<2x50x64xf32>, %l: tensor<2x50xf32>, %delta: tensor<2x50xf32>, %word: tensor<i32>,
    %out0: tensor<2x50x64xf32>, %out1: tensor<2x70x64xf32>, %out2: tensor<2x70x64xf32>) -> (tensor<2x50x64xf32>, tensor<2x70x64xf32>, tensor<2x70x64xf32>) attributes {kernel.reads = 7 : i64} {
  %r:3 = ext.attention_backward indexing_maps = [#bmf, #bnf, #bng, #bmg, #bm, #bm, #word, #bmf, #bnf, #bng]
      ins(%q, %k, %v, %do, %l, %delta, %word : tensor<2x50x64xf32>, tensor<2x70x64xf32>, tensor<2x70x64xf32>, tensor<2x50x64xf32>, tensor<2x50xf32>, tensor<2x50xf32>, tensor<i32>) {
  ^bb0(%p: f32, %w: i32, %ib: index, %im: index, %in: index, %if: index, %ig: index):
    %scale = arith.constant 0.125 : f32
    %s = arith.mulf %p, %scale : f32
    ext.yield %s : f32
  } derivative {
  ^bb0(%p: f32, %w: i32, %ib: index, %im: index, %in: index, %if: index, %ig: index, %dy: f32):
    %scale = arith.constant 0.125 : f32
    %s = arith.mulf %dy, %scale : f32
    ext.yield %s : f32
  } weights {
  ^bb0(%x: f32, %w: i32, %ib: index, %im: index, %in: index, %if: index, %ig: index):
    %none = arith.constant 0.0 : f32
    %rate = arith.constant 0.75 : f32
    %no_bits = arith.constant 0 : i32
    %c15 = arith.constant 15 : i32
    %c30 = arith.constant 30 : i32
    %many = arith.constant -1640531535 : i32
    %more = arith.constant -2048144777 : i32
    %c97 = arith.constant 97 : index
    %bm = arith.muli %ib, %c97 : index
    %row = arith.addi %bm, %im : index
    %rows = arith.muli %row, %c97 : index
    %place = arith.addi %rows, %in : index
    %i = arith.index_cast %place : index to i32
    %sum = arith.addi %i, %w : i32
    %h0 = arith.muli %sum, %many : i32
    %h1 = arith.shrui %h0, %c15 : i32
    %h2 = arith.xori %h0, %h1 : i32
    %h3 = arith.muli %h2, %more : i32
    %bits = arith.shrui %h3, %c30 : i32
    %keep = arith.cmpi ne, %bits, %no_bits : i32
    %scaled = arith.divf %x, %rate : f32
    %weight = arith.select %keep, %scaled, %none : f32
    ext.yield %weight : f32
  } -> tensor<2x50x64xf32>, tensor<2x70x64xf32>, tensor<2x70x64xf32>
  %c0 = linalg.copy ins(%r#0 : tensor<2x50x64xf32>) outs(%out0 : tensor<2x50x64xf32>) -> tensor<2x50x64xf32>
  %c1 = linalg.copy ins(%r#1 : tensor<2x70x64xf32>) outs(%out1 : tensor<2x70x64xf32>) -> tensor<2x70x64xf32>
  %c2 = linalg.copy ins(%r#2 : tensor<2x70x64xf32>) outs(%out2 : tensor<2x70x64xf32>) -> tensor<2x70x64xf32>
  return %c0, %c1, %c2 : tensor<2x50x64xf32>, tensor<2x70x64xf32>, tensor<2x70x64xf32>
}

// EQUAL: narrow: attention equal
func.func private @narrow(%q: tensor<2x96x32xbf16>, %k: tensor<2x96x32xbf16>, %v: tensor<2x96x32xbf16>, %word: tensor<i32>, %out0: tensor<2x96x32xbf16>, %out1: tensor<2x96xf32>)
    -> (tensor<2x96x32xbf16>, tensor<2x96xf32>) attributes {kernel.reads = 4 : i64} {
  %r:2 = ext.attention indexing_maps = [#bmf, #bnf, #bng, #word, #bmg, #bm]
      ins(%q, %k, %v, %word : tensor<2x96x32xbf16>, tensor<2x96x32xbf16>, tensor<2x96x32xbf16>, tensor<i32>) {
  ^bb0(%p: f32, %w: i32, %ib: index, %im: index, %in: index, %if: index, %ig: index):
    %scale = arith.constant 0.125 : f32
    %s = arith.mulf %p, %scale : f32
    ext.yield %s : f32
  } weights {
  ^bb0(%x: f32, %w: i32, %ib: index, %im: index, %in: index, %if: index, %ig: index):
    %none = arith.constant 0.0 : f32
    %rate = arith.constant 0.75 : f32
    %no_bits = arith.constant 0 : i32
    %c15 = arith.constant 15 : i32
    %c30 = arith.constant 30 : i32
    %many = arith.constant -1640531535 : i32
    %more = arith.constant -2048144777 : i32
    %c97 = arith.constant 97 : index
    %bm = arith.muli %ib, %c97 : index
    %row = arith.addi %bm, %im : index
    %rows = arith.muli %row, %c97 : index
    %place = arith.addi %rows, %in : index
    %i = arith.index_cast %place : index to i32
    %sum = arith.addi %i, %w : i32
    %h0 = arith.muli %sum, %many : i32
    %h1 = arith.shrui %h0, %c15 : i32
    %h2 = arith.xori %h0, %h1 : i32
    %h3 = arith.muli %h2, %more : i32
    %bits = arith.shrui %h3, %c30 : i32
    %keep = arith.cmpi ne, %bits, %no_bits : i32
    %scaled = arith.divf %x, %rate : f32
    %weight = arith.select %keep, %scaled, %none : f32
    ext.yield %weight : f32
  } -> tensor<2x96x32xbf16>, tensor<2x96xf32>
  %c0 = linalg.copy ins(%r#0 : tensor<2x96x32xbf16>) outs(%out0 : tensor<2x96x32xbf16>) -> tensor<2x96x32xbf16>
  %c1 = linalg.copy ins(%r#1 : tensor<2x96xf32>) outs(%out1 : tensor<2x96xf32>) -> tensor<2x96xf32>
  return %c0, %c1 : tensor<2x96x32xbf16>, tensor<2x96xf32>
}

// EQUAL: narrow_backward: attention{{.*}} equal
func.func private @narrow_backward(%q: tensor<2x96x32xbf16>, %k: tensor<2x96x32xbf16>, %v: tensor<2x96x32xbf16>, %do: tensor<2x96x32xbf16>, %l: tensor<2x96xf32>, %delta: tensor<2x96xf32>, %word: tensor<i32>,
    %out0: tensor<2x96x32xbf16>, %out1: tensor<2x96x32xbf16>, %out2: tensor<2x96x32xbf16>) -> (tensor<2x96x32xbf16>, tensor<2x96x32xbf16>, tensor<2x96x32xbf16>) attributes {kernel.reads = 7 : i64} {
  %r:3 = ext.attention_backward indexing_maps = [#bmf, #bnf, #bng, #bmg, #bm, #bm, #word, #bmf, #bnf, #bng]
      ins(%q, %k, %v, %do, %l, %delta, %word : tensor<2x96x32xbf16>, tensor<2x96x32xbf16>, tensor<2x96x32xbf16>, tensor<2x96x32xbf16>, tensor<2x96xf32>, tensor<2x96xf32>, tensor<i32>) {
  ^bb0(%p: f32, %w: i32, %ib: index, %im: index, %in: index, %if: index, %ig: index):
    %scale = arith.constant 0.125 : f32
    %s = arith.mulf %p, %scale : f32
    ext.yield %s : f32
  } derivative {
  ^bb0(%p: f32, %w: i32, %ib: index, %im: index, %in: index, %if: index, %ig: index, %dy: f32):
    %scale = arith.constant 0.125 : f32
    %s = arith.mulf %dy, %scale : f32
    ext.yield %s : f32
  } weights {
  ^bb0(%x: f32, %w: i32, %ib: index, %im: index, %in: index, %if: index, %ig: index):
    %none = arith.constant 0.0 : f32
    %rate = arith.constant 0.75 : f32
    %no_bits = arith.constant 0 : i32
    %c15 = arith.constant 15 : i32
    %c30 = arith.constant 30 : i32
    %many = arith.constant -1640531535 : i32
    %more = arith.constant -2048144777 : i32
    %c97 = arith.constant 97 : index
    %bm = arith.muli %ib, %c97 : index
    %row = arith.addi %bm, %im : index
    %rows = arith.muli %row, %c97 : index
    %place = arith.addi %rows, %in : index
    %i = arith.index_cast %place : index to i32
    %sum = arith.addi %i, %w : i32
    %h0 = arith.muli %sum, %many : i32
    %h1 = arith.shrui %h0, %c15 : i32
    %h2 = arith.xori %h0, %h1 : i32
    %h3 = arith.muli %h2, %more : i32
    %bits = arith.shrui %h3, %c30 : i32
    %keep = arith.cmpi ne, %bits, %no_bits : i32
    %scaled = arith.divf %x, %rate : f32
    %weight = arith.select %keep, %scaled, %none : f32
    ext.yield %weight : f32
  } -> tensor<2x96x32xbf16>, tensor<2x96x32xbf16>, tensor<2x96x32xbf16>
  %c0 = linalg.copy ins(%r#0 : tensor<2x96x32xbf16>) outs(%out0 : tensor<2x96x32xbf16>) -> tensor<2x96x32xbf16>
  %c1 = linalg.copy ins(%r#1 : tensor<2x96x32xbf16>) outs(%out1 : tensor<2x96x32xbf16>) -> tensor<2x96x32xbf16>
  %c2 = linalg.copy ins(%r#2 : tensor<2x96x32xbf16>) outs(%out2 : tensor<2x96x32xbf16>) -> tensor<2x96x32xbf16>
  return %c0, %c1, %c2 : tensor<2x96x32xbf16>, tensor<2x96x32xbf16>, tensor<2x96x32xbf16>
}
