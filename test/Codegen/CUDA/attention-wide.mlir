// Warps of 32 rows, where there are enough blocks: each fragment of keys and values is multiplied twice. Tiles that no
// mask cuts are computed without the mask.
// RUN: tessera-opt %s --tessera-compile-gpu-kernels="arch=compute_80 print-ptx" -o /dev/null | FileCheck %s
// RUN: tessera-opt %s --tessera-check-gpu-kernels -o /dev/null | FileCheck %s --check-prefix=EQUAL

#bmf = affine_map<(b, m, n, f, g) -> (b, m, f)>
#bnf = affine_map<(b, m, n, f, g) -> (b, n, f)>
#bng = affine_map<(b, m, n, f, g) -> (b, n, g)>
#bmg = affine_map<(b, m, n, f, g) -> (b, m, g)>
#bm = affine_map<(b, m, n, f, g) -> (b, m)>

// CHECK: causal: launches
// CHECK-NEXT: attention: grid 132,
// EQUAL: causal: attention equal
func.func private @causal(%q: tensor<132x70x16xbf16>, %k: tensor<132x70x16xbf16>, %v: tensor<132x70x24xbf16>,
    %out0: tensor<132x70x24xf32>, %out1: tensor<132x70xf32>)
    -> (tensor<132x70x24xf32>, tensor<132x70xf32>) attributes {kernel.reads = 3 : i64} {
  %r:2 = ext.attention indexing_maps = [#bmf, #bnf, #bng, #bmg, #bm]
      ins(%q, %k, %v :
          tensor<132x70x16xbf16>, tensor<132x70x16xbf16>, tensor<132x70x24xbf16>) {
  ^bb0(%p: f32, %ib: index, %im: index, %in: index, %if: index, %ig: index):
    %visible = arith.cmpi sge, %im, %in : index
    %narrow = arith.truncf %p : f32 to bf16
    %scale = arith.constant 0.0625 : bf16
    %scaled = arith.mulf %narrow, %scale : bf16
    %least = arith.constant 0xFF80 : bf16
    %score = arith.select %visible, %scaled, %least : bf16
    %wide = arith.extf %score : bf16 to f32
    ext.yield %wide : f32
  } -> tensor<132x70x24xf32>, tensor<132x70xf32>
  %c0 = linalg.copy ins(%r#0 : tensor<132x70x24xf32>) outs(%out0 : tensor<132x70x24xf32>) -> tensor<132x70x24xf32>
  %c1 = linalg.copy ins(%r#1 : tensor<132x70xf32>) outs(%out1 : tensor<132x70xf32>) -> tensor<132x70xf32>
  return %c0, %c1 : tensor<132x70x24xf32>, tensor<132x70xf32>
}

// CHECK: causal_back: launches
// CHECK-NEXT: attention: grid 132,
// CHECK: attention: grid 132,
// EQUAL: causal_back: attention attention equal
func.func private @causal_back(%q: tensor<132x70x16xbf16>, %k: tensor<132x70x16xbf16>, %v: tensor<132x70x24xbf16>,
    %do: tensor<132x70x24xbf16>, %l: tensor<132x70xf32>, %delta: tensor<132x70xf32>,
    %out0: tensor<132x70x16xf32>, %out1: tensor<132x70x16xf32>, %out2: tensor<132x70x24xf32>)
    -> (tensor<132x70x16xf32>, tensor<132x70x16xf32>, tensor<132x70x24xf32>) attributes {kernel.reads = 6 : i64} {
  %r:3 = ext.attention_backward indexing_maps = [#bmf, #bnf, #bng, #bmg, #bm, #bm, #bmf, #bnf, #bng]
      ins(%q, %k, %v, %do, %l, %delta :
          tensor<132x70x16xbf16>, tensor<132x70x16xbf16>, tensor<132x70x24xbf16>, tensor<132x70x24xbf16>,
          tensor<132x70xf32>, tensor<132x70xf32>) {
  ^bb0(%p: f32, %ib: index, %im: index, %in: index, %if: index, %ig: index):
    %visible = arith.cmpi sge, %im, %in : index
    %narrow = arith.truncf %p : f32 to bf16
    %scale = arith.constant 0.0625 : bf16
    %scaled = arith.mulf %narrow, %scale : bf16
    %least = arith.constant 0xFF80 : bf16
    %score = arith.select %visible, %scaled, %least : bf16
    %wide = arith.extf %score : bf16 to f32
    ext.yield %wide : f32
  } derivative {
  ^bb0(%p: f32, %ib: index, %im: index, %in: index, %if: index, %ig: index, %dy: f32):
    %visible = arith.cmpi sge, %im, %in : index
    %narrow = arith.truncf %dy : f32 to bf16
    %zero = arith.constant 0.0 : bf16
    %masked = arith.select %visible, %narrow, %zero : bf16
    %scale = arith.constant 0.0625 : bf16
    %scaled = arith.mulf %masked, %scale : bf16
    %wide = arith.extf %scaled : bf16 to f32
    ext.yield %wide : f32
  } -> tensor<132x70x16xf32>, tensor<132x70x16xf32>, tensor<132x70x24xf32>
  %c0 = linalg.copy ins(%r#0 : tensor<132x70x16xf32>) outs(%out0 : tensor<132x70x16xf32>) -> tensor<132x70x16xf32>
  %c1 = linalg.copy ins(%r#1 : tensor<132x70x16xf32>) outs(%out1 : tensor<132x70x16xf32>) -> tensor<132x70x16xf32>
  %c2 = linalg.copy ins(%r#2 : tensor<132x70x24xf32>) outs(%out2 : tensor<132x70x24xf32>) -> tensor<132x70x24xf32>
  return %c0, %c1, %c2 : tensor<132x70x16xf32>, tensor<132x70x16xf32>, tensor<132x70x24xf32>
}

// CHECK: window: launches
// CHECK-NEXT: attention: grid 132,
// EQUAL: window: attention equal
func.func private @window(%q: tensor<44x300x16xf16>, %k: tensor<44x300x16xf16>, %v: tensor<44x300x16xf16>,
    %out0: tensor<44x300x16xf32>, %out1: tensor<44x300xf32>)
    -> (tensor<44x300x16xf32>, tensor<44x300xf32>) attributes {kernel.reads = 3 : i64} {
  %r:2 = ext.attention indexing_maps = [#bmf, #bnf, #bng, #bmg, #bm]
      ins(%q, %k, %v :
          tensor<44x300x16xf16>, tensor<44x300x16xf16>, tensor<44x300x16xf16>) {
  ^bb0(%p: f32, %ib: index, %im: index, %in: index, %if: index, %ig: index):
    %size = arith.constant 250 : index
    %distance = arith.subi %im, %in : index
    %near = arith.cmpi slt, %distance, %size : index
    %past = arith.cmpi sge, %im, %in : index
    %visible = arith.andi %near, %past : i1
    %scale = arith.constant 0.3 : f32
    %scaled = arith.mulf %scale, %p : f32
    %least = arith.constant -1.0e9 : f32
    %score = arith.select %visible, %scaled, %least : f32
    ext.yield %score : f32
  } -> tensor<44x300x16xf32>, tensor<44x300xf32>
  %c0 = linalg.copy ins(%r#0 : tensor<44x300x16xf32>) outs(%out0 : tensor<44x300x16xf32>) -> tensor<44x300x16xf32>
  %c1 = linalg.copy ins(%r#1 : tensor<44x300xf32>) outs(%out1 : tensor<44x300xf32>) -> tensor<44x300xf32>
  return %c0, %c1 : tensor<44x300x16xf32>, tensor<44x300xf32>
}

// CHECK: window_back: launches
// CHECK-NEXT: attention: grid 132,
// CHECK: attention: grid 132,
// EQUAL: window_back: attention attention equal
func.func private @window_back(%q: tensor<44x300x16xf16>, %k: tensor<44x300x16xf16>, %v: tensor<44x300x16xf16>,
    %do: tensor<44x300x16xf16>, %l: tensor<44x300xf32>, %delta: tensor<44x300xf32>,
    %out0: tensor<44x300x16xf32>, %out1: tensor<44x300x16xf32>, %out2: tensor<44x300x16xf32>)
    -> (tensor<44x300x16xf32>, tensor<44x300x16xf32>, tensor<44x300x16xf32>) attributes {kernel.reads = 6 : i64} {
  %r:3 = ext.attention_backward indexing_maps = [#bmf, #bnf, #bng, #bmg, #bm, #bm, #bmf, #bnf, #bng]
      ins(%q, %k, %v, %do, %l, %delta :
          tensor<44x300x16xf16>, tensor<44x300x16xf16>, tensor<44x300x16xf16>, tensor<44x300x16xf16>,
          tensor<44x300xf32>, tensor<44x300xf32>) {
  ^bb0(%p: f32, %ib: index, %im: index, %in: index, %if: index, %ig: index):
    %size = arith.constant 250 : index
    %distance = arith.subi %im, %in : index
    %near = arith.cmpi slt, %distance, %size : index
    %past = arith.cmpi sge, %im, %in : index
    %visible = arith.andi %near, %past : i1
    %scale = arith.constant 0.3 : f32
    %scaled = arith.mulf %scale, %p : f32
    %least = arith.constant -1.0e9 : f32
    %score = arith.select %visible, %scaled, %least : f32
    ext.yield %score : f32
  } derivative {
  ^bb0(%p: f32, %ib: index, %im: index, %in: index, %if: index, %ig: index, %dy: f32):
    %size = arith.constant 250 : index
    %distance = arith.subi %im, %in : index
    %near = arith.cmpi slt, %distance, %size : index
    %past = arith.cmpi sge, %im, %in : index
    %visible = arith.andi %near, %past : i1
    %scale = arith.constant 0.3 : f32
    %zero = arith.constant 0.0 : f32
    %scaled = arith.mulf %dy, %scale : f32
    %masked = arith.select %visible, %scaled, %zero : f32
    ext.yield %masked : f32
  } -> tensor<44x300x16xf32>, tensor<44x300x16xf32>, tensor<44x300x16xf32>
  %c0 = linalg.copy ins(%r#0 : tensor<44x300x16xf32>) outs(%out0 : tensor<44x300x16xf32>) -> tensor<44x300x16xf32>
  %c1 = linalg.copy ins(%r#1 : tensor<44x300x16xf32>) outs(%out1 : tensor<44x300x16xf32>) -> tensor<44x300x16xf32>
  %c2 = linalg.copy ins(%r#2 : tensor<44x300x16xf32>) outs(%out2 : tensor<44x300x16xf32>) -> tensor<44x300x16xf32>
  return %c0, %c1, %c2 : tensor<44x300x16xf32>, tensor<44x300x16xf32>, tensor<44x300x16xf32>
}

// CHECK: long_rows: launches
// CHECK-NEXT: attention: grid 132,
// EQUAL: long_rows: attention equal
func.func private @long_rows(%q: tensor<132x70x80xbf16>, %k: tensor<132x50x80xbf16>, %v: tensor<132x50x72xbf16>,
    %out0: tensor<132x70x72xf32>, %out1: tensor<132x70xf32>)
    -> (tensor<132x70x72xf32>, tensor<132x70xf32>) attributes {kernel.reads = 3 : i64} {
  %r:2 = ext.attention indexing_maps = [#bmf, #bnf, #bng, #bmg, #bm]
      ins(%q, %k, %v :
          tensor<132x70x80xbf16>, tensor<132x50x80xbf16>, tensor<132x50x72xbf16>) {
  ^bb0(%p: f32, %ib: index, %im: index, %in: index, %if: index, %ig: index):
    %scale = arith.constant -0.25 : f32
    %scaled = arith.mulf %p, %scale : f32
    %hidden = arith.cmpi slt, %im, %in : index
    %least = arith.constant 0xFF800000 : f32
    %score = arith.select %hidden, %least, %scaled : f32
    ext.yield %score : f32
  } -> tensor<132x70x72xf32>, tensor<132x70xf32>
  %c0 = linalg.copy ins(%r#0 : tensor<132x70x72xf32>) outs(%out0 : tensor<132x70x72xf32>) -> tensor<132x70x72xf32>
  %c1 = linalg.copy ins(%r#1 : tensor<132x70xf32>) outs(%out1 : tensor<132x70xf32>) -> tensor<132x70xf32>
  return %c0, %c1 : tensor<132x70x72xf32>, tensor<132x70xf32>
}

// EQUAL: long_rows_back: attention attention equal
func.func private @long_rows_back(%q: tensor<66x130x72xbf16>, %k: tensor<66x66x72xbf16>, %v: tensor<66x66x80xbf16>,
    %do: tensor<66x130x80xbf16>, %l: tensor<66x130xf32>, %delta: tensor<66x130xf32>,
    %out0: tensor<66x130x72xf32>, %out1: tensor<66x66x72xf32>, %out2: tensor<66x66x80xf32>)
    -> (tensor<66x130x72xf32>, tensor<66x66x72xf32>, tensor<66x66x80xf32>) attributes {kernel.reads = 6 : i64} {
  %r:3 = ext.attention_backward indexing_maps = [#bmf, #bnf, #bng, #bmg, #bm, #bm, #bmf, #bnf, #bng]
      ins(%q, %k, %v, %do, %l, %delta :
          tensor<66x130x72xbf16>, tensor<66x66x72xbf16>, tensor<66x66x80xbf16>, tensor<66x130x80xbf16>,
          tensor<66x130xf32>, tensor<66x130xf32>) {
  ^bb0(%p: f32, %ib: index, %im: index, %in: index, %if: index, %ig: index):
    %scale = arith.constant -0.25 : f32
    %scaled = arith.mulf %p, %scale : f32
    %hidden = arith.cmpi slt, %im, %in : index
    %least = arith.constant 0xFF800000 : f32
    %score = arith.select %hidden, %least, %scaled : f32
    ext.yield %score : f32
  } derivative {
  ^bb0(%p: f32, %ib: index, %im: index, %in: index, %if: index, %ig: index, %dy: f32):
    %scale = arith.constant -0.25 : f32
    %hidden = arith.cmpi slt, %im, %in : index
    %zero = arith.constant 0.0 : f32
    %masked = arith.select %hidden, %zero, %dy : f32
    %scaled = arith.mulf %masked, %scale : f32
    ext.yield %scaled : f32
  } -> tensor<66x130x72xf32>, tensor<66x66x72xf32>, tensor<66x66x80xf32>
  %c0 = linalg.copy ins(%r#0 : tensor<66x130x72xf32>) outs(%out0 : tensor<66x130x72xf32>) -> tensor<66x130x72xf32>
  %c1 = linalg.copy ins(%r#1 : tensor<66x66x72xf32>) outs(%out1 : tensor<66x66x72xf32>) -> tensor<66x66x72xf32>
  %c2 = linalg.copy ins(%r#2 : tensor<66x66x80xf32>) outs(%out2 : tensor<66x66x80xf32>) -> tensor<66x66x80xf32>
  return %c0, %c1, %c2 : tensor<66x130x72xf32>, tensor<66x66x72xf32>, tensor<66x66x80xf32>
}

// EQUAL: of_f32: attention equal
func.func private @of_f32(%q: tensor<132x70x24xf32>, %k: tensor<132x70x24xf32>, %v: tensor<132x70x16xf32>,
    %out0: tensor<132x70x16xf32>, %out1: tensor<132x70xf32>)
    -> (tensor<132x70x16xf32>, tensor<132x70xf32>) attributes {kernel.reads = 3 : i64} {
  %r:2 = ext.attention indexing_maps = [#bmf, #bnf, #bng, #bmg, #bm]
      ins(%q, %k, %v :
          tensor<132x70x24xf32>, tensor<132x70x24xf32>, tensor<132x70x16xf32>) {
  ^bb0(%p: f32, %ib: index, %im: index, %in: index, %if: index, %ig: index):
    %size = arith.constant 250 : index
    %distance = arith.subi %im, %in : index
    %near = arith.cmpi slt, %distance, %size : index
    %past = arith.cmpi sge, %im, %in : index
    %visible = arith.andi %near, %past : i1
    %scale = arith.constant 0.3 : f32
    %scaled = arith.mulf %scale, %p : f32
    %least = arith.constant -1.0e9 : f32
    %score = arith.select %visible, %scaled, %least : f32
    ext.yield %score : f32
  } -> tensor<132x70x16xf32>, tensor<132x70xf32>
  %c0 = linalg.copy ins(%r#0 : tensor<132x70x16xf32>) outs(%out0 : tensor<132x70x16xf32>) -> tensor<132x70x16xf32>
  %c1 = linalg.copy ins(%r#1 : tensor<132x70xf32>) outs(%out1 : tensor<132x70xf32>) -> tensor<132x70xf32>
  return %c0, %c1 : tensor<132x70x16xf32>, tensor<132x70xf32>
}
