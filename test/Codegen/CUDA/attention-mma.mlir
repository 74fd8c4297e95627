// Tensor cores multiply 16-bit floats; ldmatrix loads their fragments, transposed if columns are contiguous.
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

// CHECK-LABEL: causal: launches 1, workspace 0, bytes 99072 of 99072
// CHECK-NEXT: attention: grid 4, block 128
// CHECK: ld.global{{(.nc)?}}.v4.b32
// CHECK: ldmatrix.sync.aligned.m8n8.x4.shared.b16
// The next keys and values are copied while these are multiplied.
// CHECK: cp.async.cg.shared.global
// CHECK: cp.async.commit_group
// CHECK: cp.async.wait_group
// CHECK: bar.sync
// CHECK: cp.async.cg.shared.global
// CHECK: cp.async.commit_group
// CHECK: mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32
// CHECK: cvt.rn.bf16x2.f32
// CHECK: ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16
// CHECK: st.global.v4.b32
// EQUAL: causal: attention equal
func.func private @causal(%q: tensor<2x96x64xbf16>, %k: tensor<2x96x64xbf16>, %v: tensor<2x96x64xbf16>,
    %out0: tensor<2x96x64xbf16>, %out1: tensor<2x96xf32>)
    -> (tensor<2x96x64xbf16>, tensor<2x96xf32>) attributes {kernel.reads = 3 : i64} {
  %r:2 = ext.attention indexing_maps = [#bmf, #bnf, #bng, #bmg, #bm]
      ins(%q, %k, %v :
          tensor<2x96x64xbf16>, tensor<2x96x64xbf16>, tensor<2x96x64xbf16>) {
  ^bb0(%p: f32, %ib: index, %im: index, %in: index, %if: index, %ig: index):
    %scale = arith.constant 0.125 : f32
    %s = arith.mulf %p, %scale : f32
    %c = arith.cmpi sge, %im, %in : index
    %least = arith.constant 0xFF800000 : f32
    %u = arith.select %c, %s, %least : f32
    ext.yield %u : f32
  } -> tensor<2x96x64xbf16>, tensor<2x96xf32>
  %c0 = linalg.copy ins(%r#0 : tensor<2x96x64xbf16>) outs(%out0 : tensor<2x96x64xbf16>) -> tensor<2x96x64xbf16>
  %c1 = linalg.copy ins(%r#1 : tensor<2x96xf32>) outs(%out1 : tensor<2x96xf32>) -> tensor<2x96xf32>
  return %c0, %c1 : tensor<2x96x64xbf16>, tensor<2x96xf32>
}

// EQUAL: eighty: attention equal
func.func private @eighty(%q: tensor<1x50x80xbf16>, %k: tensor<1x70x80xbf16>, %v: tensor<1x70x80xbf16>,
    %out0: tensor<1x50x80xbf16>, %out1: tensor<1x50xf32>)
    -> (tensor<1x50x80xbf16>, tensor<1x50xf32>) attributes {kernel.reads = 3 : i64} {
  %r:2 = ext.attention indexing_maps = [#bmf, #bnf, #bng, #bmg, #bm]
      ins(%q, %k, %v :
          tensor<1x50x80xbf16>, tensor<1x70x80xbf16>, tensor<1x70x80xbf16>) {
  ^bb0(%p: f32, %ib: index, %im: index, %in: index, %if: index, %ig: index):
    %scale = arith.constant 0.125 : f32
    %s = arith.mulf %p, %scale : f32
    ext.yield %s : f32
  } -> tensor<1x50x80xbf16>, tensor<1x50xf32>
  %c0 = linalg.copy ins(%r#0 : tensor<1x50x80xbf16>) outs(%out0 : tensor<1x50x80xbf16>) -> tensor<1x50x80xbf16>
  %c1 = linalg.copy ins(%r#1 : tensor<1x50xf32>) outs(%out1 : tensor<1x50xf32>) -> tensor<1x50xf32>
  return %c0, %c1 : tensor<1x50x80xbf16>, tensor<1x50xf32>
}

// EQUAL: long_rows: attention equal
func.func private @long_rows(%q: tensor<1x70x128xbf16>, %k: tensor<1x130x128xbf16>, %v: tensor<1x130x128xbf16>,
    %bias: tensor<70x130xf32>, %out0: tensor<1x70x128xbf16>, %out1: tensor<1x70xf32>)
    -> (tensor<1x70x128xbf16>, tensor<1x70xf32>) attributes {kernel.reads = 4 : i64} {
  %r:2 = ext.attention indexing_maps = [#bmf, #bnf, #bng, #mn, #bmg, #bm]
      ins(%q, %k, %v, %bias :
          tensor<1x70x128xbf16>, tensor<1x130x128xbf16>, tensor<1x130x128xbf16>, tensor<70x130xf32>) {
  ^bb0(%p: f32, %x: f32, %ib: index, %im: index, %in: index, %if: index, %ig: index):
    %scale = arith.constant 0.125 : f32
    %s = arith.mulf %p, %scale : f32
    %t = arith.addf %s, %x : f32
    ext.yield %t : f32
  } -> tensor<1x70x128xbf16>, tensor<1x70xf32>
  %c0 = linalg.copy ins(%r#0 : tensor<1x70x128xbf16>) outs(%out0 : tensor<1x70x128xbf16>) -> tensor<1x70x128xbf16>
  %c1 = linalg.copy ins(%r#1 : tensor<1x70xf32>) outs(%out1 : tensor<1x70xf32>) -> tensor<1x70xf32>
  return %c0, %c1 : tensor<1x70x128xbf16>, tensor<1x70xf32>
}

// CHECK-LABEL: groups: launches 1
// CHECK: mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32
// EQUAL: groups: attention equal
func.func private @groups(%q: tensor<2x3x40x32xf16>, %k: tensor<2x40x32xf16>, %v: tensor<2x40x32xf16>,
    %out0: tensor<2x3x40x32xf16>, %out1: tensor<2x3x40xf32>)
    -> (tensor<2x3x40x32xf16>, tensor<2x3x40xf32>) attributes {kernel.reads = 3 : i64} {
  %r:2 = ext.attention indexing_maps = [#of_heads_bhmf, #of_heads_bnf, #of_heads_bng, #of_heads_bhmg, #of_heads_bhm]
      ins(%q, %k, %v :
          tensor<2x3x40x32xf16>, tensor<2x40x32xf16>, tensor<2x40x32xf16>) {
  ^bb0(%p: f32, %ib: index, %ih: index, %im: index, %in: index, %if: index, %ig: index):
    %scale = arith.constant 0.125 : f32
    %s = arith.mulf %p, %scale : f32
    %c = arith.cmpi sge, %im, %in : index
    %least = arith.constant 0xFF800000 : f32
    %u = arith.select %c, %s, %least : f32
    ext.yield %u : f32
  } -> tensor<2x3x40x32xf16>, tensor<2x3x40xf32>
  %c0 = linalg.copy ins(%r#0 : tensor<2x3x40x32xf16>) outs(%out0 : tensor<2x3x40x32xf16>) -> tensor<2x3x40x32xf16>
  %c1 = linalg.copy ins(%r#1 : tensor<2x3x40xf32>) outs(%out1 : tensor<2x3x40xf32>) -> tensor<2x3x40xf32>
  return %c0, %c1 : tensor<2x3x40x32xf16>, tensor<2x3x40xf32>
}

// The sequence is the outer dimension of the batch.
// EQUAL: sequence_first: attention equal
func.func private @sequence_first(%q: tensor<2x40x2x32xbf16>, %k: tensor<56x2x32xbf16>, %v: tensor<2x56x32xbf16>,
    %out0: tensor<40x2x2x32xbf16>, %out1: tensor<2x2x40xf32>)
    -> (tensor<40x2x2x32xbf16>, tensor<2x2x40xf32>) attributes {kernel.reads = 3 : i64} {
  %r:2 = ext.attention indexing_maps = [#of_heads_bmhf, #of_heads_nbf, #of_heads_bng, #of_heads_mbhg, #of_heads_bhm]
      ins(%q, %k, %v :
          tensor<2x40x2x32xbf16>, tensor<56x2x32xbf16>, tensor<2x56x32xbf16>) {
  ^bb0(%p: f32, %ib: index, %ih: index, %im: index, %in: index, %if: index, %ig: index):
    %scale = arith.constant 0.125 : f32
    %s = arith.mulf %p, %scale : f32
    ext.yield %s : f32
  } -> tensor<40x2x2x32xbf16>, tensor<2x2x40xf32>
  %c0 = linalg.copy ins(%r#0 : tensor<40x2x2x32xbf16>) outs(%out0 : tensor<40x2x2x32xbf16>) -> tensor<40x2x2x32xbf16>
  %c1 = linalg.copy ins(%r#1 : tensor<2x2x40xf32>) outs(%out1 : tensor<2x2x40xf32>) -> tensor<2x2x40xf32>
  return %c0, %c1 : tensor<40x2x2x32xbf16>, tensor<2x2x40xf32>
}

// Rows do not begin at aligned addresses.
// EQUAL: odd: attention equal
func.func private @odd(%q: tensor<2x33x33xbf16>, %k: tensor<2x35x33xbf16>, %v: tensor<2x35x17xbf16>,
    %out0: tensor<2x33x17xbf16>, %out1: tensor<2x33xf32>)
    -> (tensor<2x33x17xbf16>, tensor<2x33xf32>) attributes {kernel.reads = 3 : i64} {
  %r:2 = ext.attention indexing_maps = [#bmf, #bnf, #bng, #bmg, #bm]
      ins(%q, %k, %v :
          tensor<2x33x33xbf16>, tensor<2x35x33xbf16>, tensor<2x35x17xbf16>) {
  ^bb0(%p: f32, %ib: index, %im: index, %in: index, %if: index, %ig: index):
    %scale = arith.constant 0.125 : f32
    %s = arith.mulf %p, %scale : f32
    %c = arith.cmpi sge, %im, %in : index
    %least = arith.constant 0xFF800000 : f32
    %u = arith.select %c, %s, %least : f32
    ext.yield %u : f32
  } -> tensor<2x33x17xbf16>, tensor<2x33xf32>
  %c0 = linalg.copy ins(%r#0 : tensor<2x33x17xbf16>) outs(%out0 : tensor<2x33x17xbf16>) -> tensor<2x33x17xbf16>
  %c1 = linalg.copy ins(%r#1 : tensor<2x33xf32>) outs(%out1 : tensor<2x33xf32>) -> tensor<2x33xf32>
  return %c0, %c1 : tensor<2x33x17xbf16>, tensor<2x33xf32>
}
