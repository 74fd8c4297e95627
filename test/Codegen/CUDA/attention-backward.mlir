// The derivative of an attention takes two launches, over queries and over keys, without atomics.
// RUN: tessera-opt %s --tessera-compile-gpu-kernels="arch=compute_80 print-ptx" -o /dev/null | FileCheck %s
// RUN: tessera-opt %s --tessera-check-gpu-kernels -o /dev/null | FileCheck %s --check-prefix=EQUAL

#bmf = affine_map<(b, m, n, f, g) -> (b, m, f)>
#bnf = affine_map<(b, m, n, f, g) -> (b, n, f)>
#bng = affine_map<(b, m, n, f, g) -> (b, n, g)>
#bmg = affine_map<(b, m, n, f, g) -> (b, m, g)>
#bm = affine_map<(b, m, n, f, g) -> (b, m)>
#mn = affine_map<(b, m, n, f, g) -> (m, n)>
#of_heads_bhmf = affine_map<(b, h, m, n, f, g) -> (b, h, m, f)>
#of_heads_bnf = affine_map<(b, h, m, n, f, g) -> (b, n, f)>
#of_heads_bng = affine_map<(b, h, m, n, f, g) -> (b, n, g)>
#of_heads_bhmg = affine_map<(b, h, m, n, f, g) -> (b, h, m, g)>
#of_heads_bhm = affine_map<(b, h, m, n, f, g) -> (b, h, m)>
#of_heads_bmhf = affine_map<(b, h, m, n, f, g) -> (b, m, h, f)>
#of_heads_nbf = affine_map<(b, h, m, n, f, g) -> (n, b, f)>
#of_heads_mbhg = affine_map<(b, h, m, n, f, g) -> (m, b, h, g)>

// CHECK-LABEL: causal: launches 2, workspace 0
// CHECK-NEXT: attention: grid 4, block 128
// CHECK: attention: grid 4, block 128
// CHECK-NOT: {{^[[:space:]]*}}atom
// CHECK: mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32
// EQUAL: causal: attention attention equal
func.func private @causal(%q: tensor<2x96x64xbf16>, %k: tensor<2x96x64xbf16>, %v: tensor<2x96x64xbf16>,
    %do: tensor<2x96x64xbf16>, %l: tensor<2x96xf32>, %delta: tensor<2x96xf32>, %out0: tensor<2x96x64xbf16>,
    %out1: tensor<2x96x64xbf16>, %out2: tensor<2x96x64xbf16>)
    -> (tensor<2x96x64xbf16>, tensor<2x96x64xbf16>, tensor<2x96x64xbf16>) attributes {kernel.reads = 6 : i64} {
  %r:3 = ext.attention_backward indexing_maps = [#bmf, #bnf, #bng, #bmg, #bm, #bm, #bmf, #bnf, #bng]
      ins(%q, %k, %v, %do, %l, %delta :
          tensor<2x96x64xbf16>, tensor<2x96x64xbf16>, tensor<2x96x64xbf16>, tensor<2x96x64xbf16>, tensor<2x96xf32>,
          tensor<2x96xf32>) {
  ^bb0(%p: f32, %ib: index, %im: index, %in: index, %if: index, %ig: index):
    %scale = arith.constant 0.125 : f32
    %s = arith.mulf %p, %scale : f32
    %c = arith.cmpi sge, %im, %in : index
    %least = arith.constant 0xFF800000 : f32
    %u = arith.select %c, %s, %least : f32
    ext.yield %u : f32
  } derivative {
  ^bb0(%p: f32, %ib: index, %im: index, %in: index, %if: index, %ig: index, %dy: f32):
    %c = arith.cmpi sge, %im, %in : index
    %zero = arith.constant 0.0 : f32
    %s = arith.select %c, %dy, %zero : f32
    %scale = arith.constant 0.125 : f32
    %t = arith.mulf %s, %scale : f32
    ext.yield %t : f32
  } -> tensor<2x96x64xbf16>, tensor<2x96x64xbf16>, tensor<2x96x64xbf16>
  %c0 = linalg.copy ins(%r#0 : tensor<2x96x64xbf16>) outs(%out0 : tensor<2x96x64xbf16>) -> tensor<2x96x64xbf16>
  %c1 = linalg.copy ins(%r#1 : tensor<2x96x64xbf16>) outs(%out1 : tensor<2x96x64xbf16>) -> tensor<2x96x64xbf16>
  %c2 = linalg.copy ins(%r#2 : tensor<2x96x64xbf16>) outs(%out2 : tensor<2x96x64xbf16>) -> tensor<2x96x64xbf16>
  return %c0, %c1, %c2 : tensor<2x96x64xbf16>, tensor<2x96x64xbf16>, tensor<2x96x64xbf16>
}

// EQUAL: long_rows: attention attention equal
func.func private @long_rows(%q: tensor<1x50x128xbf16>, %k: tensor<1x70x128xbf16>, %v: tensor<1x70x80xbf16>,
    %do: tensor<1x50x80xbf16>, %l: tensor<1x50xf32>, %delta: tensor<1x50xf32>, %bias: tensor<50x70xf32>,
    %out0: tensor<1x50x128xbf16>, %out1: tensor<1x70x128xbf16>, %out2: tensor<1x70x80xbf16>)
    -> (tensor<1x50x128xbf16>, tensor<1x70x128xbf16>, tensor<1x70x80xbf16>) attributes {kernel.reads = 7 : i64} {
  %r:3 = ext.attention_backward indexing_maps = [#bmf, #bnf, #bng, #bmg, #bm, #bm, #mn, #bmf, #bnf, #bng]
      ins(%q, %k, %v, %do, %l, %delta, %bias :
          tensor<1x50x128xbf16>, tensor<1x70x128xbf16>, tensor<1x70x80xbf16>, tensor<1x50x80xbf16>, tensor<1x50xf32>,
          tensor<1x50xf32>, tensor<50x70xf32>) {
  ^bb0(%p: f32, %x: f32, %ib: index, %im: index, %in: index, %if: index, %ig: index):
    %scale = arith.constant 0.125 : f32
    %s = arith.mulf %p, %scale : f32
    %t = arith.addf %s, %x : f32
    ext.yield %t : f32
  } derivative {
  ^bb0(%p: f32, %x: f32, %ib: index, %im: index, %in: index, %if: index, %ig: index, %dy: f32):
    %scale = arith.constant 0.125 : f32
    %t = arith.mulf %dy, %scale : f32
    ext.yield %t : f32
  } -> tensor<1x50x128xbf16>, tensor<1x70x128xbf16>, tensor<1x70x80xbf16>
  %c0 = linalg.copy ins(%r#0 : tensor<1x50x128xbf16>) outs(%out0 : tensor<1x50x128xbf16>) -> tensor<1x50x128xbf16>
  %c1 = linalg.copy ins(%r#1 : tensor<1x70x128xbf16>) outs(%out1 : tensor<1x70x128xbf16>) -> tensor<1x70x128xbf16>
  %c2 = linalg.copy ins(%r#2 : tensor<1x70x80xbf16>) outs(%out2 : tensor<1x70x80xbf16>) -> tensor<1x70x80xbf16>
  return %c0, %c1, %c2 : tensor<1x50x128xbf16>, tensor<1x70x128xbf16>, tensor<1x70x80xbf16>
}

// EQUAL: groups: attention attention equal
func.func private @groups(%q: tensor<2x3x40x32xf16>, %k: tensor<2x40x32xf16>, %v: tensor<2x40x32xf16>,
    %do: tensor<2x3x40x32xf16>, %l: tensor<2x3x40xf32>, %delta: tensor<2x3x40xf32>, %out0: tensor<2x3x40x32xf16>,
    %out1: tensor<2x40x32xf16>, %out2: tensor<2x40x32xf16>)
    -> (tensor<2x3x40x32xf16>, tensor<2x40x32xf16>, tensor<2x40x32xf16>) attributes {kernel.reads = 6 : i64} {
  %r:3 = ext.attention_backward indexing_maps = [#of_heads_bhmf, #of_heads_bnf, #of_heads_bng, #of_heads_bhmg,
      #of_heads_bhm, #of_heads_bhm, #of_heads_bhmf, #of_heads_bnf, #of_heads_bng]
      ins(%q, %k, %v, %do, %l, %delta :
          tensor<2x3x40x32xf16>, tensor<2x40x32xf16>, tensor<2x40x32xf16>, tensor<2x3x40x32xf16>, tensor<2x3x40xf32>,
          tensor<2x3x40xf32>) {
  ^bb0(%p: f32, %ib: index, %ih: index, %im: index, %in: index, %if: index, %ig: index):
    %scale = arith.constant 0.125 : f32
    %s = arith.mulf %p, %scale : f32
    %c = arith.cmpi sge, %im, %in : index
    %least = arith.constant 0xFF800000 : f32
    %u = arith.select %c, %s, %least : f32
    ext.yield %u : f32
  } derivative {
  ^bb0(%p: f32, %ib: index, %ih: index, %im: index, %in: index, %if: index, %ig: index, %dy: f32):
    %c = arith.cmpi sge, %im, %in : index
    %zero = arith.constant 0.0 : f32
    %s = arith.select %c, %dy, %zero : f32
    %scale = arith.constant 0.125 : f32
    %t = arith.mulf %s, %scale : f32
    ext.yield %t : f32
  } -> tensor<2x3x40x32xf16>, tensor<2x40x32xf16>, tensor<2x40x32xf16>
  %c0 = linalg.copy ins(%r#0 : tensor<2x3x40x32xf16>) outs(%out0 : tensor<2x3x40x32xf16>) -> tensor<2x3x40x32xf16>
  %c1 = linalg.copy ins(%r#1 : tensor<2x40x32xf16>) outs(%out1 : tensor<2x40x32xf16>) -> tensor<2x40x32xf16>
  %c2 = linalg.copy ins(%r#2 : tensor<2x40x32xf16>) outs(%out2 : tensor<2x40x32xf16>) -> tensor<2x40x32xf16>
  return %c0, %c1, %c2 : tensor<2x3x40x32xf16>, tensor<2x40x32xf16>, tensor<2x40x32xf16>
}

// In f32 one launch computes all gradients.
// CHECK-LABEL: uneven: launches 1, workspace 0
// EQUAL: uneven: attention equal
// EQUAL: uneven, TF32: attention attention equal
func.func private @uneven(%q: tensor<3x37x20xf32>, %k: tensor<3x53x20xf32>, %v: tensor<3x53x12xf32>,
    %do: tensor<3x37x12xf32>, %l: tensor<3x37xf32>, %delta: tensor<3x37xf32>, %out0: tensor<3x37x20xf32>,
    %out1: tensor<3x53x20xf32>, %out2: tensor<3x53x12xf32>)
    -> (tensor<3x37x20xf32>, tensor<3x53x20xf32>, tensor<3x53x12xf32>) attributes {kernel.reads = 6 : i64} {
  %r:3 = ext.attention_backward indexing_maps = [#bmf, #bnf, #bng, #bmg, #bm, #bm, #bmf, #bnf, #bng]
      ins(%q, %k, %v, %do, %l, %delta :
          tensor<3x37x20xf32>, tensor<3x53x20xf32>, tensor<3x53x12xf32>, tensor<3x37x12xf32>, tensor<3x37xf32>,
          tensor<3x37xf32>) {
  ^bb0(%p: f32, %ib: index, %im: index, %in: index, %if: index, %ig: index):
    %scale = arith.constant 0.125 : f32
    %s = arith.mulf %p, %scale : f32
    ext.yield %s : f32
  } derivative {
  ^bb0(%p: f32, %ib: index, %im: index, %in: index, %if: index, %ig: index, %dy: f32):
    %scale = arith.constant 0.125 : f32
    %t = arith.mulf %dy, %scale : f32
    ext.yield %t : f32
  } -> tensor<3x37x20xf32>, tensor<3x53x20xf32>, tensor<3x53x12xf32>
  %c0 = linalg.copy ins(%r#0 : tensor<3x37x20xf32>) outs(%out0 : tensor<3x37x20xf32>) -> tensor<3x37x20xf32>
  %c1 = linalg.copy ins(%r#1 : tensor<3x53x20xf32>) outs(%out1 : tensor<3x53x20xf32>) -> tensor<3x53x20xf32>
  %c2 = linalg.copy ins(%r#2 : tensor<3x53x12xf32>) outs(%out2 : tensor<3x53x12xf32>) -> tensor<3x53x12xf32>
  return %c0, %c1, %c2 : tensor<3x37x20xf32>, tensor<3x53x20xf32>, tensor<3x53x12xf32>
}

// EQUAL: long_rows_f32: attention attention equal
// EQUAL: long_rows_f32, TF32: attention attention equal
func.func private @long_rows_f32(%q: tensor<1x40x128xf32>, %k: tensor<1x50x128xf32>, %v: tensor<1x50x128xf32>,
    %do: tensor<1x40x128xf32>, %l: tensor<1x40xf32>, %delta: tensor<1x40xf32>, %out0: tensor<1x40x128xf32>,
    %out1: tensor<1x50x128xf32>, %out2: tensor<1x50x128xf32>)
    -> (tensor<1x40x128xf32>, tensor<1x50x128xf32>, tensor<1x50x128xf32>) attributes {kernel.reads = 6 : i64} {
  %r:3 = ext.attention_backward indexing_maps = [#bmf, #bnf, #bng, #bmg, #bm, #bm, #bmf, #bnf, #bng]
      ins(%q, %k, %v, %do, %l, %delta :
          tensor<1x40x128xf32>, tensor<1x50x128xf32>, tensor<1x50x128xf32>, tensor<1x40x128xf32>, tensor<1x40xf32>,
          tensor<1x40xf32>) {
  ^bb0(%p: f32, %ib: index, %im: index, %in: index, %if: index, %ig: index):
    %scale = arith.constant 0.125 : f32
    %s = arith.mulf %p, %scale : f32
    ext.yield %s : f32
  } derivative {
  ^bb0(%p: f32, %ib: index, %im: index, %in: index, %if: index, %ig: index, %dy: f32):
    %scale = arith.constant 0.125 : f32
    %t = arith.mulf %dy, %scale : f32
    ext.yield %t : f32
  } -> tensor<1x40x128xf32>, tensor<1x50x128xf32>, tensor<1x50x128xf32>
  %c0 = linalg.copy ins(%r#0 : tensor<1x40x128xf32>) outs(%out0 : tensor<1x40x128xf32>) -> tensor<1x40x128xf32>
  %c1 = linalg.copy ins(%r#1 : tensor<1x50x128xf32>) outs(%out1 : tensor<1x50x128xf32>) -> tensor<1x50x128xf32>
  %c2 = linalg.copy ins(%r#2 : tensor<1x50x128xf32>) outs(%out2 : tensor<1x50x128xf32>) -> tensor<1x50x128xf32>
  return %c0, %c1, %c2 : tensor<1x40x128xf32>, tensor<1x50x128xf32>, tensor<1x50x128xf32>
}

// EQUAL: sequence_first: attention equal
// EQUAL: sequence_first, TF32: attention attention equal
func.func private @sequence_first(%q: tensor<2x40x2x32xf32>, %k: tensor<56x2x32xf32>, %v: tensor<2x56x32xf32>,
    %do: tensor<40x2x2x32xf32>, %l: tensor<2x2x40xf32>, %delta: tensor<2x2x40xf32>, %out0: tensor<2x40x2x32xf32>,
    %out1: tensor<56x2x32xf32>, %out2: tensor<2x56x32xf32>)
    -> (tensor<2x40x2x32xf32>, tensor<56x2x32xf32>, tensor<2x56x32xf32>) attributes {kernel.reads = 6 : i64} {
  %r:3 = ext.attention_backward indexing_maps = [#of_heads_bmhf, #of_heads_nbf, #of_heads_bng, #of_heads_mbhg,
      #of_heads_bhm, #of_heads_bhm, #of_heads_bmhf, #of_heads_nbf, #of_heads_bng]
      ins(%q, %k, %v, %do, %l, %delta :
          tensor<2x40x2x32xf32>, tensor<56x2x32xf32>, tensor<2x56x32xf32>, tensor<40x2x2x32xf32>, tensor<2x2x40xf32>,
          tensor<2x2x40xf32>) {
  ^bb0(%p: f32, %ib: index, %ih: index, %im: index, %in: index, %if: index, %ig: index):
    %scale = arith.constant 0.125 : f32
    %s = arith.mulf %p, %scale : f32
    ext.yield %s : f32
  } derivative {
  ^bb0(%p: f32, %ib: index, %ih: index, %im: index, %in: index, %if: index, %ig: index, %dy: f32):
    %scale = arith.constant 0.125 : f32
    %t = arith.mulf %dy, %scale : f32
    ext.yield %t : f32
  } -> tensor<2x40x2x32xf32>, tensor<56x2x32xf32>, tensor<2x56x32xf32>
  %c0 = linalg.copy ins(%r#0 : tensor<2x40x2x32xf32>) outs(%out0 : tensor<2x40x2x32xf32>) -> tensor<2x40x2x32xf32>
  %c1 = linalg.copy ins(%r#1 : tensor<56x2x32xf32>) outs(%out1 : tensor<56x2x32xf32>) -> tensor<56x2x32xf32>
  %c2 = linalg.copy ins(%r#2 : tensor<2x56x32xf32>) outs(%out2 : tensor<2x56x32xf32>) -> tensor<2x56x32xf32>
  return %c0, %c1, %c2 : tensor<2x40x2x32xf32>, tensor<56x2x32xf32>, tensor<2x56x32xf32>
}

// Two blocks share three tiles of keys of each batch, of which a window sees some; another launch adds their gradients.
// CHECK-LABEL: parts: launches 2, workspace 506880
// CHECK-NEXT: attention: grid 528, block 128
// CHECK-NEXT: attention: grid 62, block 256
// EQUAL: parts: attention attention equal
// EQUAL: parts, TF32: attention attention equal
func.func private @parts(%q: tensor<264x40x6xf32>, %k: tensor<264x130x6xf32>, %v: tensor<264x130x4xf32>,
    %g: tensor<264x40x4xf32>, %l: tensor<264x40xf32>, %d: tensor<264x40xf32>,
    %out0: tensor<264x40x6xf32>, %out1: tensor<264x130x6xf32>, %out2: tensor<264x130x4xf32>)
    -> (tensor<264x40x6xf32>, tensor<264x130x6xf32>, tensor<264x130x4xf32>) attributes {kernel.reads = 6 : i64} {
  %r:3 = ext.attention_backward indexing_maps = [#bmf, #bnf, #bng, #bmg, #bm, #bm, #bmf, #bnf, #bng]
      ins(%q, %k, %v, %g, %l, %d :
          tensor<264x40x6xf32>, tensor<264x130x6xf32>, tensor<264x130x4xf32>, tensor<264x40x4xf32>,
          tensor<264x40xf32>, tensor<264x40xf32>) {
  ^bb0(%p: f32, %ib: index, %im: index, %in: index, %if: index, %ig: index):
    %first = arith.constant 20 : index
    %last = arith.constant 70 : index
    %from = arith.addi %im, %first : index
    %to = arith.addi %im, %last : index
    %above = arith.cmpi sge, %in, %from : index
    %below = arith.cmpi sle, %in, %to : index
    %c = arith.andi %above, %below : i1
    %none = arith.constant 0xFF800000 : f32
    %u = arith.select %c, %p, %none : f32
    ext.yield %u : f32
  } derivative {
  ^bb0(%p: f32, %ib: index, %im: index, %in: index, %if: index, %ig: index, %dy: f32):
    %first = arith.constant 20 : index
    %last = arith.constant 70 : index
    %from = arith.addi %im, %first : index
    %to = arith.addi %im, %last : index
    %above = arith.cmpi sge, %in, %from : index
    %below = arith.cmpi sle, %in, %to : index
    %c = arith.andi %above, %below : i1
    %zero = arith.constant 0.0 : f32
    %u = arith.select %c, %dy, %zero : f32
    ext.yield %u : f32
  } -> tensor<264x40x6xf32>, tensor<264x130x6xf32>, tensor<264x130x4xf32>
  %c0 = linalg.copy ins(%r#0 : tensor<264x40x6xf32>) outs(%out0 : tensor<264x40x6xf32>) -> tensor<264x40x6xf32>
  %c1 = linalg.copy ins(%r#1 : tensor<264x130x6xf32>) outs(%out1 : tensor<264x130x6xf32>) -> tensor<264x130x6xf32>
  %c2 = linalg.copy ins(%r#2 : tensor<264x130x4xf32>) outs(%out2 : tensor<264x130x4xf32>) -> tensor<264x130x4xf32>
  return %c0, %c1, %c2 : tensor<264x40x6xf32>, tensor<264x130x6xf32>, tensor<264x130x4xf32>
}
